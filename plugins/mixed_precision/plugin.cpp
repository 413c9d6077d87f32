#include "workload.hpp"

ASSAY_PLUGIN("org.assay.mixed_precision", "1.0.0", mixed_precision::Workload)
