/* assay/comm.h alone, as C. */
#include <assay/comm.h>

_Static_assert(sizeof(assay_comm) == 120, "the same size in C as in C++");
