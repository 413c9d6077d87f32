// What happens to gradients between backward and update where there are several ranks.
#pragma once
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstddef>
#include <vector>

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
  // Where results come one after the other: stretches of the arena, all of it, in that order. finish_stretch() in place
  // of finish(), with each in turn: what is enqueued from here on sees the results of it, and of those before. An
  // update of these then runs beside the communication of the later ones. Empty: there is finish() alone.
  virtual const std::vector<ElementRange>& stretches() const {
    static const std::vector<ElementRange> none;
    return none;
  }
  virtual void finish_stretch(std::size_t /*index*/) { finish(); }
};

}  // namespace assay::train
