#include "plan/experiment_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "common/device_kinds.hpp"
#include "common/exit_code.hpp"
#include "console/mistakes.hpp"
#include "plan/report.hpp"
#include "plugin/device_words.hpp"
#include "plugin/search.hpp"
#include "record/device_peaks.hpp"
#include "results/case_text.hpp"
#include "results/reader.hpp"
#include "results/shared_columns.hpp"
#include "results/table_page.hpp"
#include "results/terminal.hpp"
#include "run/found_device.hpp"
#include "run/plan.hpp"

namespace assay::host::plan {
namespace {

namespace fs = std::filesystem;

// Where the word stands in the text, not as a part of another one; npos where it does not.
std::size_t place_of_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    if ((at == 0 || !is_part(text[at - 1])) && (at + word.size() == text.size() || !is_part(text[at + word.size()])))
      return at;
  return std::string::npos;
}

// The parameter that the plugin names and the user has set: of several the one that stands first in the
// text. Where none is named, the place where the plugin is.
experiment::Place place_of(const run::LoadedExperiment& loaded, const std::string& reason) {
  std::size_t first = std::string::npos;
  experiment::Place place = loaded.places.at("");
  for (const auto& [name, where] : loaded.places)
    if (const std::size_t at = name.empty() ? first : place_of_word(reason, name); at < first)
      first = at, place = where;
  return place;
}

std::vector<experiment::Mistake> mistakes_in(const run::LoadedExperiment& loaded,
                                             const std::vector<PlannedCase>& cases) {
  struct Refused {
    experiment::Mistake mistake;
    std::string label;  // of the first case
    std::size_t more = 0;
  };
  std::vector<Refused> all;
  for (const PlannedCase& c : cases) {
    const bool is_refused = c.walk.state == WalkState::refused;
    const bool is_mistake = is_refused || (c.walk.state == WalkState::too_large && !allows_oom(loaded.experiment));
    if (!is_mistake) continue;
    const experiment::Place place = place_of(loaded, is_refused ? c.walk.reason : "");
    const auto same = std::find_if(all.begin(), all.end(), [&](const Refused& known) {
      const experiment::Mistake& m = known.mistake;
      return m.line == place.line && m.column == place.column && m.text == c.walk.reason;
    });
    if (same != all.end()) {
      ++same->more;
      continue;
    }
    const std::string label = results::case_label(c.request.values.axes, c.request.values.repeat);
    all.push_back({{place.source, place.line, place.column, c.walk.reason},
                   label.empty() ? "" : fmt::format("case {}: {}", c.request.values.index + 1, label)});
  }
  std::vector<experiment::Mistake> mistakes;
  for (Refused& each : all) {
    if (each.more > 0 && each.more + 1 == loaded.experiment.cases.size())
      each.mistake.text += fmt::format(" (all {} cases)", each.more + 1);
    else if (!each.label.empty())
      each.mistake.text +=
          fmt::format(" ({}{})", each.label, each.more > 0 ? fmt::format(", and {} more", each.more) : "");
    mistakes.push_back(std::move(each.mistake));
  }
  return mistakes;
}

worker::FoundDevice as_found(const experiment::DeviceDescription& device, std::int32_t count) {
  worker::FoundDevice found;
  found.status = record::Status::ok;
  found.device.kind = device.kind;
  found.device.name = device.name;
  found.count = count;
  return found;
}

// Why a case is not planned for a device of this kind: its experiment asks for another one.
std::string why_not_planned(const experiment::Case& c, const std::string& kind) {
  if (c.run.device == "auto" || c.run.device == kind) return "";
  return fmt::format(
      "it runs on the device '{}', and a device of the kind '{}' is planned for; --set run.device={} plans it there",
      c.run.device, kind, kind);
}

}  // namespace

bool allows_oom(const experiment::Experiment& experiment) {
  const std::vector<std::string>& allow = experiment.cases.front().run.allow;
  return std::find(allow.begin(), allow.end(), "oom") != allow.end();
}

bool is_fine(const CasesPlan& plan, const experiment::Experiment& experiment) {
  const bool may_be_oom = allows_oom(experiment);
  return std::all_of(plan.cases.begin(), plan.cases.end(), [&](const PlannedCase& c) {
    return (may_be_oom || c.fits != Fits::no) && c.walk.state != WalkState::refused;
  });
}

std::vector<record::CaseRecord> earlier_records(const std::vector<std::string>& given) {
  std::vector<record::CaseRecord> records;
  for (const std::string& each : given)
    for (const fs::path& run : results::runs_of(each)) {
      const fs::path file = results::is_folder(run) ? run / "cases.jsonl" : run;
      if (file.extension() == ".json") {
        const auto summary = results::read_summary_file(file);
        if (summary) records.insert(records.end(), summary->records.begin(), summary->records.end());
        continue;
      }
      const results::CasesFile cases = results::read_cases(file);
      for (const std::string& warning : cases.warnings) results::say_on_stderr(warning);
      records.insert(records.end(), cases.records.begin(), cases.records.end());
    }
  return records;
}

experiment::DeviceDescription device_asked_for(const std::string& given) {
  if (plugin::is_device_word(given)) return device_of_this_machine(given);
  return experiment::find_device_description(given);
}

experiment::DeviceDescription device_of_this_machine(const std::string& wanted) {
  const worker::FoundDevice found = run::ask_for_device(wanted);
  if (!found.is_usable())
    throw experiment::DeviceFileError(
        fmt::format("the device '{}' of this machine cannot be used: {}; --device plans for "
                    "one that is not here: {}",
                    wanted, found.reason, fmt::join(experiment::described_devices(), ", ")));
  // What came along knows more of a usual GPU than the driver reports.
  experiment::DeviceDescription device;
  for (const std::string& name : experiment::described_devices())
    if (experiment::DeviceDescription known = experiment::find_device_description(name);
        known.name == found.device.name)
      device = std::move(known);
  if (device.file.empty()) device.file = "this machine";
  device.kind = found.device.kind;
  device.name = found.device.name;
  device.count = found.count;
  device.memory_total_mib = found.device.memory_total_mib.value_or(0);
  device.compute_units = found.device.compute_units.value_or(0);
  for (std::size_t i = 0; i < experiment::arithmetics.size(); ++i)
    if (const auto peak = record::stated_peak(device.name, experiment::arithmetics[i])) {
      device.tflop_per_s[i] = peak->gflop_per_s.value_or(0) / 1e3;
      device.memory_gbytes_per_s = peak->gbytes_per_s.value_or(0);
    }
  return device;
}

experiment::DeviceDescription usual_device(const std::string& kind) {
  if (const KindOfDevice* const row = kind_of_device(kind); row && !row->usual.empty())
    return experiment::find_device_description(std::string(row->usual));
  experiment::DeviceDescription device;
  device.kind = device.name = kind;
  device.count = 1;
  device.compute_units = std::max(1U, std::thread::hardware_concurrency());
  device.memory_total_mib = 1 << 20;
  return device;
}

ExperimentPlan plan_of(const run::LoadedExperiment& loaded, const PlanOptions& options) {
  const experiment::Experiment& experiment = loaded.experiment;
  const experiment::DeviceDescription device =
      options.device ? *options.device : device_of_this_machine(experiment.cases.front().run.device);
  run::PlanBasis basis{.schema = loaded.target.schema, .launched = std::nullopt};
  basis.ask_device = [&](const std::string&) { return as_found(device, options.devices.value_or(device.count)); };
  basis.files_of = [](const std::string&, std::int32_t) { return record::Named<std::string>(); };
  basis.hash_of_input = [](const std::string&) { return std::string(); };
  basis.wants_hashes = false;
  run::RunPlan run_plan = run::make_plan(experiment, basis);
  ExperimentPlan result;
  if (options.wants_time) {
    std::vector<const run::CasePlan*> pending;
    for (std::size_t i = 0; i < run_plan.cases.size(); ++i)
      if (!options.done.contains(i)) pending.push_back(&run_plan.cases[i]);
    result.estimate = run::estimate_by_earlier_runs(experiment, loaded.target.schema, pending);
  }

  // What is not to be run, or not there, is not walked through.
  WalkedCases request{{loaded.target.plugin_file, loaded.target.schema}, device, {}, options.earlier, options.largest};
  std::vector<PlannedCase> all(run_plan.cases.size());
  std::vector<std::size_t> walked;
  std::int32_t ranks_of_all = 0;
  for (std::size_t i = 0; i < run_plan.cases.size(); ++i) {
    run::CasePlan& planned = run_plan.cases[i];
    if (planned.values.run.ranks == experiment::ranks_all) ranks_of_all = planned.ranks;
    if (const std::string why = why_not_planned(planned.values, device.kind); !why.empty()) {
      all[i].request = {std::move(planned.values), planned.ranks};
      all[i].walk.reason = why;
    } else if (planned.refusal) {
      all[i].request = {std::move(planned.values), planned.ranks};
      all[i].walk.state = WalkState::unsupported;
      all[i].walk.reason = planned.refusal->reason;
    } else {
      request.cases.push_back({std::move(planned.values), planned.ranks}), walked.push_back(i);
    }
  }
  result.plan = plan_cases(std::move(request));
  for (std::size_t k = 0; k < walked.size(); ++k) all[walked[k]] = std::move(result.plan.cases[k]);
  if (walked.size() < all.size()) result.plan.node_hours_are_least = true;
  result.plan.cases = std::move(all);
  if (ranks_of_all > 0)
    result.plan.notes.push_back(
        fmt::format("run.ranks = \"all\" is planned as {} rank{}; --set run.ranks=N plans another number", ranks_of_all,
                    ranks_of_all == 1 ? "" : "s"));
  result.mistakes = mistakes_in(loaded, result.plan.cases);
  return result;
}

namespace {

// Asks the plugin, on this device, about the cases whose [run] device is `wanted`.
console::RefusedCases refused_on(const run::LoadedExperiment& loaded,
                                 const std::optional<wireup::LaunchedRank>& launched, const std::string& wanted,
                                 const experiment::DeviceDescription& device) {
  constexpr std::chrono::seconds patience{3};
  run::PlanBasis basis{.schema = loaded.target.schema, .launched = launched};
  basis.ask_device = [&](const std::string&) { return as_found(device, device.count); };
  basis.files_of = [](const std::string&, std::int32_t) { return record::Named<std::string>(); };
  basis.hash_of_input = [](const std::string&) { return std::string(); };
  basis.wants_hashes = false;
  std::vector<WalkRequest> requests;
  for (const run::CasePlan& planned : run::make_plan(loaded.experiment, basis).cases)
    if (planned.values.run.device == wanted && !planned.refusal) requests.push_back({planned.values, planned.ranks});
  std::vector<Walk> walks = create_cases({loaded.target.plugin_file, loaded.target.schema}, device, requests, patience);
  std::vector<PlannedCase> refused;
  std::size_t not_asked = 0;
  for (std::size_t i = 0; i < walks.size(); ++i) {
    if (walks[i].state == WalkState::not_known && walks[i].reason.empty()) ++not_asked;
    if (walks[i].state != WalkState::refused) continue;
    PlannedCase& c = refused.emplace_back();
    c.request = std::move(requests[i]), c.walk = std::move(walks[i]);
  }
  return {mistakes_in(loaded, refused), refused.size(), not_asked};
}

// With a device as it is usual: nothing is asked of this machine's, which takes longer.
bool may_refuse(const run::LoadedExperiment& loaded, const std::optional<wireup::LaunchedRank>& launched,
                const std::string& wanted) {
  std::vector<std::string> kinds{wanted};
  if (wanted == "auto") {
    kinds = plugin::installed_device_kinds();
    std::erase_if(kinds, [](const std::string& kind) { return !kind_of_device(kind); });
  }
  return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
    return refused_on(loaded, launched, wanted, usual_device(kind)).cases > 0;
  });
}

}  // namespace

console::RefusedCases refused_by_plugin(const run::LoadedExperiment& loaded,
                                        const std::optional<wireup::LaunchedRank>& launched) try {
  console::RefusedCases refused;
  std::map<std::string, bool> wanted;  // [run] device, and whether cases take all of the devices
  for (const experiment::Case& c : loaded.experiment.cases)
    wanted[c.run.device] = wanted[c.run.device] || c.run.ranks == experiment::ranks_all;
  for (const auto& [kind, takes_all] : wanted) {
    if (kind != "auto" && !kind_of_device(kind)) continue;  // nothing stands in for it: a worker asks the plugin
    if (!takes_all && !may_refuse(loaded, launched, kind)) continue;
    console::RefusedCases here = refused_on(loaded, launched, kind, device_of_this_machine(kind));
    refused.cases += here.cases;
    for (experiment::Mistake& mistake : here.mistakes) refused.mistakes.push_back(std::move(mistake));
  }
  return refused;
} catch (const experiment::DeviceFileError&) {  // no such device is here: each case will say so
  return {};
} catch (const plugin::PluginError&) {  // it does not open in a child of this process; a worker will say why
  return {};
}

void print_plan(const ExperimentPlan& planned, const std::string& largest) {
  const results::Table table = results::without_empty_columns(table_of(planned.plan, largest), 0);
  fmt::print("{}\n{}",
             results::table_on_terminal(table, results::table_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO)),
             results::lines_on_terminal(below_table(planned.plan), STDOUT_FILENO));
}

int show_plan_of_dry_run(const run::LoadedExperiment& loaded, const PlanOptions& options) try {
  const ExperimentPlan planned = plan_of(loaded, options);
  fmt::print("\n");
  print_plan(planned);
  return planned.mistakes.empty() ? exit_ok : console::report_mistakes(planned.mistakes);
} catch (const std::exception& e) {
  fmt::print("\nnot planned: {}\n", e.what());
  return exit_ok;
}

int report_what_plugin_refuses(const run::LoadedExperiment& loaded, std::int64_t gpus_per_node) try {
  std::set<std::string> wanted;  // [run] device
  for (const experiment::Case& c : loaded.experiment.cases) wanted.insert(c.run.device);
  console::RefusedCases refused;
  for (const std::string& word : wanted) {
    experiment::DeviceDescription device =
        usual_device(word == "auto" ? std::string(kinds_of_devices.front().name) : word);
    if (gpus_per_node > 0 && device.kind != "cpu") device.count = static_cast<std::int32_t>(gpus_per_node);
    console::RefusedCases here = refused_on(loaded, std::nullopt, word, device);
    refused.not_asked += here.not_asked;
    for (experiment::Mistake& mistake : here.mistakes) refused.mistakes.push_back(std::move(mistake));
  }
  if (refused.not_asked > 0)
    fmt::print("note: a dry run had time to ask the plugin about {} of {} cases\n",
               loaded.experiment.cases.size() - refused.not_asked, loaded.experiment.cases.size());
  return refused.mistakes.empty() ? exit_ok : console::report_mistakes(refused.mistakes);
} catch (const std::exception& e) {
  fmt::print("not planned: {}\n", e.what());
  return exit_ok;
}

}  // namespace assay::host::plan
