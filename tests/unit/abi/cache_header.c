// assay/cache.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/cache.h>

_Static_assert(sizeof(assay_cache) == 16, "the same size in C as in C++");
