// assay/observation.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/observation.h>

_Static_assert(sizeof(assay_observation) == 16, "the same size in C as in C++");
