// assay/device.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/device.h>

_Static_assert(sizeof(assay_device_info) == 928, "the same size in C as in C++");
_Static_assert(sizeof(assay_device_api) == 176, "the same size in C as in C++");
