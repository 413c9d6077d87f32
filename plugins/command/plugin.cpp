#include "workload.hpp"

ASSAY_PLUGIN("org.assay.command", "1.0.0", command::Workload)
