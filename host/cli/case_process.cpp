#include "cli/case_process.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "cli/rank_report.hpp"
#include "cli/worker_order.hpp"
#include "worker/case_runner.hpp"
#include "worker/device_probe.hpp"

namespace assay::host {
namespace {

namespace fs = std::filesystem;

class TerminalObserver final : public CaseObserver {
 public:
  explicit TerminalObserver(const StageProgress& progress) : progress_(progress) {}
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

CaseOutcome run_case_on(const Case& c, const std::string& device_kind, const CaseContext& context) {
  const WorkerOrder order = make_order(c, device_kind, context);
  if (context.in_process || !c.run.isolate) {
    setenv("OMP_NUM_THREADS", thread_setting(order).c_str(), 1);
    TerminalObserver observer(context.on_progress);
    return {run_case(order.spec, observer), context.interrupts.count()->load() > 0};
  }
  const WorkerRequest request = make_request(order, context.interrupts.wake_fd());
  const WorkerOutcome outcome = supervise(
      request,
      [&](const BoardView& view) {
        const bool in_phase = view.phase >= 0 && static_cast<std::size_t>(view.phase) < request.phase_names.size();
        context.on_progress(name_of(view.stage), static_cast<std::int64_t>(view.step),
                            static_cast<std::int64_t>(view.total_steps),
                            in_phase ? request.phase_names[static_cast<std::size_t>(view.phase)] : "");
      },
      context.interrupts.count());
  if (outcome.status == WorkerStatus::interrupted) return {Record(), true};
  Record part = part_of(outcome);
  part.erase("of_another_rank");
  if (!outcome.log_note.empty()) part["notes"].push_back(outcome.log_note);
  return {std::move(part), false};
}

Record probe_in_process_of_its_own(const std::string& wanted, const fs::path& log_file,
                                   const InterruptHandler& interrupts) {
  WorkerOrder order;
  order.log_file = log_file;
  order.timeout = std::chrono::seconds(60);
  WorkerRequest request = make_request(order, interrupts.wake_fd());
  request.spec = nlohmann::json{{"probe", wanted}}.dump();
  const WorkerOutcome outcome = supervise(request, {}, interrupts.count());
  if (outcome.status == WorkerStatus::finished && outcome.events.result) {
    const Record event = Record::parse(*outcome.events.result, nullptr, false);
    if (event.is_object() && event.contains("probe")) return event["probe"];
  }
  return {{"status", "failed"}, {"reason", fmt::format("asking for device '{}': {}", wanted, outcome.reason)}};
}

}  // namespace assay::host
