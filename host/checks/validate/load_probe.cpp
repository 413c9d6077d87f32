#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "plugin/entry_check.hpp"
#include "plugin/plugin_tables.hpp"
#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"
#include "validate/process_state.hpp"

namespace assay::host::validate {
namespace {

constexpr std::chrono::seconds longest_opening{2};

Check check_of(plugin::Refusal why) {
  switch (why) {
    case plugin::Refusal::file: return Check::file_readable;
    case plugin::Refusal::unresolved: return Check::load_resolved;
    case plugin::Refusal::symbol: return Check::entry_symbol;
    case plugin::Refusal::version: return Check::entry_version;
    case plugin::Refusal::sizes: return Check::entry_sizes;
    case plugin::Refusal::functions: return Check::entry_functions;
    case plugin::Refusal::rows: return Check::tables_rows;
    case plugin::Refusal::names: return Check::tables_names;
    case plugin::Refusal::texts: return Check::tables_text;
    case plugin::Refusal::values: return Check::tables_values;
    case plugin::Refusal::presets: return Check::tables_presets;
    case plugin::Refusal::ended:
    case plugin::Refusal::overdue:
    case plugin::Refusal::other: break;
  }
  return Check::load_survives;
}

void compare_load(const ProcessState& before, const ProcessState& after, const Asker& asker) {
  asker.ask(Check::load_leaves);
  const auto found = [&](const std::string& what) {
    if (!what.empty()) asker.find(Check::load_leaves, what);
  };
  if (const std::string handlers = changed_handlers(before, after); !handlers.empty())
    found(fmt::format("handlers of signals are others: {}", handlers));
  if (const std::string variables = changed_environment(before, after); !variables.empty())
    found(fmt::format("variables of the environment are others: {}", variables));
  if (after.folder != before.folder) found(fmt::format("the working folder is {}", after.folder));
  if (const std::string descriptors = new_descriptors(before, after); !descriptors.empty())
    found(fmt::format("descriptors are open: {}", descriptors));
  if (after.threads > before.threads) found(fmt::format("{} threads run", after.threads - before.threads));
  if (after.children > before.children) found(fmt::format("{} processes run", after.children - before.children));
}

}  // namespace

void load_probe(const std::filesystem::path& file, const Asker& asker) {
  asker.ask(Check::file_readable);
  const std::string output = size_of_output();
  const ProcessState before = ProcessState::now();
  asker.ask(Check::load_survives);
  const auto begin = std::chrono::steady_clock::now();
  std::string tables;
  std::optional<Check> refused;
  try {
    tables = plugin::to_line(plugin::copy_tables(plugin::PluginLibrary::open(file)->entry()));
  } catch (const plugin::PluginError& e) {
    refused = check_of(e.why());
    asker.find(*refused, e.what());
    if (*refused < Check::entry_symbol) return;
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  asker.ask(Check::load_resolved);
  asker.ask(Check::load_silent);
  if (size_of_output() != output) asker.find(Check::load_silent, "something was printed while it was opened");
  asker.ask(Check::load_quick);
  if (took > longest_opening)
    asker.find(Check::load_quick, fmt::format("it took {:.1f} s", std::chrono::duration<double>(took).count()));
  compare_load(before, ProcessState::now(), asker);
  asker.ask(Check::entry_symbol);
  if (refused) return;
  for (const Check check : {Check::entry_sizes, Check::entry_version, Check::entry_functions, Check::tables_rows})
    asker.ask(check);
  asker.send_tables(tables);
}

}  // namespace assay::host::validate
