// The ddp workload: one step of a decoder that several ranks train, each on its part of the batch.
#pragma once
#include <assay/comm/silent.hpp>
#include <memory>

#include "settings.hpp"

namespace ddp {

class Workload {
 public:
  static constexpr auto id = "ddp";
  static constexpr auto summary = "data-parallel training of a decoder: gradients averaged over the ranks";
  static constexpr auto item_unit = "tokens";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = ddp::params;
  static constexpr auto presets = assay::train::model_presets;
  enum Phase { forward_phase, backward_phase, communication_wait_phase, optimizer_phase };
  static constexpr auto phases = assay::names("forward", "backward", "communication_wait", "optimizer");
  enum Metric {
    parameters_metric,
    loss_metric,
    communication_ms_metric,
    exposed_ms_metric,
    overlap_share_metric,
    communication_bytes_metric,
    collectives_metric
  };
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("parameters", nullptr, ASSAY_NEITHER_IS_BETTER, "number of trainable parameters"),
      assay::Metric::per_case("loss", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "cross-entropy of the last step on this rank's part of the batch, nats"),
      assay::Metric::per_case("communication_ms", "ms", ASSAY_LOWER_IS_BETTER,
                              "time that collectives were under way, mean of the measured steps; includes waiting for "
                              "ranks that come later"),
      assay::Metric::per_case("exposed_ms", "ms", ASSAY_LOWER_IS_BETTER,
                              "of it, what held up the computation, mean of the measured steps"),
      assay::Metric::per_case("overlap_share", nullptr, ASSAY_HIGHER_IS_BETTER,
                              "1 - exposed_ms / communication_ms, not below 0"),
      assay::Metric::per_case("communication_bytes", "bytes", ASSAY_LOWER_IS_BETTER,
                              "bytes of gradients that this rank gave to collectives in a step"),
      assay::Metric::per_case("collectives", nullptr, ASSAY_NEITHER_IS_BETTER,
                              "all-reduces in a step: parameters, buckets, or 1"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch);
  void run(const assay::Launch& launch);
  void finish(const assay::Launch& launch);
  assay::Verified verify(const assay::Launch& launch);
  assay::Work work() const;  // this rank's
  assay::Peak peak(const assay::Launch& launch);
  void silence(bool silent);

 private:
  void start();  // the state before the first step, rank 0's on every rank

  void average_gradients();  // forward and backward with the average, as a step does, without phases

  // verification.cpp
  assay::Verified check_gradients();
  std::string check_updates();

  assay::Host host_;
  Settings settings_;
  assay::train::DecoderTrainer trainer_;
  assay::train::GradientAverage average_;
  assay::comm::SilenceableCommunicator communicator_;
  std::uint64_t measured_steps_ = 0;
};

}  // namespace ddp
