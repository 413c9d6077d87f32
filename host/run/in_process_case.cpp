#include "run/in_process_case.hpp"

#include <cstdlib>

#include "run/thread_plan.hpp"
#include "worker/case_runner.hpp"

namespace assay::host::run {
namespace {

class ProgressObserver final : public worker::CaseObserver {
 public:
  explicit ProgressObserver(const StageProgress& progress) : progress_(progress) {}
  void stage(Stage stage, std::int64_t total_steps) override {
    stage_ = stage, total_ = total_steps;
    progress_(name_of(stage_), 0, total_, "");
  }
  void step(std::int64_t done) override { progress_(name_of(stage_), done, total_, ""); }

 private:
  const StageProgress& progress_;
  Stage stage_ = Stage::load;
  std::int64_t total_ = 0;
};

}  // namespace

record::CaseResult run_in_this_process(const worker::CaseSpec& spec, const StageProgress& on_progress) {
  // Those of the first case count for all: OpenMP's runtime reads them when the device's backend brings it along.
  setenv(threads_variable, thread_setting(spec).c_str(), 1);
  ProgressObserver observer(on_progress);
  record::CaseResult result;
  worker::CaseTeardown teardown =
      worker::run_case(spec, observer, [&result](const worker::CaseAnswer& answer) { result = answer.result; });
  worker::add_teardown(result, std::move(teardown));
  return result;
}

}  // namespace assay::host::run
