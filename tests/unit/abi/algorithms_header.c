// assay/algorithms.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/algorithms.h>

_Static_assert(sizeof(assay_algorithms) == 24, "the same size in C as in C++");
