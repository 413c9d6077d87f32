#include "assay/train/pipeline_schedule.hpp"

#include <algorithm>
#include <assay/plugin.hpp>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

namespace assay::train {
namespace {

using ActionKind = PipelineAction::Kind;

struct StageWork {
  bool is_backward;
  std::int64_t chunk, micro_batch;
  std::int64_t begin = -1, end = -1;  // on the clock
};

// The k-th forward, or backward, of a rank.
StageWork work_of(const PipelineShape& s, bool is_backward, std::int64_t k) {
  const std::int64_t group = s.ranks * s.virtual_stages, within = k % group;
  const std::int64_t chunk = within / s.ranks;
  if (s.virtual_stages == 1) return {is_backward, 0, k};
  return {is_backward, is_backward ? s.virtual_stages - 1 - chunk : chunk, k / group * s.ranks + within % s.ranks};
}

std::vector<StageWork> sequence_of(const PipelineShape& s, std::int64_t rank) {
  const std::int64_t all = s.virtual_stages * s.micro_batches, behind = s.ranks - 1 - rank;
  const std::int64_t first =
      std::min(all, s.virtual_stages == 1 ? behind : 2 * behind + (s.virtual_stages - 1) * s.ranks);
  std::vector<StageWork> sequence;
  for (std::int64_t k = 0; k < first; ++k) sequence.push_back(work_of(s, false, k));
  for (std::int64_t k = first; k < all; ++k) {
    sequence.push_back(work_of(s, false, k));
    sequence.push_back(work_of(s, true, k - first));
  }
  for (std::int64_t k = all - first; k < all; ++k) sequence.push_back(work_of(s, true, k));
  return sequence;
}

// Sets when each work of each rank ends, on a clock that runs for all ranks.
void run_clock(const PipelineShape& s, std::vector<std::vector<StageWork>>& ranks) {
  constexpr std::int64_t forward_time = 1, backward_time = 2;
  const std::int64_t stages = s.ranks * s.virtual_stages;
  // By direction, stage and micro-batch; -1: not yet.
  std::vector<std::int64_t> ends(static_cast<std::size_t>(2 * stages * s.micro_batches), -1);
  const auto end_of = [&](bool is_backward, std::int64_t stage, std::int64_t micro_batch) -> std::int64_t& {
    return ends[static_cast<std::size_t>(((is_backward ? stages : 0) + stage) * s.micro_batches + micro_batch)];
  };
  std::vector<std::size_t> next(ranks.size(), 0);
  std::vector<std::int64_t> free_from(ranks.size(), 0);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      for (; next[r] < ranks[r].size(); ++next[r]) {
        StageWork& work = ranks[r][next[r]];
        const std::int64_t stage = work.chunk * s.ranks + static_cast<std::int64_t>(r);
        std::int64_t begin = free_from[r];
        if (const std::int64_t source = work.is_backward ? stage + 1 : stage - 1; source >= 0 && source < stages) {
          const std::int64_t made = end_of(work.is_backward, source, work.micro_batch);
          if (made < 0) break;
          begin = std::max(begin, made);
        }
        work.begin = begin;
        work.end = free_from[r] = begin + (work.is_backward ? backward_time : forward_time);
        end_of(work.is_backward, stage, work.micro_batch) = work.end;
        goes_on = true;
      }
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (next[r] < ranks[r].size())
      throw Error(ASSAY_INTERNAL, "the order of a pipeline leaves rank " + std::to_string(r) + " waiting forever");
}

// Places that are given back; the lowest free one is taken first.
class FreePlaces {
 public:
  std::int64_t take() {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    const auto place = free - taken_.begin();
    if (free == taken_.end()) taken_.push_back(false);
    taken_[static_cast<std::size_t>(place)] = true;
    return place;
  }
  void give_back(std::int64_t place) { taken_[static_cast<std::size_t>(place)] = false; }
  std::int64_t most() const { return static_cast<std::int64_t>(taken_.size()); }

 private:
  std::vector<bool> taken_;
};

}  // namespace

void require_order(const PipelineShape& s) {
  const auto refuse = [](const std::string& text) { throw Error(ASSAY_UNSUPPORTED, text); };
  if (s.virtual_stages == 1) return;
  if (s.ranks == 1)
    refuse("virtual_stages = " + std::to_string(s.virtual_stages) +
           " interleaves the stages of several ranks; expected virtual_stages = 1 on one rank, or run.ranks / "
           "replicas of at least 2");
  if (s.micro_batches % s.ranks == 0) return;
  const std::int64_t below = s.micro_batches / s.ranks * s.ranks;
  refuse("the interleaved order takes micro-batches in groups of the " + std::to_string(s.ranks) +
         " ranks; expected accumulation_steps = " + (below > 0 ? std::to_string(below) + " or " : "") +
         std::to_string(below + s.ranks) + " in place of " + std::to_string(s.micro_batches) +
         ", or virtual_stages = 1");
}

double pipeline_bubble_share(const PipelineShape& s) {
  const auto idle = static_cast<double>(s.ranks - 1);
  return idle / (static_cast<double>(s.virtual_stages * s.micro_batches) + idle);
}

double pipeline_bubble_share(const PipelineShape& s, const std::vector<double>& work_of_ranks) {
  const double sum = std::accumulate(work_of_ranks.begin(), work_of_ranks.end(), 0.0);
  const double most = *std::max_element(work_of_ranks.begin(), work_of_ranks.end());
  const auto micro_batches = static_cast<double>(s.micro_batches);
  const double time = micro_batches * most + (sum - most) / static_cast<double>(s.virtual_stages);
  return 1 - micro_batches * sum / static_cast<double>(work_of_ranks.size()) / time;
}

PipelineSchedule::PipelineSchedule(const PipelineShape& s, std::int64_t rank) {
  require_order(s);
  std::vector<std::vector<StageWork>> ranks;
  for (std::int64_t r = 0; r < s.ranks; ++r) ranks.push_back(sequence_of(s, r));
  run_clock(s, ranks);

  // What comes, by the moment and the rank at which it is made, which orders all messages and works.
  struct Coming {
    std::int64_t end, from;
    bool is_gradient;
    std::int64_t chunk, micro_batch;
  };
  const std::int64_t stages = s.ranks * s.virtual_stages;
  std::vector<Coming> coming;
  for (std::int64_t r = 0; r < s.ranks; ++r)
    for (const StageWork& work : ranks[static_cast<std::size_t>(r)]) {
      const std::int64_t target = work.chunk * s.ranks + r + (work.is_backward ? -1 : 1);
      if (target < 0 || target >= stages || target % s.ranks != rank) continue;
      coming.push_back({work.end, r, work.is_backward, target / s.ranks, work.micro_batch});
    }
  std::sort(coming.begin(), coming.end(),
            [](const Coming& a, const Coming& b) { return std::pair(a.end, a.from) < std::pair(b.end, b.from); });

  FreePlaces receive_places;
  std::vector<FreePlaces> activations(static_cast<std::size_t>(s.virtual_stages));
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::int64_t> came_to;        // by what works on it
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> place_of_micro_batch;  // of a chunk
  auto next = coming.begin();
  const auto receive_before = [&](const std::pair<std::int64_t, std::int64_t>& moment) {
    for (; next != coming.end() && std::pair(next->end, next->from) < moment; ++next) {
      const std::int64_t place = receive_places.take();
      came_to[{next->is_gradient, next->chunk, next->micro_batch}] = place;
      actions_.push_back({.kind = ActionKind::receive,
                          .is_gradient = next->is_gradient,
                          .chunk = next->chunk,
                          .micro_batch = next->micro_batch,
                          .peer = next->from,
                          .place = place});
    }
  };
  for (const StageWork& work : ranks[static_cast<std::size_t>(rank)]) {
    const std::pair sent_at(work.end, rank);
    receive_before(s.receives == Receives::beside_work ? sent_at : std::pair(work.begin, s.ranks));
    PipelineAction action{.kind = work.is_backward ? ActionKind::backward : ActionKind::forward,
                          .chunk = work.chunk,
                          .micro_batch = work.micro_batch};
    FreePlaces& of_chunk = activations[static_cast<std::size_t>(work.chunk)];
    const std::pair micro_batch(work.chunk, work.micro_batch);
    if (!work.is_backward) place_of_micro_batch[micro_batch] = of_chunk.take();
    action.place = place_of_micro_batch.at(micro_batch);
    if (work.is_backward) {
      of_chunk.give_back(action.place);
      place_of_micro_batch.erase(micro_batch);
    }
    if (const auto came = came_to.find({work.is_backward, work.chunk, work.micro_batch}); came != came_to.end()) {
      action.read_place = came->second;
      receive_places.give_back(came->second);
      came_to.erase(came);
    }
    const std::int64_t target = work.chunk * s.ranks + rank + (work.is_backward ? -1 : 1);
    action.sends = s.ranks > 1 && target >= 0 && target < stages;
    actions_.push_back(action);
    if (!action.sends) continue;
    receive_before(sent_at);  // in the common order
    actions_.push_back({.kind = ActionKind::send,
                        .is_gradient = work.is_backward,
                        .chunk = work.chunk,
                        .micro_batch = work.micro_batch,
                        .peer = target % s.ranks});
  }
  for (const FreePlaces& each : activations) activation_places_.push_back(each.most());
  receive_places_ = receive_places.most();
}

}  // namespace assay::train
