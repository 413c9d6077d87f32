// The node_check workload: `check` says which of the three a case is.
#pragma once
#include <memory>
#include <string>

#include "check.hpp"
#include "settings.hpp"

namespace node_check {

class Workload : public Reports {
 public:
  static constexpr auto id = "node_check";
  static constexpr auto summary = "is a node healthy, and as fast as its neighbours: products, memory, links";
  static constexpr auto params = node_check::params;
  static constexpr bool ranks_cooperate = true;
  static constexpr auto presets = node_check::presets;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch) { check_->setup(launch); }
  void run(const Launch& launch) { check_->run(launch); }
  void finish(const Launch& launch) { check_->finish(launch); }
  void open_account(const Launch& launch) { check_->open_account(launch); }
  assay::Account account(const Launch& launch) { return check_->account(launch); }
  std::string verify(const Launch& launch) { return check_->verify(launch); }
  assay::Work work() const { return check_->work(); }

 private:
  std::unique_ptr<Check> check_;
};

}  // namespace node_check
