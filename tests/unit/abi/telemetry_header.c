// assay/telemetry.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/telemetry.h>

_Static_assert(sizeof(assay_telemetry_sample) == 104, "the same size in C as in C++");
_Static_assert(sizeof(assay_telemetry_limits) == 128, "the same size in C as in C++");
_Static_assert(sizeof(assay_telemetry) == 48, "the same size in C as in C++");
