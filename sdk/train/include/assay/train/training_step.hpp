// One step of training in its phases, the same for every workload that trains. A workload has the phases in its own
// table: `static constexpr auto phases = assay::train::training_phases;`, or with others beside them.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/gradient_exchange.hpp>
#include <assay/train/parameters.hpp>
#include <assay/train/trainer.hpp>
#include <assay/train/update_beside_backward.hpp>
#include <assay/train/update_in_products.hpp>
#include <functional>

namespace assay::train {

inline constexpr auto forward_phase = phase("forward");
inline constexpr auto backward_phase = phase("backward");
inline constexpr auto communication_wait_phase = phase("communication_wait");
inline constexpr auto optimizer_phase = phase("optimizer");
inline constexpr auto training_phases = table(forward_phase, backward_phase, optimizer_phase);
// Of a step on several ranks, however they share the work.
inline constexpr auto rank_training_phases =
    table(forward_phase, backward_phase, communication_wait_phase, optimizer_phase);

// In the place of a Launch, for a step that marks no phases.
struct UnmarkedLaunch {
  struct Phase {
    ~Phase() {}  // as if it did something: it stands where a phase does
  };
  template <class AnyPhase>
  Phase phase(const AnyPhase&) const {
    return {};
  }
};

// Enqueues a step that `parts` enqueues, with what keeps the account of steps around it. INVALID_ARGUMENT for a trainer
// that was not set up.
template <class Parts>
void accounted_step(const Trainer& trainer, Parts&& parts) {
  trainer.require_set_up();
  trainer.begin_step();
  parts();
  trainer.end_step();
}

// Enqueues forward and, with a backward, backward, of one micro-batch after the other.
// INVALID_ARGUMENT for a trainer that was not set up.
template <class Launch>
void forward_and_backward(const Trainer& trainer, const Launch& launch, GradientListener* listener = nullptr) {
  trainer.require_set_up();
  for (std::int64_t i = 0, count = trainer.micro_batches(); i < count; ++i) {
    {
      const auto phase = launch.phase(forward_phase);
      trainer.forward_of(i);
    }
    if (!trainer.has_backward()) continue;
    const auto phase = launch.phase(backward_phase);
    trainer.backward_of(i, i + 1 == count ? listener : nullptr);
  }
}

// Enqueues the update, of a trainer that has one.
template <class Launch>
void update_if_there_is_one(const Trainer& trainer, const Launch& launch) {
  if (!trainer.has_update()) return;
  const auto phase = launch.phase(optimizer_phase);
  trainer.update();
}

// Enqueues a whole step: forward, backward and update, as far as the trainer's configuration has them. If the update
// runs beside backward or in its products, the optimizer's phase has what is left of it.
template <class Launch>
void training_step(const Trainer& trainer, const Launch& launch) {
  accounted_step(trainer, [&] {
    if (trainer.updates_beside_backward()) {
      UpdateBesideBackward update(trainer);
      forward_and_backward(trainer, launch, &update);
      const auto phase = launch.phase(optimizer_phase);
      return update.finish();
    }
    if (trainer.updates_in_products()) {
      UpdateInProducts update(trainer);
      forward_and_backward(trainer, launch, &update);
      const auto phase = launch.phase(optimizer_phase);
      return update.finish();
    }
    forward_and_backward(trainer, launch);
    update_if_there_is_one(trainer, launch);
  });
}

// Waits for each stretch of the exchange, and updates it. A loss scale has to see all gradients first.
template <class Launch>
void update_by_stretches(const Trainer& trainer, const Launch& launch, GradientExchange& exchange) {
  const Optimizer& optimizer = trainer.optimizer();
  const std::vector<ElementRange>& stretches = exchange.stretches();
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    {
      const auto phase = launch.phase(communication_wait_phase);
      exchange.finish_stretch(i);
    }
    const auto phase = launch.phase(optimizer_phase);
    if (i == 0) optimizer.begin_step(trainer.backend(), trainer.scaler());
    optimizer.step_stretch(trainer.backend(), trainer.scaler(), stretches[i]);
    if (i + 1 == stretches.size()) optimizer.end_step(trainer.backend(), trainer.scaler());
  }
}

// Forward, backward and the exchange of a step on several ranks, which has the phase `communication_wait`.
// `listener`: the exchange's, or one that hands on to it.
template <class Launch>
void exchanged_gradients(const Trainer& trainer, const Launch& launch, GradientExchange& exchange,
                         GradientListener* listener) {
  exchange.begin_step();
  forward_and_backward(trainer, launch, listener);
  const auto phase = launch.phase(communication_wait_phase);
  exchange.finish();
}

// A whole step on several ranks: the same and the update, or several waits and updates in turn where the exchange ends
// in stretches.
template <class Launch>
void training_step(const Trainer& trainer, const Launch& launch, GradientExchange& exchange) {
  accounted_step(trainer, [&] {
    if (trainer.updates_in_products()) {
      UpdateInProducts update(trainer, exchange.listener());
      exchanged_gradients(trainer, launch, exchange, &update);
      const auto phase = launch.phase(optimizer_phase);
      return update.finish();
    }
    if (trainer.has_update() && !trainer.scaler().active() && !exchange.stretches().empty()) {
      exchange.begin_step();
      forward_and_backward(trainer, launch, exchange.listener());
      return update_by_stretches(trainer, launch, exchange);
    }
    exchanged_gradients(trainer, launch, exchange, exchange.listener());
    update_if_there_is_one(trainer, launch);
  });
}

// The first step of a cold start (Trainer::setup_cold): each phase takes or prepares what it needs before it enqueues.
template <class Launch>
void cold_training_step(Trainer& trainer, const Launch& launch) {
  const auto prepare_and_enqueue = [&](const std::function<void()>& enqueue) {
    trainer.prepare(enqueue);
    enqueue();
  };
  for (std::int64_t i = 0; i < trainer.micro_batches(); ++i) {
    {
      const auto phase = launch.phase(forward_phase);
      if (i == 0) {
        trainer.take_memory_cold();
        trainer.begin_step();
      }
      prepare_and_enqueue([&] { trainer.forward_of(i); });
    }
    if (!trainer.has_backward()) continue;
    const auto phase = launch.phase(backward_phase);
    prepare_and_enqueue([&] { trainer.backward_of(i, nullptr); });
  }
  if (trainer.has_update()) {
    const auto phase = launch.phase(optimizer_phase);
    prepare_and_enqueue([&] { trainer.update(); });
  }
  trainer.end_step();
}

}  // namespace assay::train
