#include "assay/verification/average_check.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/compute/difference.hpp>
#include <assay/train/repeatability.hpp>
#include <assay/train/training_step.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <limits>

namespace assay::verification {

using compute::DType;
using compute::WeightedSum;

namespace {

constexpr std::size_t most_pieces = 16'384;
constexpr std::int64_t most_bytes_on_rank_0 = std::int64_t{64} << 20;
// A broadcast must be so many tolerances away from the mean.
constexpr double told_apart = 10;
// So many random bits are not the same by chance.
constexpr double random_bits = 64;
// By how many roundings a factor may be off: that of 1 / ranks, by which a library may multiply, and five times those
// of one sum, divided by the root of the number of sums. One sum usually has less than half a rounding.
constexpr double roundings_of_factor = 1.5, roundings_of_sum = 5;

constexpr double rounding_in_16_bits = 0x1p-9;
double rounding_of(const workload::PrecisionPolicy& p) {
  return p.gradient == DType::f32 ? 0x1p-24 : rounding_in_16_bits;
}

// Rank 0 sends this to the others.
struct Verdict {
  AverageFindings found;
  std::int64_t elements = 0;  // whose averages have been compared, over all ranks
};

// "0 and 2": two ranks with the same hash; "" when there are none.
std::string ranks_of_the_same(const std::vector<std::uint64_t>& hashes) {
  for (auto rank = hashes.begin(); rank != hashes.end(); ++rank)
    if (const auto other = std::find(hashes.begin(), rank, *rank); other != rank)
      return std::to_string(other - hashes.begin()) + " and " + std::to_string(rank - hashes.begin());
  return "";
}

std::int64_t largest_of(const std::vector<train::ElementRange>& pieces) {
  std::int64_t most = 0;
  for (const train::ElementRange& piece : pieces) most = std::max(most, piece.elements());
  return most;
}

std::string place_of(std::int64_t piece, const std::vector<train::ElementRange>& pieces,
                     const train::ParameterSet& set) {
  const train::ElementRange& range = pieces[static_cast<std::size_t>(piece)];
  const auto of = std::find_if(set.all().begin(), set.all().end(),
                               [&](const train::Parameter& p) { return p.offset + p.elements() > range.begin; });
  return of->name + "[" + std::to_string(range.begin - of->offset) + " to " +
         std::to_string(range.end - of->offset - 1) + "]";
}

// On rank 0; the others have nothing to judge. Each rank has given its own sketches and, behind them, those of
// averages.
Verdict judge(const std::vector<std::vector<WeightedSum>>& sketches, const std::vector<train::ElementRange>& pieces) {
  Verdict verdict;
  std::vector<RankGradients> ranks;
  for (const std::vector<WeightedSum>& both : sketches) {
    const auto middle = both.begin() + static_cast<std::ptrdiff_t>(pieces.size());
    ranks.push_back({{both.begin(), middle}, {middle, both.end()}});
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!(ranks.back().averaged[i] == not_held)) verdict.elements += pieces[i].elements();
  }
  if (!ranks.empty()) verdict.found = compare_with_mean(ranks);
  return verdict;
}

}  // namespace

bool OwnData::may_repeat() const {
  return static_cast<double>(tokens) * std::log2(static_cast<double>(vocabulary)) < random_bits;
}

namespace {

// Of what averages are off on what they should be.
struct Projection {
  double along = 0, squares = 0;

  void add(double off, double expected) { along += off * expected, squares += expected * expected; }
  double factor() const { return squares == 0 ? 0 : std::abs(along) / squares; }
  double allowed_roundings() const {
    return squares == 0 ? 0 : roundings_of_factor + roundings_of_sum / std::sqrt(squares);
  }
};

}  // namespace

AverageFindings compare_with_mean(const std::vector<RankGradients>& ranks) {
  AverageFindings found;
  compute::Worst worst;  // the index counts ranks, and for each of them pieces
  std::vector<double> from_mean(ranks.size());
  std::vector<Projection> on_mean(ranks.size());
  const auto count = static_cast<double>(ranks.size());
  const std::size_t pieces = ranks.front().own.size();
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    double mean = 0, scale = 0;
    for (const RankGradients& rank : ranks) mean += rank.own[piece].sum, scale += std::sqrt(rank.own[piece].squares);
    mean /= count, scale /= count;
    // Of gradients that are all zero the average is zero, too.
    const auto distance = [&](const WeightedSum& of) { return of.sum == mean ? 0.0 : std::abs(of.sum - mean) / scale; };
    bool held = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      from_mean[r] = compute::worse(from_mean[r], distance(ranks[r].own[piece]));
      if (ranks[r].averaged[piece] == not_held) continue;
      held = true;
      worst.add(distance(ranks[r].averaged[piece]), r * pieces + piece);
      if (scale > 0) on_mean[r].add((ranks[r].averaged[piece].sum - mean) / scale, mean / scale);
    }
    if (!held) found.missing = static_cast<std::int64_t>(piece);
  }
  found.worst = worst.value();
  found.worst_rank = static_cast<std::int64_t>(worst.index() / pieces);
  found.worst_piece = static_cast<std::int64_t>(worst.index() % pieces);
  compute::Worst factor;  // by what is allowed
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (on_mean[r].squares > 0) factor.add(on_mean[r].factor() / on_mean[r].allowed_roundings(), r);
  found.factor = on_mean[factor.index()].factor();
  found.allowed_roundings = on_mean[factor.index()].allowed_roundings();
  found.nearest = *std::min_element(from_mean.begin(), from_mean.end());
  return found;
}

// A sum over ranks rounds once for each addition, relative to terms whose norms the sketch is divided by: in fp32 five
// roundings, of another model's own gradients a hundred (their paths' sums differ: path_check.cpp). In 16 bits the
// ranks' gradients, the sum and the average are rounded, and where few elements of a piece are not 0 all of it shows:
// 16 units of 2^-9, also of fp32 gradients that travel in 16 bits. Found: in fp32 6e-8; in 16 bits 2e-3 to 4e-3 on a
// CPU and up to 1.2e-2 between two H200, where few elements of a piece are not 0.
//
// Attention's backward on a GPU adds in no fixed order, and of two passes every rounding behind it differs. They add up
// as a random walk does (path_check.cpp): one H200 had 3.3e-2 through 12 layers and 4.1e-2 through 28, the worst of
// 16,000 pieces, which are 2.4 and 2.0 x 2^-8 sqrt(layers). Allowed are 4, and never more than 64 layers': one rank's
// own gradients, which are about as far from the mean as they are long, have to stay apart from the average in models
// of any depth. By what was found that is enough for 150 layers. Another model's sums differ on any device.
double average_tolerance(const workload::PrecisionPolicy& p, const RankGradients& mine) {
  constexpr double of_a_layer = 4 * 0x1p-8, most = 0.125;
  if (p.gradient == DType::f32 && mine.travels_in_16_bits) return 16 * rounding_in_16_bits;
  if (p.gradient == DType::f32) return (mine.own_of_another_model ? 100 : 5) * rounding_of(p);
  const double of_sums = 16 * rounding_of(p);
  if (mine.repeats_to_the_bit && !mine.own_of_another_model) return of_sums;
  return std::clamp(of_a_layer * std::sqrt(static_cast<double>(mine.layers)), of_sums, most);
}

double factor_tolerance(const workload::PrecisionPolicy& p, const AverageFindings& found, bool travels_in_16_bits) {
  return found.allowed_roundings * (travels_in_16_bits ? rounding_in_16_bits : rounding_of(p));
}

std::vector<train::ElementRange> average_pieces(const train::ParameterSet& set, std::vector<std::int64_t> cuts,
                                                std::int64_t ranks) {
  const auto room = static_cast<std::size_t>(most_bytes_on_rank_0 / ranks) / (2 * sizeof(WeightedSum));
  return sketch_pieces(set, std::move(cuts), std::min(most_pieces, room));
}

RankGradients gradients_of_rank(const train::Trainer& trainer, const std::vector<train::ElementRange>& pieces,
                                std::int64_t layers, const std::function<void()>& step) {
  const auto sketch = [&] { return sketch_of(trainer.backend(), trainer.parameters().all_gradients(), pieces); };
  RankGradients mine;
  mine.layers = layers;
  mine.repeats_to_the_bit = train::repeats_to_the_bit(trainer.backend());
  forward_and_backward(trainer, train::UnmarkedLaunch());
  mine.own = sketch();
  spoil_gradients(trainer.backend(), trainer.parameters());
  step();
  mine.averaged = sketch();
  return mine;
}

Verified check_average(const Host& host, std::string_view name, const train::ParameterSet& set,
                       const std::vector<train::ElementRange>& pieces, const RankGradients& mine, const OwnData& data) {
  const std::string of(name);
  const std::string same_data = ranks_of_the_same(comm::exchange(host, of + ".data", data.hash));
  if (!same_data.empty() && !data.may_repeat())
    throw Error(ASSAY_WRONG_RESULT, "ranks " + same_data + " train on the same data");
  std::vector<WeightedSum> both = mine.own;
  both.insert(both.end(), mine.averaged.begin(), mine.averaged.end());
  Verdict verdict = judge(comm::gather<WeightedSum>(host, of + ".sketches", both), pieces);
  verdict = comm::exchange(host, of + ".verdict", verdict)[0];
  const AverageFindings& found = verdict.found;
  if (found.missing >= 0)
    throw Error(ASSAY_WRONG_RESULT, "no rank has the averaged gradients of " + place_of(found.missing, pieces, set));
  const auto ranks = static_cast<std::int64_t>(comm::ranks_of(host).rank_count);
  const double tolerance = average_tolerance(set.policy(), mine),
               of_factor = factor_tolerance(set.policy(), found, mine.travels_in_16_bits);
  std::string text = "averaged gradients of " + std::to_string(ranks) + " rank(s), " +
                     std::to_string(verdict.elements) + " elements in sums of " + std::to_string(largest_of(pieces)) +
                     " at most, differ from the mean of the ranks' own by " + workload::number(found.worst) +
                     " (tolerance " + workload::number(tolerance) + "; rank " + std::to_string(found.worst_rank) +
                     ", " + place_of(found.worst_piece, pieces, set) + "), all of them by a factor of 1 +- " +
                     workload::number(found.factor) + " (tolerance " + workload::number(of_factor) + ")";
  if (!(found.worst <= tolerance && found.factor <= of_factor)) throw Error(ASSAY_WRONG_RESULT, text);
  if (ranks == 1) return text + "; ";
  text += ", and one rank's own by " + workload::number(found.nearest) + " or more";
  if (found.nearest > told_apart * tolerance) return text + "; ";
  text += ", so that the gradients of one rank would pass for the average";
  if (!data.may_repeat()) throw Error(ASSAY_WRONG_RESULT, text + ", though the ranks' data differ");
  return {text + ": too few tokens; ", true};
}

}  // namespace assay::verification
