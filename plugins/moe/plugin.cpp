#include "workload.hpp"

ASSAY_PLUGIN("org.assay.moe", "1.0.0", moe::Workload)
