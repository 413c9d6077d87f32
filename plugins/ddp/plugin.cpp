#include "workload.hpp"

ASSAY_PLUGIN("org.assay.ddp", "1.0.0", ddp::Workload)
