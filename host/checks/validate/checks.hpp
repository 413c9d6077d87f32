// The checks of `assay validate`: one row for each.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace assay::host::validate {

enum class Check {
  file_readable,
  load_survives,
  load_resolved,
  load_silent,
  load_quick,
  load_leaves,
  entry_symbol,
  entry_alone,
  entry_sizes,
  entry_version,
  entry_functions,
  tables_rows,
  tables_names,
  tables_text,
  tables_values,
  tables_choices,
  tables_presets,
  tables_units,
  tables_help,
  create_default,
  create_values,
  create_extensions,
  create_bare,
  create_destroy,
  objects_two,
  setup_works,
  run_works,
  run_allocation,
  run_synchronisation,
  run_log,
  run_output,
  run_stages,
  marks_balanced,
  marks_seen,
  metrics_seen,
  metrics_values,
  work_stated,
  finish_works,
  finish_steps,
  verify_passes,
  verify_says,
  account_kept,
  account_counts,
  account_repeats,
  destroy_works,
  leaves_memory,
  leaves_heap,
  leaves_threads,
  leaves_descriptors,
  leaves_signals,
  leaves_folder,
  leaves_environment,
  leaves_processes,
  exit_clean,
  memory_refused,
  memory_given_back,
  verify_finds,
  seed_same,
};
inline constexpr std::size_t check_count = static_cast<std::size_t>(Check::seed_same) + 1;

enum class Severity { warning, error };

struct CheckRow {
  Check check;
  const char* name;  // "run.allocation"
  int level;         // 1: what it declares, 2: one life of a workload, 3: what is refused, changed and repeated
  Severity severity;
  const char* sentence;  // what is so of a plugin that passes
  const char* remedy;
};

std::span<const CheckRow, check_count> all_checks();
const CheckRow& row_of(Check check);
std::optional<Check> check_named(std::string_view name);

inline constexpr int highest_level = 3;

}  // namespace assay::host::validate
