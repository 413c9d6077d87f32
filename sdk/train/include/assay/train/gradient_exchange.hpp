// What happens to gradients between backward and update where there are several ranks.
#pragma once
#include <assay/train/parameters.hpp>

namespace assay::train {

// What ranks do to the gradients around a backward: parallel::GradientAverage.
class GradientExchange {
 public:
  GradientExchange() = default;
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;
  virtual ~GradientExchange() = default;
  virtual void begin_step() = 0;             // before backward
  virtual GradientListener* listener() = 0;  // for backward; null when nothing overlaps it
  virtual void finish() = 0;                 // after backward: what is enqueued from here on sees the result
};

}  // namespace assay::train
