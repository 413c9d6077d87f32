// Who hears of the operations that are enqueued. One for the process: a communicator reaches it by the device's table.
#pragma once
#include <assay/planning.h>

namespace assay::planned {

const assay_planning& planning_table();
void tell(const assay_planned_operation& operation);

}  // namespace assay::planned
