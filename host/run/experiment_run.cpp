#include "run/experiment_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "experiment/hash.hpp"
#include "launch/launch_error.hpp"
#include "profile/nsys.hpp"
#include "results/reader.hpp"
#include "results/utc.hpp"
#include "run/exit_code.hpp"
#include "telemetry/environment.hpp"
#include "worker/device_probe.hpp"

namespace assay::host {
namespace {

std::string status_of(const Record& record) { return record.value("status", ""); }

bool is_ok_or_allowed(const Record& record, const std::vector<std::string>& allow) {
  const std::string status = status_of(record);
  return status == "ok" || std::find(allow.begin(), allow.end(), status) != allow.end();
}

// What another run could not make better: a case with one of these is finished; the others run again on --resume.
bool is_finished(const Record& record, const std::vector<std::string>& allow) {
  return is_ok_or_allowed(record, allow) || status_of(record) == "unsupported";
}

// The worker's part of the record of a case for which no worker was started.
Record part_without_worker(const std::string& status, const std::string& reason) {
  return {{"status", status}, {"reason", reason}, {"stage", "load"}, {"phase", ""}};
}

}  // namespace

ExperimentRun::ExperimentRun(const Experiment& experiment, const RunTarget& target, RunOptions options,
                             RunListener& listener, std::optional<LaunchedRank> launched)
    : experiment_(experiment),
      target_(target),
      options_(options),
      listener_(listener),
      launched_(std::move(launched)) {}

void ExperimentRun::open_folder() {
  if (options_.resume) {
    if (const auto newest = find_newest_run(experiment_.output.dir, experiment_.name)) {
      folder_ = RunFolder::reopen(*newest);
      folder_->replace_experiment(experiment_.resolved_toml);
      resumed_ = true;
    } else {
      listener_.message(fmt::format("--resume: no earlier run of '{}' below {}; starting one", experiment_.name,
                                    experiment_.output.dir.string()));
    }
  }
  if (!folder_)
    folder_ =
        RunFolder::create(experiment_.output.dir, experiment_.name, experiment_.resolved_toml, capture_environment());
  for (const std::string& note : folder_->notes()) listener_.message("note: " + note);
}

const ExperimentRun::Device& ExperimentRun::device_for(const Case& c) {
  const auto known = devices_.find(c.run.device);
  if (known != devices_.end()) return known->second;
  Device device;
  device.probe = options_.in_process
                     ? probe_device(c.run.device)
                     : probe_in_process_of_its_own(c.run.device, folder_->logs_path() / "devices.log", interrupts_);
  if (const std::string note = device.probe.value("note", ""); !note.empty()) listener_.message("note: " + note);
  return devices_.emplace(c.run.device, std::move(device)).first->second;
}

RankCount ExperimentRun::ranks_of(const Case& c, const Device& device) const {
  if (!device.usable()) return {};
  return rank_count_of(c, *crew_, device.kind(), device.count(), options_.in_process);
}

std::string ExperimentRun::hash_of(const Case& c, const Device& device) {
  std::vector<std::pair<std::string, std::string>> identity = {{"plugin", target_.file_hash}};
  if (device.usable())
    for (const char* key : {"kind", "name", "libraries"})
      identity.emplace_back(std::string("device.") + key, device.probe["device"].value(key, ""));
  // "all" is another number on another machine.
  if (const std::int32_t ranks = ranks_of(c, device).count; ranks > 1)
    identity.emplace_back("ranks", std::to_string(ranks));
  // An input is its content, not its path.
  for (const ParamSpec& p : target_.schema.params)
    if (const auto* path = p.input_path ? std::get_if<std::string>(&c.params.at(p.name)) : nullptr;
        path && !path->empty()) {
      const auto [known, is_new] = input_hashes_.try_emplace(*path);  // a sweep names the same weights in every case
      if (is_new) known->second = hash_file(*path);
      identity.emplace_back("input:" + p.name, known->second);
    }
  return case_hash(c, target_.schema.id, identity);
}

std::set<std::string> ExperimentRun::finished_before() const {
  std::set<std::string> finished;
  if (!resumed_) return finished;
  for (const Record& record : read_cases(folder_->cases_path()).records)
    if (is_finished(record, experiment_.cases.front().run.allow)) finished.insert(record.value("hash", ""));
  return finished;
}

Record ExperimentRun::full_record(const Case& c, const std::string& hash, const Device& device, Record worker_part,
                                  const std::string& started) const {
  Record record = {{"schema", 1}, {"index", c.index}, {"hash", hash}, {"axes", Record::object()}};
  for (const auto& [key, value] : c.axes) record["axes"][key] = Record(to_json(value));
  for (const char* key : {"status", "reason", "stage", "phase"}) record[key] = worker_part.value(key, "");
  record["rank"] = worker_part.value("rank", Record());
  record["ranks"] = ranks_of(c, device).count;
  record["workload"] = target_.schema.id;
  const assay_entry& entry = target_.found.library->entry();
  record["plugin"] = {
      {"id", entry.id}, {"version", entry.version}, {"build", entry.build}, {"file_hash", target_.file_hash}};
  if (device.usable()) record["device"] = device.probe["device"];
  record["params"] = Record::object();
  for (const ParamSpec& p : target_.schema.params) record["params"][p.name] = Record(to_json(c.params.at(p.name)));
  record["settings"] = Record::object();
  for (const auto& [key, value] : c.settings()) record["settings"][key] = Record(to_json(value));
  for (const auto& [key, value] : worker_part.items())
    if (!record.contains(key) || key == "device") record[key] = value;
  record["started"] = started;
  return record;
}

CaseOutcome ExperimentRun::run(const Case& c, const Device& device, const CaseContext& context) {
  if (!device.usable())
    return {part_without_worker(device.probe.value("status", "failed"), device.probe.value("reason", ""))};
  const RankCount ranks = ranks_of(c, device);
  if (!ranks.refusal.empty()) return {part_without_worker("unsupported", ranks.refusal)};
  if (ranks.count == 1) return run_case_on(c, device.kind(), context);
  try {
    return run_ranks(c, ranks.count, device.kind(), device.count(), context, *crew_);
  } catch (const LaunchError& e) {
    return {part_without_worker("failed", e.what())};
  }
}

int ExperimentRun::run() {
  crew_ = launched_
              ? std::make_unique<Crew>(*launched_, experiment_.output.dir, experiment_.cases.front().run.wireup_timeout)
              : std::make_unique<Crew>();
  open_folder();
  const std::set<std::string> finished = finished_before();
  struct Pending {
    const Case* c;
    std::string hash;
  };
  std::vector<Pending> to_run;
  for (const Case& c : experiment_.cases)
    if (std::string hash = hash_of(c, device_for(c)); !finished.contains(hash)) to_run.push_back({&c, std::move(hash)});
  listener_.run_started(experiment_, folder_->path().string(), resumed_, experiment_.cases.size() - to_run.size());

  tell_of_nsys();
  const CaseContext context{target_, interrupts_, folder_->path(),
                            [&](const char* stage, std::int64_t step, std::int64_t total, const std::string& phase) {
                              listener_.progress(stage, step, total, phase);
                            },
                            options_.in_process};
  bool interrupted = false;
  for (std::size_t i = 0; i < to_run.size() && !interrupted; ++i) {
    const Case& c = *to_run[i].c;
    if (interrupts_.count()->load() > 0) {
      interrupted = true;
      break;
    }
    const Device& device = device_for(c);
    listener_.case_started(c, i, to_run.size());
    const std::string started = utc_text(std::chrono::system_clock::now());
    CaseOutcome outcome = run(c, device, context);
    interrupted = outcome.interrupted;
    Record part = std::move(outcome.record);
    if (part.is_null()) break;
    const Record record = full_record(c, to_run[i].hash, device, std::move(part), started);
    folder_->append(record);
    listener_.case_finished(record);
  }
  const Views views = write_views(folder_->path(), experiment_);
  const int code = exit_code(views.records, interrupted);
  listener_.run_finished(experiment_, views, folder_->path().string(), interrupted, code);
  crew_->dismiss(code);
  return code;
}

void ExperimentRun::tell_of_nsys() {
  std::size_t wanting = 0;
  bool on_gpu = false;
  for (const Case& c : experiment_.cases) {
    if (!c.profile.nsys) continue;
    ++wanting;
    const Device& device = device_for(c);
    on_gpu = on_gpu || (device.usable() && device.probe["device"].value("kind", "") == "cuda");
  }
  if (wanting == 0) return;
  if (!on_gpu) return listener_.message("note: [profile] nsys records GPU cases; there is none in this run");
  const char* path = std::getenv("PATH");
  const bool is_wrapped = experiment_.cases.front().run.isolate && !options_.in_process;
  if (options_.in_process || (is_wrapped && find_program("nsys", path ? path : ""))) return;
  // The resolved experiment says all that the command line said, so that this line is all there is to copy.
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(folder_->path()).lexically_normal();
  std::vector<std::string> words = nsys_arguments(folder / "nsys", wanting);
  words.insert(words.begin(), "nsys");
  for (const std::string& word :
       {std::filesystem::read_symlink("/proc/self/exe", error).string(), std::string("run"),
        (folder / "experiment.toml").string(), std::string("--in-process"), std::string("--plugin-path"),
        std::filesystem::absolute(target_.found.library->file()).parent_path().lexically_normal().string()})
    words.push_back(word);
  listener_.message(fmt::format("note: nsys {}; the cases run without it. To record them, run: {}",
                                is_wrapped ? "is not on the PATH" : "needs isolate = true", shell_command(words)));
}

int ExperimentRun::exit_code(const std::vector<Record>& records, bool interrupted) const {
  if (interrupted) return exit_interrupted;
  std::set<std::int64_t> wanted;
  for (const Case& c : experiment_.cases) wanted.insert(c.index);
  for (const Record& record : records) {
    if (!wanted.contains(record.value("index", std::int64_t{-1}))) continue;
    if (!is_ok_or_allowed(record, experiment_.cases.front().run.allow)) return exit_failed;
  }
  return exit_ok;
}

}  // namespace assay::host
