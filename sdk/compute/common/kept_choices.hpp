// compute::KeptChoices in a file of algorithms. For all devices.
#pragma once
#include <assay/compute/kept_choices.hpp>

#include <functional>
#include <string>
#include <utility>

#include "algorithm_cache.hpp"

namespace assay::compute {

class ChoicesInFile final : public KeptChoices {
 public:
  // Whether the device did nothing else while it took these times, in microseconds.
  using MayKeep = std::function<bool(std::span<const double>)>;
  ChoicesInFile(const std::string& kind, TuningConditions conditions, MayKeep may_keep)
      : cache_(AlgorithmCache::default_folder(), kind, std::move(conditions), algorithm_mode()),
        may_keep_(std::move(may_keep)) {}

  std::optional<std::string> find(const std::string& key) override;
  void refuse_to_choose(const std::string& key) const override { cache_.refuse_to_choose(key); }
  void keep(const std::string& key, const std::string& choice, std::span<const double> microseconds) override;
  void list(const std::string& key, const std::string& choice) override;

 private:
  AlgorithmCache cache_;
  MayKeep may_keep_;
};

}  // namespace assay::compute
