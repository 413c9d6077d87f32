#include "assay/verification/sketch.hpp"

#include <algorithm>
#include <array>
#include <assay/compute/inspector.hpp>

namespace assay::verification {

using compute::Tensor;
using compute::WeightedSum;

namespace {

constexpr std::int64_t edge_elements = 256;
constexpr std::int64_t least_elements = 4096;   // of a part that is no edge
constexpr std::int64_t weight_period = 65'521;  // a prime: no piece or bucket is a multiple of it

// Of random sign, and between 1/2 and 1, so that no element hides behind a small weight. The product with an fp32
// element is exact in fp64.
std::vector<float> make_weights() {
  std::vector<float> weights(static_cast<std::size_t>(weight_period));
  std::uint64_t state = 1;
  for (float& weight : weights) {
    std::uint64_t x = state += 0x9e3779b97f4a7c15;  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    const float magnitude = 0.5F + static_cast<float>(x >> 41) * 0x1p-24F;
    weight = (x & 1U) != 0 ? magnitude : -magnitude;
  }
  return weights;
}

// [begin, end) in its parts.
void cut_up(std::int64_t begin, std::int64_t end, std::int64_t part, std::vector<train::ElementRange>& pieces) {
  const bool edges = part > 0 && end - begin > 4 * edge_elements;
  if (edges) pieces.push_back({begin, begin + edge_elements}), begin += edge_elements;
  const std::int64_t last = edges ? end - edge_elements : end;
  const std::int64_t parts = part > 0 ? std::max<std::int64_t>((last - begin + part - 1) / part, 1) : 1;
  for (std::int64_t i = 0; i < parts; ++i)
    pieces.push_back({begin + (last - begin) * i / parts, begin + (last - begin) * (i + 1) / parts});
  if (edges) pieces.push_back({last, end});
}

}  // namespace

std::vector<train::ElementRange> sketch_pieces(const train::ParameterSet& set, std::vector<std::int64_t> cuts,
                                               std::size_t most) {
  std::sort(cuts.begin(), cuts.end());
  std::vector<train::ElementRange> whole;
  auto cut = cuts.begin();
  for (const train::Parameter& p : set.all()) {
    const std::int64_t end = p.offset + p.elements();
    std::int64_t begin = p.offset;
    for (; cut != cuts.end() && *cut < end; ++cut) {
      if (*cut <= begin) continue;
      whole.push_back({begin, *cut});
      begin = *cut;
    }
    whole.push_back({begin, end});
  }
  // Three pieces of each (two edges), and the rest of them for parts.
  const auto spare = static_cast<std::int64_t>(most) - 3 * static_cast<std::int64_t>(whole.size());
  const std::int64_t part =
      spare > 0 ? std::max(least_elements, (set.arena_elements() + spare - 1) / spare) : std::int64_t{0};
  std::vector<train::ElementRange> pieces;
  for (const train::ElementRange& range : whole) cut_up(range.begin, range.end, part, pieces);
  return pieces;
}

std::vector<WeightedSum> sketch_of(compute::Backend& backend, const Tensor& arena,
                                   const std::vector<train::ElementRange>& pieces) {
  std::vector<SketchedPiece> placed;
  for (const train::ElementRange& piece : pieces) placed.push_back({piece, piece.begin});
  return sketch_of(backend, arena, placed);
}

std::vector<WeightedSum> sketch_of(compute::Backend& backend, const Tensor& tensor,
                                   const std::vector<SketchedPiece>& pieces) {
  static const std::vector<float> weights = make_weights();
  std::vector<compute::WeightedSpan> spans;
  for (const SketchedPiece& piece : pieces)
    spans.push_back({piece.place, piece.of_arena.elements(), piece.of_arena.begin});
  return compute::inspector_of(backend)->sum_spans(tensor, spans, weights);
}

}  // namespace assay::verification
