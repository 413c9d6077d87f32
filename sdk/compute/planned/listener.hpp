// Who hears of the operations that are enqueued. One for the process: a communicator reaches it by the device's table.
#pragma once
#include <assay/planning.h>

#include <vector>

namespace assay::planned {

const assay_planning& planning_table();
void tell(const assay_planned_operation& operation);
// From here on operations, including collectives, are collected in `operations`, not reported. Null: reported again.
void capture_into(std::vector<assay_planned_operation>* operations);

}  // namespace assay::planned
