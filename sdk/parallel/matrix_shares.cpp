#include "assay/parallel/matrix_shares.hpp"

#include <algorithm>
#include <assay/train/optimizer.hpp>
#include <numeric>
#include <set>

namespace assay::parallel {

using train::ArenaMatrix;
using train::ElementRange;
using train::MatrixShape;
using train::Parameter;
using train::ParameterSet;

namespace {

constexpr std::int64_t line = train::Optimizer::alignment_elements;
// A stretch without matrices is cut among the ranks if each gets at least this many lines: a message costs as much as a
// few of them.
constexpr std::int64_t least_lines_of_part = 16;

// The smallest piece with one owner: a matrix, matrices that share a line, or a stretch without matrices.
struct Unit {
  ElementRange range;
  double operations = 0;  // to make its matrices orthogonal
  std::int32_t owner = 0;
  std::vector<MatrixShape> shapes = {};
  bool has_matrices() const { return !shapes.empty(); }
};

// Where a parameter may be parted, and what its matrices cost from there on.
void add_units(std::vector<Unit>& units, const Parameter& p, std::int64_t group_begin) {
  const auto may_begin_at = [&](std::int64_t begin) {
    if (begin == group_begin || begin % line == 0) units.push_back({{begin, begin}});
  };
  const std::vector<ArenaMatrix> matrices = matrices_of(p);
  if (matrices.empty()) may_begin_at(p.offset);
  for (const ArenaMatrix& m : matrices) {
    may_begin_at(m.begin);
    units.back().shapes.push_back(m.shape());
    units.back().operations += train::newton_schulz_operations(m.rows, m.columns);
  }
}

// Ascending, each to the begin of the next one: together they are the arena.
std::vector<Unit> units_of(const ParameterSet& set) {
  std::vector<Unit> units;
  auto group = set.group_begins().begin();
  std::int64_t group_begin = 0;
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    if (group != set.group_begins().end() && *group == id) group_begin = set.all()[id].offset, ++group;
    add_units(units, set.all()[id], group_begin);
  }
  for (std::size_t i = 0; i < units.size(); ++i)
    units[i].range.end = i + 1 < units.size() ? units[i + 1].range.begin : set.arena_elements();
  return units;
}

// Returns the operations of each rank.
std::vector<double> assign_matrices(std::vector<Unit>& units, std::int32_t ranks) {
  struct Load {
    double operations = 0;
    std::int64_t elements = 0;
    bool operator<(const Load& other) const {
      return operations != other.operations ? operations < other.operations : elements < other.elements;
    }
  };
  std::vector<Unit*> matrices;
  for (Unit& unit : units)
    if (unit.has_matrices()) matrices.push_back(&unit);
  std::stable_sort(matrices.begin(), matrices.end(),
                   [](const Unit* a, const Unit* b) { return a->operations > b->operations; });
  std::vector<Load> loads(static_cast<std::size_t>(ranks));
  for (Unit* const unit : matrices) {
    const auto least = std::min_element(loads.begin(), loads.end());
    least->operations += unit->operations, least->elements += unit->range.elements();
    unit->owner = static_cast<std::int32_t>(least - loads.begin());
  }
  std::vector<double> operations;
  for (const Load& load : loads) operations.push_back(load.operations);
  return operations;
}

// Cuts each stretch without matrices, or assigns it to the owner of the unit before it.
std::vector<Unit> assign_rest(const std::vector<Unit>& units, std::int32_t ranks) {
  std::vector<Unit> all;
  for (const Unit& unit : units) {
    all.push_back(unit);
    if (unit.has_matrices()) continue;
    const std::int64_t lines = unit.range.elements() / line;
    if (lines < least_lines_of_part * ranks) {
      all.back().owner = all.size() > 1 ? all[all.size() - 2].owner : 0;
      continue;
    }
    all.pop_back();
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const auto cut = [&](std::int64_t r) { return unit.range.begin + lines * r / ranks * line; };
      all.push_back({{cut(rank), rank + 1 == ranks ? unit.range.end : cut(rank + 1)}, 0, rank});
    }
  }
  return all;
}

}  // namespace

MatrixShares::MatrixShares(const ParameterSet& set, const std::vector<ElementRange>& buckets, std::int32_t ranks)
    : pieces_(buckets.size()) {
  std::vector<Unit> units = units_of(set);
  std::set<MatrixShape> shapes;
  for (const Unit& unit : units) shapes.insert(unit.shapes.begin(), unit.shapes.end());
  shapes_.assign(shapes.begin(), shapes.end());
  operations_ = assign_matrices(units, ranks);
  std::size_t bucket = 0;
  for (const Unit& unit : assign_rest(units, ranks)) {
    while (unit.range.begin >= buckets[bucket].end) ++bucket;
    std::vector<Piece>& pieces = pieces_[bucket];
    if (pieces.empty() || pieces.back().owner != unit.owner) pieces.push_back({{unit.range.begin, 0}, unit.owner});
    pieces.back().range.end = unit.range.end;
    for (const MatrixShape& shape : unit.shapes) {
      const auto place = std::lower_bound(shapes_.begin(), shapes_.end(), shape);
      pieces.back().last_shape = std::max(pieces.back().last_shape, static_cast<std::int32_t>(place - shapes_.begin()));
    }
  }
}

std::vector<ElementRange> MatrixShares::owned_by(std::int32_t rank) const {
  std::vector<ElementRange> owned;
  for (const std::vector<Piece>& pieces : pieces_)
    for (const Piece& piece : pieces)
      if (piece.owner == rank) owned.push_back(piece.range);
  return owned;
}

double MatrixShares::imbalance() const {
  const double all = std::accumulate(operations_.begin(), operations_.end(), 0.0);
  if (all == 0) return 1;
  return *std::max_element(operations_.begin(), operations_.end()) * static_cast<double>(operations_.size()) / all;
}

}  // namespace assay::parallel
