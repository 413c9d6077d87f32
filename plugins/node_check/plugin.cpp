#include "workload.hpp"

ASSAY_PLUGIN("org.assay.node_check", "1.0.0", node_check::Workload)
