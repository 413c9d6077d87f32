#include "workload.hpp"

ASSAY_PLUGIN("org.assay.encoder_decoder", "1.0.0", encoder_decoder::Workload)
