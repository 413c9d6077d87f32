#include "workload.hpp"

ASSAY_PLUGIN("org.assay.tensor_parallel", "1.0.0", tensor_parallel::Workload)
