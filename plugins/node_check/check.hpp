// One of the three checks of a node: what a case of it does, behind the workload that the host sees.
#pragma once
#include <assay/plugin.hpp>

#include <string>

namespace node_check {

// The phases and metrics of all checks, which share one table.
struct Reports {
  static constexpr auto product_phase = assay::phase("product");
  static constexpr auto copy_phase = assay::phase("copy");
  static constexpr auto all_reduce_phase = assay::phase("all_reduce");
  static constexpr auto phases = assay::table(product_phase, copy_phase, all_reduce_phase);

  static constexpr auto message_bytes_metric =
      assay::Metric::per_case("message_bytes")
          .unit("bytes")
          .help("copy: size of what is copied; all_reduce: size of a rank's message");
  static constexpr auto algorithm_bandwidth_metric =
      assay::Metric::per_case("algorithm_bandwidth_gbs")
          .unit("GB/s")
          .higher_is_better()
          .help("all_reduce: message_bytes by the mean time of a measured all-reduce on this rank");
  static constexpr auto bus_bandwidth_metric =
      assay::Metric::per_case("bus_bandwidth_gbs")
          .unit("GB/s")
          .higher_is_better()
          .help("all_reduce: algorithm bandwidth times 2 (n - 1) / n for n ranks");
  static constexpr auto wrong_elements_metric = assay::Metric::per_case("wrong_elements")
                                                    .unit("elements")
                                                    .lower_is_better()
                                                    .help("found by the verification, over all ranks");
  static constexpr auto metrics =
      assay::table(message_bytes_metric, algorithm_bandwidth_metric, bus_bandwidth_metric, wrong_elements_metric);
};
using Launch = assay::LaunchOf<Reports>;

class Check : public Reports {
 public:
  Check() = default;
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  virtual ~Check() = default;
  virtual void setup(const Launch& launch) = 0;
  virtual void run(const Launch& launch) = 0;
  virtual void finish(const Launch&) {}
  virtual void open_account(const Launch&) {}
  virtual assay::Account account(const Launch&) = 0;
  virtual std::string verify(const Launch& launch) = 0;
  virtual assay::Work work() const = 0;
};

}  // namespace node_check
