#include "run/in_process_case.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/exit_code.hpp"
#include "plugin/library_copy.hpp"
#include "run/thread_plan.hpp"
#include "worker/case_runner.hpp"

namespace assay::host::run {
namespace {

class ProgressObserver final : public worker::CaseObserver {
 public:
  explicit ProgressObserver(const StageProgress& progress) : progress_(progress) {}
  void stage(Stage stage, std::int64_t total_steps) override {
    stage_ = stage, total_ = total_steps, part_.clear();
    progress_(name_of(stage_), 0, total_, "", part_);
  }
  void step(std::int64_t done) override { progress_(name_of(stage_), done, total_, "", part_); }
  void part(std::string_view name) override {
    part_ = name, total_ = 0;
    progress_(name_of(stage_), 0, total_, "", part_);
  }

 private:
  const StageProgress& progress_;
  Stage stage_ = Stage::load;
  std::int64_t total_ = 0;
  std::string part_;
};

// OpenMP's runtime reads its variables once, when the backend of the first case's device brings it along: what that
// case finds counts for all.
const record::Threads& threads_of_this_process(const worker::CaseSpec& first) {
  static const record::Threads threads = [&first] {
    record::Threads counted = thread_count(first);
    const std::string setting = thread_setting(first);
    for (const auto& [name, value] : wait_variables(counted)) setenv(name.c_str(), value.value().c_str(), 1);
    setenv(threads_variable, setting.c_str(), 1);
    return counted;
  }();
  return threads;
}

// A worker is started with the folder of what lies beside the plugin among those that the loader searches. This process
// was not: it opens that before, what others need first, and the loader takes what is open.
void open_what_lies_beside(const worker::CaseSpec& spec) {
  const std::filesystem::path plugin = spec.plugin_file;
  for (auto file = spec.copies.rbegin(); file != spec.copies.rend(); ++file)
    if (const std::filesystem::path copy = file->copy; copy != plugin && copy.parent_path() == plugin.parent_path())
      plugin::keep_open(copy);
}

// What a plugin ends with exit() is no success, and says so.
bool is_in_case = false;
void end_of_process() {
  if (!is_in_case) return;
  std::fputs("assay: the plugin has ended the process (exit) in the middle of a case\n", stderr);
  std::_Exit(exit_failed);
}
class InCase {
 public:
  InCase() {
    [[maybe_unused]] static const int registered = std::atexit(end_of_process);
    is_in_case = true;
  }
  ~InCase() { is_in_case = false; }
  InCase(const InCase&) = delete;
  InCase& operator=(const InCase&) = delete;
};

}  // namespace

record::CaseResult run_in_this_process(const worker::CaseSpec& spec, const StageProgress& on_progress) {
  const record::Threads& threads = threads_of_this_process(spec);
  ProgressObserver observer(on_progress);
  const InCase in_case;
  open_what_lies_beside(spec);
  record::CaseResult result;
  worker::CaseTeardown teardown =
      worker::run_case(spec, observer, [&result](const worker::CaseAnswer& answer) { result = answer.result; });
  worker::add_teardown(result, std::move(teardown));
  add_threads(spec, threads, result);
  return result;
}

}  // namespace assay::host::run
