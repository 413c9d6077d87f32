// Who hears of the operations that are enqueued. One for the process: a communicator reaches it by the device's table.
#pragma once
#include <assay/planning.h>

#include <vector>

namespace assay::planned {

const assay_planning& planning_table();
void tell(const assay_planned_operation& operation);
// From here on operations, collectives among them, are collected there instead of told; null: told again.
void capture_into(std::vector<assay_planned_operation>* operations);

}  // namespace assay::planned
