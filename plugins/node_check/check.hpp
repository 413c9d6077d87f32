// One of the three checks of a node: what a case of it does, behind the workload that the host sees.
#pragma once
#include <assay/plugin.hpp>

#include <string>

namespace node_check {

enum Phase { product_phase, copy_phase, all_reduce_phase };

// Indices into Workload::metrics.
enum Metric { message_bytes_metric, algorithm_bandwidth_metric, bus_bandwidth_metric, wrong_elements_metric };

class Check {
 public:
  Check() = default;
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  virtual ~Check() = default;
  virtual void setup(const assay::Launch& launch) = 0;
  virtual void run(const assay::Launch& launch) = 0;
  virtual void finish(const assay::Launch&) {}
  virtual std::string verify(const assay::Launch& launch) = 0;
  virtual assay::Work work() const = 0;
};

}  // namespace node_check
