// The order in which the ranks of a pipeline work, and what they send one another meanwhile.
//
// A model of S = ranks * virtual_stages stages: rank r has the stages r, r + ranks, ..., its chunks 0, 1, ... A step
// has so many micro-batches, each of which goes forward through all stages and backward through all.
//
//   virtual_stages = 1   one-forward-one-backward: ranks - 1 - r forwards first, then forward and backward in turn
//   more                 interleaved (Narayanan et al. 2021, arXiv:2104.04473): micro-batches in groups of `ranks` go
//                        through a rank's chunks one after the other, with 2 (ranks - 1 - r) + (virtual_stages - 1)
//                        ranks forwards first
//
// Sends and receives never wait in a circle: a clock of forwards that take 1 and backwards that take 2 orders all
// messages by the moment at which their sender has them, and each rank starts its sends and receives in that order.
// Of the messages under way the first one is the next of both of its ranks, so that it goes through. A rank starts a
// receive before the work during which that clock sees the message coming, so that it travels beside this work; or
// after it, so that a receive which takes a part of the device while it waits takes none of what works.
#pragma once
#include <cstdint>
#include <vector>

namespace assay::train {

// When a rank starts to receive what comes while it works.
enum class Receives : std::int32_t { beside_work, between_works };
inline constexpr Receives usual_receives = Receives::between_works;

struct PipelineShape {
  std::int64_t ranks = 1, virtual_stages = 1, micro_batches = 1;
  Receives receives = usual_receives;
};

// One entry of a rank's sequence. Of a message: what forward makes (an activation), or what backward makes (a
// gradient).
struct PipelineAction {
  enum class Kind { forward, backward, send, receive };
  Kind kind = Kind::forward;
  bool is_gradient = false;  // of send and receive
  std::int64_t chunk = 0;    // of this rank: that works, sends, or is to read what comes
  std::int64_t micro_batch = 0;
  std::int64_t peer = -1;  // of send and receive: the other rank
  // Of forward and backward: the activations' place, of those of the chunk. Of receive: the place of what comes.
  std::int64_t place = 0;
  std::int64_t read_place = -1;  // of forward and backward: where what they read has come to; -1: nothing comes
  bool sends = false;            // of forward and backward: a send of what they make follows, behind receives at most
};

class PipelineSchedule {
 public:
  // Throws assay::Error(UNSUPPORTED) with the remedy for a shape whose order is not defined: see require_order().
  PipelineSchedule(const PipelineShape& shape, std::int64_t rank);

  const std::vector<PipelineAction>& actions() const { return actions_; }  // of this rank, in their order
  // The most micro-batches of a chunk whose activations are there at a time.
  const std::vector<std::int64_t>& activation_places() const { return activation_places_; }
  std::int64_t receive_places() const { return receive_places_; }  // the most messages that have come and are not read

 private:
  std::vector<PipelineAction> actions_;
  std::vector<std::int64_t> activation_places_;
  std::int64_t receive_places_ = 0;
};

// Throws assay::Error(UNSUPPORTED): an interleaved order needs several ranks, and micro-batches in whole groups of
// them.
void require_order(const PipelineShape& shape);

// The share of a step in which a rank has nothing to do, of stages that take equally long and messages that take no
// time: (ranks - 1) / (virtual_stages * micro_batches + ranks - 1).
double pipeline_bubble_share(const PipelineShape& shape);
// The same of stages that differ, mean over the ranks: 1 - m mean(w) / T of m micro-batches and of the works w of each
// rank's stages on one of them, in any unit. T = m max(w) + (sum(w) - max(w)) / virtual_stages: with one stage a rank
// the latency of a pipeline in Zheng et al. 2022 (Alpa, arXiv:2201.12023); to fill and to drain it takes a part of that
// where stages are interleaved (Narayanan et al. 2021). The order above takes T where the last rank has most work, and
// less where an earlier one has.
double pipeline_bubble_share(const PipelineShape& shape, const std::vector<double>& work_of_ranks);

}  // namespace assay::train
