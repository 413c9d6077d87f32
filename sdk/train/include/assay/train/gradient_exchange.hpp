// What happens to gradients between backward and update with several ranks.
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
  virtual void finish() = 0;                 // after backward: later enqueued work sees the result
  // Asks it to call a listener, by the ids of the parameters whose gradients it exchanges, where its results are there
  // for later enqueued work: within backward, and when it finishes. False: it calls none. The listener must outlive the
  // steps.
  virtual bool announce_to(GradientListener& /*listener*/) { return false; }
  // If results arrive one after the other: stretches of the arena, all of it, in that order. Call finish_stretch() in
  // place of finish(), with each in turn: later enqueued work sees its results, and those before. An update of these
  // then runs beside the communication of the later ones. Empty: there is only finish().
  virtual const std::vector<ElementRange>& stretches() const {
    static const std::vector<ElementRange> none;
    return none;
  }
  virtual void finish_stretch(std::size_t /*index*/) { finish(); }
};

}  // namespace assay::train
