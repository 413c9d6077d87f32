// Runs the steps of a training on several ranks: through a communicator; as a graph with the collectives inside, if
// steps are captured; and without the collectives if the host asks for silence, to see what communication costs
// (assay.silence/1). Counts the measured steps.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/comm/silent.hpp>
#include <assay/train/training_step.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace assay::parallel {

// What a rank exchanges in a step, mean of the measured ones.
struct StepCommunication {
  double bytes = 0, messages = 0;
  double replica_bytes = 0, replica_messages = 0;  // of these, between replicas
  // How long collectives were under way, and the computation waited for them, ms. Unknown, and empty, within a graph.
  struct Times {
    double busy_ms = 0, exposed_ms = 0;
  };
  std::optional<Times> times;
};

class RankSteps {
 public:
  using Marks = train::Trainer::Marks;

  // ---- before the first step
  // To be called before anything else; one rank may do without, and has steps all the same.
  void use(comm::SilenceableCommunicator communicator) { communicator_ = std::move(communicator); }
  bool communicate() const { return static_cast<bool>(communicator_); }
  // Replaced while steps are silent by one that sends and receives nothing.
  comm::Communicator& communicator() const { return *communicator_; }
  // Of ranks that share a model of which there are replicas, a second one: of those with this rank's place in each, or
  // of all where the gradients are a sum over all.
  void use_between_replicas(comm::SilenceableCommunicator communicator) { between_replicas_ = std::move(communicator); }
  comm::Communicator* between_replicas() const { return between_replicas_ ? &*between_replicas_ : nullptr; }
  // `enqueue` enqueues a step, with the phases that it marks where `marks` says so. Runs it once, and starts the
  // trainer anew, as Trainer::capture does: each rank by itself. Captures nothing where the device or the communicator
  // has no graphs.
  void capture(train::Trainer& trainer, const std::function<void()>& enqueue, Marks marks = Marks::captured) {
    if (!communicate() || communicator_->captures()) step_ = watched(trainer.capture(enqueue, marks));
  }
  bool are_captured() const { return step_ != nullptr; }
  void forget_captured() {
    step_.reset();
    silent_step_.reset();
  }

  // ---- steps
  // Runs a step: the captured one, or the silent one of these; by `enqueue` where none was captured.
  template <class Enqueue>
  void enqueue(const Host& host, Enqueue&& enqueue) const {
    if (!step_) {
      enqueue();
    } else if (is_silent_) {
      silent_step_->launch();
    } else {
      step_->launch();
      mark_replayed(host);
    }
  }
  // Counts the work since the last call as one step if it is measured, and forgets it otherwise: the times of
  // collectives are only those of measured steps, and asking for them blocks, which no measured step may do.
  template <class Launch>
  void count(const Launch& launch) {
    if (!communicate()) return;
    if (launch.stage() == ASSAY_STAGE_MEASURE)
      ++measured_;
    else
      forget_totals();
  }
  void forget_totals() {
    communicator_->take_totals();
    if (between_replicas_) between_replicas_->take_totals();
  }
  // Both: all that a workload does in `run`.
  template <class Launch, class Enqueue>
  void run(const Launch& launch, const Host& host, Enqueue&& enqueue_step) {
    enqueue(host, enqueue_step);
    count(launch);
  }
  // Of the counted measured steps; empty without any. Blocks.
  std::optional<StepCommunication> take_measured() {
    if (!communicate()) return std::nullopt;
    const comm::Totals own = communicator_->take_totals();
    const comm::Totals between = between_replicas_ ? between_replicas_->take_totals() : comm::Totals{};
    if (measured_ == 0) return std::nullopt;
    const auto steps = static_cast<double>(measured_);
    const auto mean_of = [&](std::uint64_t sum) { return static_cast<double>(sum) / steps; };
    StepCommunication mean{mean_of(own.bytes + between.bytes), mean_of(own.collectives + between.collectives),
                           mean_of(between.bytes), mean_of(between.collectives), std::nullopt};
    if (own.untimed + between.untimed == 0)
      mean.times = {(own.busy_ms + between.busy_ms) / steps, (own.exposed_ms + between.exposed_ms) / steps};
    return mean;
  }

  // ---- silence
  void silence(bool silent) {
    is_silent_ = silent;
    communicator_.silence(silent);
    between_replicas_.silence(silent);
  }
  bool are_silent() const { return is_silent_; }
  // Captures the silent step, where steps are captured: once, when all that it goes through is silent. `enqueue` marks
  // no phases.
  void capture_silent(train::Trainer& trainer, const std::function<void()>& enqueue) {
    if (step_ && !silent_step_) silent_step_ = trainer.capture_as_is(enqueue, Marks::none);
  }

  // ---- steps outside the measured window, as a verification takes them
  // One more step as it is timed; `enqueue` as of enqueue().
  template <class Enqueue>
  void repeat(Enqueue&& enqueue) const {
    step_ ? step_->launch() : enqueue();
  }
  template <class Enqueue>
  void repeat_and_wait(const train::Trainer& trainer, Enqueue&& enqueue) const {
    repeat(enqueue);
    wait(trainer);
  }
  // Until the device has nothing left to do.
  void wait(const train::Trainer& trainer) const {
    if (communicate()) communicator_->synchronize();
    if (between_replicas_) between_replicas_->synchronize();
    trainer.backend().synchronize();
  }

 private:
  std::unique_ptr<compute::Graph> watched(std::unique_ptr<compute::Graph> graph) const {
    if (communicate()) graph = communicator_->watch(std::move(graph));
    return between_replicas_ ? between_replicas_->watch(std::move(graph)) : std::move(graph);
  }

  comm::SilenceableCommunicator communicator_, between_replicas_;  // their graphs go before them
  std::unique_ptr<compute::Graph> step_, silent_step_;
  bool is_silent_ = false;
  std::uint64_t measured_ = 0;
};

}  // namespace assay::parallel
