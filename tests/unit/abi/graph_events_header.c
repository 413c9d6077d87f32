// assay/graph_events.h alone, as C11, with every gap between fields an error (-Wpadded).
#include <assay/graph_events.h>

_Static_assert(sizeof(assay_graph_events) == 24, "the same size in C as in C++");
