#include "common/json_instances.hpp"

ASSAY_JSON_INSTANCES()
