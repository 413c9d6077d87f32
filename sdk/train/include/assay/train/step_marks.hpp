// What a step on several ranks marks: phases of a launch, or nothing where the step is captured without them.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/training_step.hpp>
#include <optional>

namespace assay::train {

inline constexpr auto parameter_wait_phase = phase("parameter_wait");
// A workload's table of phases begins with these, in this order, and may call them otherwise.
struct RankPhases {
  static constexpr auto phases = join(rank_training_phases, table(parameter_wait_phase));
};

class StepMarks {
 public:
  StepMarks() = default;  // none
  explicit StepMarks(const Launch& launch) : launch_(&launch) {}

  class [[nodiscard]] Phase {
   public:
    Phase(const Launch* launch, std::uint32_t row) {
      if (launch) phase_.emplace(launch->abi(), row);
    }

   private:
    std::optional<Launch::Phase> phase_;
  };
  Phase phase(PhaseIn<RankPhases> phase) const { return Phase(launch_, phase.row()); }
  assay_stage stage() const { return launch_ ? launch_->stage() : ASSAY_STAGE_SETUP; }
  std::uint64_t iteration() const { return launch_ ? launch_->iteration() : 0; }

 private:
  const Launch* launch_ = nullptr;
};

}  // namespace assay::train
