#include "workload.hpp"

ASSAY_PLUGIN("org.assay.decoder", "1.0.0", decoder::Workload)
