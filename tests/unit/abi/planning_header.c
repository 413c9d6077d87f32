// assay/planning.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/planning.h>

_Static_assert(sizeof(assay_stand_in) == 32, "the same size in C as in C++");
_Static_assert(sizeof(assay_planning) == 56, "the same size in C as in C++");
