#include "workload.hpp"

ASSAY_PLUGIN("org.assay.sharded_optimizer", "1.0.0", sharded_optimizer::Workload)
