#include "workload.hpp"

ASSAY_PLUGIN("org.assay.fsdp", "1.0.0", fsdp::Workload)
