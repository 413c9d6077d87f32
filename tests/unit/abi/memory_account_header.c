// assay/memory_account.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/memory_account.h>

_Static_assert(sizeof(assay_memory_account) == 16, "the same size in C as in C++");
