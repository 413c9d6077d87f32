// The node_check workload: `check` says which of the three a case is.
#pragma once
#include <memory>
#include <string>

#include "check.hpp"
#include "settings.hpp"

namespace node_check {

class Workload {
 public:
  static constexpr auto id = "node_check";
  static constexpr auto summary = "is a node healthy, and as fast as its neighbours: products, memory, links";
  static constexpr auto params = node_check::params;
  static constexpr bool ranks_cooperate = true;
  static constexpr auto presets = node_check::presets;
  static constexpr auto phases = assay::names("product", "copy", "all_reduce");
  static constexpr auto metrics = assay::table(
      assay::Metric::per_case("message_bytes", "bytes", ASSAY_NEITHER_IS_BETTER,
                              "copy: size of what is copied; all_reduce: size of a rank's message"),
      assay::Metric::per_case("algorithm_bandwidth_gbs", "GB/s", ASSAY_HIGHER_IS_BETTER,
                              "all_reduce: message_bytes by the mean time of a measured all-reduce on this rank"),
      assay::Metric::per_case("bus_bandwidth_gbs", "GB/s", ASSAY_HIGHER_IS_BETTER,
                              "all_reduce: algorithm bandwidth times 2 (n - 1) / n for n ranks"),
      assay::Metric::per_case("wrong_elements", "elements", ASSAY_LOWER_IS_BETTER,
                              "found by the verification, over all ranks"));

  explicit Workload(const assay::Case& c);
  void setup(const assay::Launch& launch) { check_->setup(launch); }
  void run(const assay::Launch& launch) { check_->run(launch); }
  void finish(const assay::Launch& launch) { check_->finish(launch); }
  std::string verify(const assay::Launch& launch) { return check_->verify(launch); }
  assay::Work work() const { return check_->work(); }

 private:
  std::unique_ptr<Check> check_;
};

}  // namespace node_check
