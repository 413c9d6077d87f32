#include "accumulation.hpp"
#include "dtypes.hpp"
#include "speed_accuracy.hpp"

ASSAY_PLUGIN("org.assay.mixed_precision", "2.0.0", mixed_precision::Accumulation, mixed_precision::Dtypes,
             mixed_precision::SpeedAccuracy)
