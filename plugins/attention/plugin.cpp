#include "workload.hpp"

ASSAY_PLUGIN("org.assay.attention", "1.0.0", attention::Workload)
