// The mixed_precision workload: `study` says which of the three a case is.
#pragma once
#include <memory>

#include "settings.hpp"
#include "study.hpp"

namespace mixed_precision {

class Workload : public Reports {
 public:
  static constexpr auto id = "mixed_precision";
  static constexpr auto summary = "what number formats do to sums, to the tensors of a model, and to its training";
  static constexpr auto item_unit = "tokens";
  static constexpr auto params = mixed_precision::params;
  static constexpr auto presets = mixed_precision::presets;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch) { study_->setup(launch); }
  void run(const Launch& launch) { study_->run(launch); }
  void finish(const Launch& launch) { study_->finish(launch); }
  std::string verify(const Launch& launch) { return study_->verify(launch); }
  assay::Work work() const { return study_->work(); }

 private:
  std::unique_ptr<Study> study_;
};

}  // namespace mixed_precision
