#include "workload.hpp"

ASSAY_PLUGIN("org.assay.all_reduce", "1.0.0", all_reduce::Workload)
