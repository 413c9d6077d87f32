#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"
#include "validate/process_state.hpp"

namespace assay::host::validate {
namespace {

using Clock = std::chrono::steady_clock;

// More than this no processor and no GPU does in a second: what comes out above it is a formula gone wrong.
constexpr double most_flops_per_s = 1e17, most_bytes_per_s = 1e15;

std::string mistake_in(const assay_work& work, const plugin::WorkloadSchema& schema, double step_s) {
  if (work.arithmetic < ASSAY_ARITHMETIC_UNSTATED || work.arithmetic > ASSAY_ARITHMETIC_FP8)
    return fmt::format("arithmetic {} is not a value of ASSAY_ARITHMETIC_*", work.arithmetic);
  if (work.items > 0 && schema.item_unit.empty())
    return fmt::format("{} items, and the workload has no item_unit", work.items);
  if (static_cast<double>(work.flops) > most_flops_per_s * step_s)
    return fmt::format(
        "work() states {} floating-point operations for a step of {:.3g} s; no device computes that fast", work.flops,
        step_s);
  if (static_cast<double>(work.bytes) > most_bytes_per_s * step_s)
    return fmt::format("work() states {} bytes for a step of {:.3g} s; no device moves that many", work.bytes, step_s);
  return "";
}

// One case as `assay run` has it, and what is asked at each of its stages.
class CountedLife {
 public:
  CountedLife(Stage& stage, const Asker& asker) : stage_(stage), asker_(asker), life_(stage) {}

  // False: it ended on the way.
  bool live() {
    if (!create() || !setup() || !steps() || !finish() || !verify()) return false;
    look_at_marks_and_metrics();
    return true;
  }
  Life& life() { return life_; }

 private:
  bool is_ok(Check check, const Outcome& outcome) const {
    if (!outcome.is_ok()) asker_.find(check, outcome.in_words());
    return outcome.is_ok();
  }

  bool create() {
    asker_.ask(Check::create_default);
    const Outcome outcome = life_.create();
    if (!outcome.is_ok()) {
      const std::string mistake = mistake_in_refusal(outcome, life_.is_there());
      if (mistake.empty())
        asker_.find(Check::create_default, outcome.in_words(), outcome.status);
      else
        asker_.find(Check::create_default, mistake);
      return false;
    }
    if (!life_.is_there()) asker_.find(Check::create_default, "ASSAY_OK, and no object");
    return life_.is_there();
  }

  bool setup() {
    asker_.ask(Check::setup_works);
    return is_ok(Check::setup_works, life_.setup());
  }

  bool steps() {
    assay_work before{}, after{};
    const bool has_work = stage_.workload().work != nullptr;
    Outcome work_outcome;
    if (has_work) {
      asker_.ask(Check::work_stated);
      work_outcome = life_.work(before);
    }
    asker_.ask(Check::run_works);
    if (!is_ok(Check::run_works, life_.step(ASSAY_STAGE_WARMUP))) return false;
    const Counts at_begin = stage_.host().counts();
    const std::string output = size_of_output();
    double step_s = 0;
    for (int i = 0; i < measured_steps; ++i) {
      const auto begin = Clock::now();
      if (!is_ok(Check::run_works, life_.step(ASSAY_STAGE_MEASURE))) return false;
      step_s = std::max(step_s, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const bool has_printed = size_of_output() != output;
    const Counts at_end = stage_.host().counts();
    const auto count = [&](Check check, std::size_t begin, std::size_t end, const char* of) {
      asker_.ask(check);
      if (end > begin) asker_.find(check, fmt::format("{} in {} steps: {}", of, measured_steps, end - begin));
    };
    count(Check::run_allocation, at_begin.allocations, at_end.allocations, "allocations");
    count(Check::run_synchronisation, at_begin.synchronisations, at_end.synchronisations, "waits for the device");
    count(Check::run_log, at_begin.logs, at_end.logs, "lines to the log");
    asker_.ask(Check::run_output);
    if (has_printed && at_end.logs == at_begin.logs)  // the log of the host is its standard error
      asker_.find(Check::run_output, "something was printed");
    if (!has_work) {
      asker_.leave_out(Check::work_stated, "the workload states no work");
      return true;
    }
    asker_.ask(Check::work_stated);
    if (!is_ok(Check::work_stated, work_outcome) || !is_ok(Check::work_stated, life_.work(after))) return true;
    if (before.flops != after.flops || before.bytes != after.bytes || before.items != after.items)
      asker_.find(Check::work_stated,
                  fmt::format("after {} steps it is another: {} operations, {} bytes, {} items, before {}, {}, {}",
                              measured_steps + 1, after.flops, after.bytes, after.items, before.flops, before.bytes,
                              before.items));
    const std::string mistake = mistake_in(after, stage_.subject().schema, std::max(step_s, 1e-9));
    if (!mistake.empty()) asker_.find(Check::work_stated, mistake);
    return true;
  }

  bool finish() {
    if (!stage_.workload().finish) {
      for (const Check check : {Check::finish_works, Check::finish_steps})
        asker_.leave_out(check, "the workload has no finish");
      return true;
    }
    asker_.ask(Check::finish_works);
    if (!is_ok(Check::finish_works, life_.finish())) return false;
    if (stage_.subject().abi_minor < 3) {
      asker_.leave_out(Check::finish_steps, "it was built for an ABI before 1.3, which promises that no step follows");
      return true;
    }
    stage_.services().ignore_metrics(true);
    asker_.ask(Check::finish_steps);
    const bool works = is_ok(Check::finish_steps, life_.step(ASSAY_STAGE_WARMUP));
    stage_.services().ignore_metrics(false);
    return works;
  }

  void look_at_marks_and_metrics() {
    const plugin::WorkloadSchema& schema = stage_.subject().schema;
    asker_.ask(Check::marks_balanced);
    const std::string misuse = stage_.recorder().misuse();
    const bool is_of_metric = stage_.recorder().misuse_is_of_metric();
    if (!misuse.empty()) asker_.find(is_of_metric ? Check::metrics_values : Check::marks_balanced, misuse);
    const measure::Samples samples = stage_.recorder().take();
    if (schema.phases.empty()) asker_.leave_out(Check::marks_seen, "the workload has no phases");
    if (schema.metrics.empty()) {
      for (const Check check : {Check::metrics_seen, Check::metrics_values})
        asker_.leave_out(check, "the workload has no metrics");
    } else {
      asker_.ask(Check::metrics_values);
    }
    if (!misuse.empty()) asker_.leave_out(Check::marks_seen, "marks.balanced comes first");
    seen_.add(stage_, samples);
    for (std::size_t i = 0; i < schema.metrics.size(); ++i)
      for (const double value : values_of(stage_, samples, i)) look_at_value(schema.metrics[i], value);
    // Whether all is seen is asked here where it is, and of other choices where it is not.
    if (!schema.phases.empty() && seen_.unseen_phases(schema).empty()) asker_.ask(Check::marks_seen);
    if (!schema.metrics.empty() && seen_.unseen_metrics(schema).empty()) asker_.ask(Check::metrics_seen);
  }

  void look_at_value(const plugin::MetricSpec& metric, double value) {
    if (!std::isfinite(value))
      asker_.find(Check::metrics_values, fmt::format("the metric '{}' is {}", metric.name, value));
    else if (!metric.words.empty() &&
             (value < 0 || value != std::floor(value) || value >= static_cast<double>(metric.words.size())))
      asker_.find(Check::metrics_values, fmt::format("the metric '{}' is {}, which is no index into its {} words",
                                                     metric.name, value, metric.words.size()));
  }

  bool verify() {
    if (!stage_.workload().verify) {
      for (const Check check : {Check::verify_passes, Check::verify_says})
        asker_.leave_out(check, "the workload has no verification");
      return true;
    }
    asker_.ask(Check::verify_passes);
    const Outcome outcome = life_.verify();
    if (is_failure(outcome)) {
      asker_.find(Check::verify_passes, outcome.in_words());
      return false;
    }
    asker_.ask(Check::verify_says);
    if (outcome.text.empty()) asker_.find(Check::verify_says, "it gave no text");
    return true;
  }

  Stage& stage_;
  const Asker& asker_;
  Life life_;
  Seen seen_;
};

// Between the lives of two objects: what one life more leaves.
void compare_lives(const ProcessState& begin, const ProcessState& before, const ProcessState& after,
                   const Asker& asker) {
  const auto found = [&](Check check, bool is_found, const std::string& text) {
    asker.ask(check);
    if (is_found) asker.find(check, text);
  };
  found(Check::leaves_threads, after.threads > before.threads,
        fmt::format("one object more leaves {} threads", after.threads - before.threads));
  const std::string descriptors = new_descriptors(before, after);
  found(Check::leaves_descriptors, !descriptors.empty(), fmt::format("one object more leaves {}", descriptors));
  const std::string handlers = changed_handlers(begin, after);
  found(Check::leaves_signals, !handlers.empty(), fmt::format("others: {}", handlers));
  found(Check::leaves_folder, after.folder != begin.folder, fmt::format("it is {}", after.folder));
  const std::string variables = changed_environment(begin, after);
  found(Check::leaves_environment, !variables.empty(), fmt::format("others: {}", variables));
  found(Check::leaves_processes, after.children > begin.children,
        fmt::format("{} still run", after.children - begin.children));
}

}  // namespace

void life_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject);
  stage.recorder().prepare(1, true);
  const ProcessState begin = ProcessState::now();
  asker.ask(Check::create_default);
  asker.at("init");
  stage.init();
  bool has_lived = false;
  {
    CountedLife counted(stage, asker);
    has_lived = counted.live();
    asker.ask(Check::destroy_works);
    asker.at("destroy");
    counted.life().destroy();
  }
  asker.ask(Check::leaves_memory);
  if (const std::size_t left = stage.services().memory().blocks_left(); left > 0)
    asker.find(Check::leaves_memory, fmt::format("{} blocks are left", left));
  if (has_lived) {
    constexpr std::size_t noise_bytes = 16384;
    std::size_t heap[3];
    ProcessState states[3];
    for (int i = 0; i < 3; ++i) {
      stage.begin_anew();
      {
        Life life(stage);
        asker.ask(Check::destroy_works);
        asker.at(fmt::format("a further object, number {}", i + 2));
        begins(life, 1);
      }
      states[i] = ProcessState::now();
      heap[i] = heap_bytes();
    }
    compare_lives(begin, states[1], states[2], asker);
    asker.ask(Check::leaves_heap);
    if (heap[1] > heap[0] + noise_bytes && heap[2] > heap[1] + noise_bytes)
      asker.find(Check::leaves_heap, fmt::format("one object more leaves {} bytes", heap[2] - heap[1]));
  }
  asker.ask(Check::destroy_works);
  asker.at("deinit");
  stage.deinit();
  asker.ask(Check::exit_clean);
}

}  // namespace assay::host::validate
