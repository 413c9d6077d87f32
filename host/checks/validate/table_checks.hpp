// Checks of a plugin's tables alone: data in, findings out.
#pragma once
#include "plugin/plugin_tables.hpp"
#include "validate/report.hpp"

namespace assay::host::validate {

// Asks every check of level 1 that is about tables. That they are sound at all was asked when they were read.
void check_tables(const plugin::PluginTables& tables, Answers& answers);

}  // namespace assay::host::validate
