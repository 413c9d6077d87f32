// A training step on several ranks as a graph, with its collectives inside, and the same step without them, which the
// host takes to see what communication costs (assay.silence/1).
#pragma once
#include <assay/comm/silent.hpp>
#include <assay/train/training_step.hpp>
#include <functional>
#include <memory>

namespace assay::parallel {

// To be declared behind the communicator, of which one rank may have none: its graphs go first.
class StepGraphs {
 public:
  using Marks = train::Trainer::Marks;

  // `enqueue` enqueues a step, with the phases that it marks where `marks` says so. Runs it once, and starts the
  // trainer anew, as Trainer::capture does: each rank by itself. Captures nothing where the device or the communicator
  // has no graphs.
  void capture(train::Trainer& trainer, const comm::SilenceableCommunicator& communicator,
               const std::function<void()>& enqueue, Marks marks) {
    if (!communicator)
      step_ = trainer.capture(enqueue, marks);
    else if (communicator->captures())
      step_ = communicator->watch(trainer.capture(enqueue, marks));
  }
  // The same for the silent step, which marks no phases; once, when the communicator has been silenced.
  void capture_silent(train::Trainer& trainer, const std::function<void()>& enqueue) {
    if (step_ && !silent_) silent_ = trainer.capture_as_is(enqueue, Marks::none);
  }
  // Runs a step: the captured one, or that without collectives where it `is_silent`; by `enqueue` where none was
  // captured.
  template <class Enqueue>
  void run(const Host& host, bool is_silent, Enqueue&& enqueue) const {
    if (!step_) {
      enqueue();
    } else if (is_silent) {
      silent_->launch();
    } else {
      step_->launch();
      mark_replayed(host);
    }
  }
  explicit operator bool() const { return step_ != nullptr; }
  void launch() const { step_->launch(); }
  void launch_silent() const { silent_->launch(); }
  void reset() {
    step_.reset();
    silent_.reset();
  }

 private:
  std::unique_ptr<compute::Graph> step_, silent_;
};

}  // namespace assay::parallel
