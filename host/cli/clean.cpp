// assay clean
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "plugin/table_reader.hpp"
#include "results/clean_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_clean =
    "Lists what can be removed without losing a record, with sizes: caches, generated data sets, and leftovers of\n"
    "killed runs. Removes it with --yes. WHAT is caches, data or runs; without it all three.";

}  // namespace

int clean_command(const Arguments& arguments) {
  results::CleanRequest request;
  Options options("assay clean [WHAT ...] [options]", about_clean);
  options.add("yes", request.yes, "remove what is listed");
  options.add("older-than", request.older_than_days,
              "DAYS: list whole runs instead, with their records, that nothing has written to for so long");
  options.add("below", request.below, "a folder to look in for data and runs (default: results and data); repeatable");
  options.positional("what", request.what);
  if (!options.read(arguments)) return exit_ok;
  request.cache_folder = plugin::table_cache_folder().parent_path();
  return results::clean(request);
}

}  // namespace assay::host::cli
