// The C headers from C++: they ask for no more than C++17. assay/abi.h comes twice, the second time through
// assay/device.h, and is guarded.
#include <assay/abi.h>
#include <assay/algorithms.h>
#include <assay/device.h>
#include <assay/graph_events.h>
#include <assay/memory_account.h>
#include <assay/observation.h>
#include <assay/planning.h>
#include <assay/probe.h>
#include <assay/profiling.h>
#include <assay/telemetry.h>

static_assert(noexcept(assay_entry_v1.deinit()), "across the border nothing is thrown");
