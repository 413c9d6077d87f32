// assay/probe.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/probe.h>

_Static_assert(sizeof(assay_probe) == 24 && sizeof(assay_probe_sink) == 32, "the same sizes in C as in C++");
