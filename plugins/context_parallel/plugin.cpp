#include "workload.hpp"

ASSAY_PLUGIN("org.assay.context_parallel", "1.0.0", context_parallel::Workload)
