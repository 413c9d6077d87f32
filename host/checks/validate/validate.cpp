#include "validate/validate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/child.hpp"
#include "common/fd.hpp"
#include "experiment/parse.hpp"
#include "experiment/presets.hpp"
#include "plugin/entry_check.hpp"
#include "plugin/search.hpp"
#include "validate/exports.hpp"
#include "validate/probes.hpp"
#include "validate/table_checks.hpp"

namespace assay::host::validate {
namespace {

namespace fs = std::filesystem;

struct ProbeRow {
  Probe probe;
  int level;
  const char* name;   // for the words of whoever waits
  Check first;        // that it asks: what happens before counts as that
  bool needs_a_life;  // that came to its end
};
constexpr ProbeRow probes[] = {
    {life_probe, 2, "a life", Check::create_default, false},
    {values_probe, 2, "parameters", Check::create_destroy, false},
    {bare_probe, 2, "a host without extensions", Check::create_bare, false},
    {account_probe, 2, "the account of steps", Check::account_kept, true},
    {choices_probe, 2, "other choices", Check::marks_seen, true},
    {pair_probe, 2, "two objects", Check::objects_two, true},
    {refusal_probe, 3, "memory refused", Check::memory_refused, true},
    {change_probe, 3, "memory changed", Check::verify_finds, true},
    {repeat_probe, 3, "the same seed", Check::seed_same, true},
};

// What a plugin prints, and how much of it.
Fd memory_for_output() {
  Fd memory(::memfd_create("output", MFD_CLOEXEC));
  return memory;
}

std::string last_line_of(const Fd& memory) {
  constexpr off_t most = 2000;
  const off_t size = ::lseek(memory.get(), 0, SEEK_END);
  if (size <= 0) return "";
  std::string text(static_cast<std::size_t>(std::min(size, most)), ' ');
  const ssize_t n = ::pread(memory.get(), text.data(), text.size(), std::max<off_t>(size - most, 0));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  constexpr std::size_t longest = 200;
  const std::size_t begin = text.rfind('\n');
  return text.substr(begin == std::string::npos ? 0 : begin + 1, longest);
}

class Validation {
 public:
  explicit Validation(const Request& request) : request_(request) { report_.file = request.file.string(); }

  Report run() {
    report_.level = request_.level;
    load();
    if (tables_) {
      const std::vector<plugin::WorkloadSchema> schemas = chosen();
      for (const plugin::WorkloadSchema& schema : schemas) workload(schema);
      // What was set is a mistake where no workload has it; the others of the plugin may have other parameters.
      if (!refused_settings_.empty() && refused_settings_.size() == schemas.size())
        throw RequestError(refused_settings_.front());
    }
    return std::move(report_);
  }

 private:
  void load() {
    request_.tell_progress("opening it");
    Answers& answers = report_.plugin;
    const Progress progress =
        ask([&](const Asker& asker) { load_probe(request_.file, asker); }, Check::load_survives, answers);
    if (!progress.tables.empty()) tables_ = plugin::tables_from_line(progress.tables);
    if (tables_) {
      check_tables(*tables_, answers);
      answers.pass(Check::entry_alone);
      if (const std::string others = other_exports(request_.file); !others.empty())
        answers.find(Check::entry_alone, fmt::format("it also exports {}", others));
    }
    if (is_cut_short(request_.file))
      answers.find(Check::file_readable, "its table of sections lies beyond its end: the file is cut short");
    leave_out_rest(answers, 1, 1);
  }

  std::vector<plugin::WorkloadSchema> chosen() const {
    if (request_.workload.empty()) return tables_->workloads;
    try {
      return {tables_->workload(request_.file, request_.workload)};
    } catch (const plugin::PluginError& e) {
      throw RequestError(e.what());
    }
  }

  void workload(const plugin::WorkloadSchema& schema) {
    if (request_.level < 2) return;
    WorkloadReport& report = report_.workloads.emplace_back();
    report.workload = schema.id;
    Subject subject{request_.file, schema, tables_->abi_minor, {}};
    std::string why;
    if (!find_device(schema, subject.spec, why) || !make_case(schema, subject.spec, why))
      return leave_out(report.answers, 2, highest_level, why);
    report.device = subject.spec.device_kind;
    for (const ProbeRow& row : probes) {
      if (row.level > request_.level) continue;
      if (row.needs_a_life && !lives(report.answers)) continue;
      if (row.probe == choices_probe && !has_unseen(report.answers)) continue;
      request_.tell_progress(fmt::format("{}: {}", schema.id, row.name));
      const bool is_life = row.probe == life_probe;
      ask([&](const Asker& asker) { row.probe(subject, asker); }, row.first, report.answers, is_life);
      if (!is_life) continue;
      // What it was not made for is no mistake of it: several ranks, a device of another kind.
      const Answer& created = report.answers.of(Check::create_default);
      if (created.state == State::found) {
        const bool is_unsupported = created.status == ASSAY_UNSUPPORTED;
        const std::string said = created.text;
        if (is_unsupported) report.answers = Answers();
        leave_out(report.answers, 2, highest_level,
                  is_unsupported ? fmt::format("create says {}", said) : "create.default found something");
        return;
      }
    }
    leave_out_rest(report.answers, 2, request_.level);
  }

  bool find_device(const plugin::WorkloadSchema& schema, worker::CaseSpec& spec, std::string& why) const {
    const std::string wanted = request_.device != "auto" ? request_.device
                               : schema.devices.empty()  ? "cpu"
                                                         : schema.devices.front();
    if (!schema.runs_on(wanted)) {
      why = fmt::format("the workload does not run on the device '{}'", wanted);
      return false;
    }
    try {
      spec.device_file = plugin::device_file(wanted).string();
    } catch (const plugin::PluginError&) {
      why = fmt::format("the workload needs the device '{}', and this installation has no backend of it", wanted);
      return false;
    }
    spec.device_kind = wanted;
    if (wanted == "cpu") return true;
    const ChildEnd end = run_in_child([&](const Send& send) {
      try {
        const plugin::OpenDevice device(plugin::DeviceLibrary::open(spec.device_file), 0);
      } catch (const std::exception& e) {
        send(e.what());
      }
    });
    if (end.is_clean() && end.text.empty()) return true;
    why = fmt::format("the workload needs the device '{}': {}", wanted, end.text.empty() ? end.how() : end.text);
    return false;
  }

  // The case of an experiment that has only what was set.
  bool make_case(const plugin::WorkloadSchema& schema, worker::CaseSpec& spec, std::string& why) {
    const std::string text = fmt::format(
        "schema = 1\nname = \"validate\"\n[workload]\nplugin = \"validated\"\n[measure]\nwarmup = 1\nsteps = 3\n"
        "[run]\ndevice = \"{}\"\n",
        spec.device_kind);
    experiment::ParseResult result =
        experiment::ExperimentFile::from_text(text, fs::current_path() / "validate.toml", request_.set).finish(&schema);
    if (!result.mistakes.empty()) {
      why = result.mistakes.front().to_string();
      if (request_.set.empty()) return why = fmt::format("{}; give it with --set", why), false;
      refused_settings_.push_back(why);
      return false;
    }
    if (result.experiment->cases.size() != 1) throw RequestError("--set: a plugin is validated with one case");
    spec.values = result.experiment->cases.front();
    experiment::apply_presets(schema, "", spec.values);
    experiment::apply_presets(schema, spec.device_kind, spec.values);
    spec.plugin_file = request_.file.string();
    spec.workload = schema.id;
    spec.phase_names = schema.phases;
    spec.comm_folder = plugin::comm_folder().string();
    spec.run_folder = fs::current_path().string();
    return true;
  }

  // `first`: what is to blame for an end before anything was asked.
  Progress ask(const std::function<void(const Asker&)>& probe, Check first, Answers& answers,
               bool runs_exit_handlers = false) {
    if (request_.in_process) {
      std::string sent;
      try {
        probe(Asker([&](std::string_view text) { sent += text; }));
      } catch (const std::exception& e) {
        const Progress so_far = take_in(sent, answers);
        answers.find(so_far.has_asked ? so_far.last : first, e.what());
      }
      return take_in(sent, answers);
    }
    const Fd output = memory_for_output();
    const auto in_child = [&](const Send& send) {
      // Threads that wait in a loop would take the processor from each other in a test beside others.
      setenv("OMP_WAIT_POLICY", "passive", 0);
      const Asker asker(send);
      try {
        probe(asker);
      } catch (const std::exception& e) {
        send(fmt::format("{{\"failed\":true}}\n"));
        throw;
      }
    };
    const ChildEnd end = run_in_child(
        in_child, {.deadline = request_.deadline, .runs_exit_handlers = runs_exit_handlers, .output = output.get()});
    const Progress progress = take_in(end.text, answers);
    if (end.is_clean()) return progress;
    const Check check = progress.has_asked ? progress.last : first;
    if (end.is_overdue && first == Check::marks_seen) {  // which are other cases than the one that was asked for
      const std::string why = "to try all other choices takes longer than --timeout";
      answers.leave_out(Check::marks_seen, why), answers.leave_out(Check::metrics_seen, why);
      return progress;
    }
    std::string what =
        end.is_overdue
            ? fmt::format(
                  "it does not come to an end within {} s; --set tries a smaller case, --timeout gives it longer",
                  static_cast<double>(request_.deadline.count()) / 1000)
        : end.text.ends_with("{\"failed\":true}\n") ? last_line_of(output)
                                                    : fmt::format("the process ends: {}", end.how());
    if (!progress.place.empty()) what = fmt::format("{}: {}", progress.place, what);
    if (const std::string said = last_line_of(output); !said.empty() && !what.ends_with(said))
      what += fmt::format(", after \"{}\"", said);
    answers.find(check, std::move(what));
    return progress;
  }

  // One object comes through its steps by itself: otherwise asking two, or again, shows nothing new.
  static bool lives(const Answers& answers) {
    return answers.of(Check::destroy_works).state == State::passed &&
           std::none_of(all_checks().begin(), all_checks().end(), [&](const CheckRow& row) {
             const bool is_step = row.check == Check::setup_works || row.check == Check::run_works ||
                                  row.check == Check::finish_works || row.check == Check::finish_steps ||
                                  row.check == Check::verify_passes;
             return is_step && answers.of(row.check).state == State::found;
           });
  }

  // Neither seen, nor left out as absent.
  static bool has_unseen(const Answers& answers) {
    for (const Check check : {Check::marks_seen, Check::metrics_seen})
      if (answers.of(check).state == State::not_asked && answers.of(check).text.empty()) return true;
    return false;
  }

  static void leave_out(Answers& answers, int first, int last, const std::string& why) {
    for (const CheckRow& row : all_checks())
      if (row.level >= first && row.level <= last) answers.leave_out(row.check, why);
  }

  // What nobody came to ask, because of what was found before.
  static void leave_out_rest(Answers& answers, int first, int last) {
    std::string why = "the workload does not come so far";
    for (const CheckRow& row : all_checks())
      if (row.level >= first && row.level <= last && row.severity == Severity::error &&
          answers.of(row.check).state == State::found) {
        why = fmt::format("{} comes first", row.name);
        break;
      }
    leave_out(answers, first, last, why);
  }

  const Request& request_;
  Report report_;
  std::optional<plugin::PluginTables> tables_;
  std::vector<std::string> refused_settings_;  // by workload, why what was set does not belong to it
};

}  // namespace

Report validate(const Request& request) { return Validation(request).run(); }

}  // namespace assay::host::validate
