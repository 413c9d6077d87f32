// assay/profiling.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/profiling.h>

_Static_assert(sizeof(assay_profiler) == 24, "the same size in C as in C++");
_Static_assert(sizeof(assay_traced_work) == 72, "the same size in C as in C++");
_Static_assert(sizeof(assay_kernel_trace) == 48, "the same size in C as in C++");
