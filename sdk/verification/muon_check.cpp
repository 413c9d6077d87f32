#include "assay/verification/muon_check.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/compute/inspector.hpp>
#include <assay/compute/sixteen_bit.hpp>
#include <assay/workload/text.hpp>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "double_products.hpp"
#include "roundings.hpp"

namespace assay::verification {

namespace {

using train::ElementRange;
using train::Muon;

// Multiplications and additions of the matrices that one update checks; each is made orthogonal twice or more. One
// matrix may need more.
constexpr double most_operations = 2e9;

// By how many times what rounding has made of the iteration here the device may differ. Both are sums of roundings that
// fall differently; those of fp32 add up inside of products as well.
constexpr double allowed_of_rounding = 4, allowed_of_fp32 = 16;

double rounded(double x, Storage storage) {
  switch (storage) {
    case Storage::exact: return x;
    case Storage::fp32: return static_cast<double>(static_cast<float>(x));
    case Storage::bf16: return double{compute::float_of_bf16(compute::bf16_of_float(static_cast<float>(x)))};
    case Storage::tf32: {
      constexpr std::uint32_t half = 1U << 12;  // of the last of ten bits
      return double{
          std::bit_cast<float>((std::bit_cast<std::uint32_t>(static_cast<float>(x)) + half) & ~(2 * half - 1))};
    }
  }
  return x;
}

void store(Matrix& m, Storage storage) {
  if (storage != Storage::exact)
    for (double& x : m.values) x = rounded(x, storage);
}

// to = of_to to + of_from from
void combine(Matrix& to, double of_to, const Matrix& from, double of_from) {
  for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] = of_to * to.values[i] + of_from * from.values[i];
}

Storage storage_of(const train::Trainer& trainer, const Muon& muon) {
  if (muon.dtype() == compute::DType::bf16) return Storage::bf16;
  return trainer.parameters().policy().product_math == compute::ProductMath::tf32 ? Storage::tf32 : Storage::fp32;
}

double norm_of(const double* x, std::size_t count) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += x[i] * x[i];
  return std::sqrt(squares);
}
double norm_of(const Matrix& m) { return norm_of(m.values.data(), m.values.size()); }

// Beyond some steps singular values no longer converge: each next step moves them about within 0.7 to 1.1 and makes
// their errors larger, by products of slopes that one singular value may decide for a whole matrix. What rounding does
// is then seen in several roundings of the same matrix, times odd numbers, which the norm divides by; and as few
// roundings of one number may all be small, four times as much is allowed. Found of fp32: 18 times, where others are 4
// to 10.
constexpr std::int64_t settled_steps = 10;
constexpr double of_unsettled = 4;
std::vector<double> factors_of_roundings(std::int64_t steps) {
  return steps > settled_steps ? std::vector<double>{1, 3, 5, 7, 11} : std::vector<double>{1};
}

double operations_of(const Muon::Batch& batch, std::int64_t steps) {
  const auto m = static_cast<double>(std::min(batch.rows, batch.columns));
  const auto n = static_cast<double>(std::max(batch.rows, batch.columns));
  const auto times = static_cast<double>(1 + factors_of_roundings(steps).size());
  return times * static_cast<double>(steps) * m * m * (4 * n + 2 * m);
}

ElementRange matrix_at(const Muon::Batch& batch, std::int64_t index) {
  for (const Muon::Run& run : batch.runs) {
    if (index < run.count) {
      const std::int64_t begin = run.begin + index * run.step;
      return {begin, begin + batch.rows * batch.columns};
    }
    index -= run.count;
  }
  return {};
}

}  // namespace

// By rows that are no longer than columns: what is X' X of a tall matrix is X X' of its transpose.
Matrix orthogonalised(Matrix x, std::int64_t steps, Storage storage) {
  constexpr double least_norm = 1e-7;  // as the formula's eps
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool is_tall = x.rows > x.columns;
  if (is_tall) x = transposed(x);
  store(x, storage);
  const double norm = std::max(norm_of(x), least_norm);
  for (double& value : x.values) value /= norm;
  store(x, storage);
  for (std::int64_t i = 0; i < steps; ++i) {
    Matrix gram = product(x, transposed(x));
    store(gram, storage);
    Matrix update = product(gram, gram);
    combine(update, c, gram, b);
    store(update, storage);
    combine(x, a, product(update, x), 1);
    store(x, storage);
  }
  return is_tall ? transposed(x) : x;
}

MuonCheck::MuonCheck(const train::Trainer& trainer, const train::Optimizer& optimizer)
    : trainer_(trainer),
      optimizer_(optimizer),
      backend_(trainer.backend()),
      set_(trainer.parameters()),
      seen_(optimizer.muon()->batches().size()),
      moved_(seen_.size()) {}

Matrix MuonCheck::read(const compute::Tensor& arena, const ElementRange& range, const Muon::Batch& batch) const {
  return {static_cast<std::size_t>(batch.rows), static_cast<std::size_t>(batch.columns),
          compute::inspector_of(backend_)->read(arena.slice(0, range.begin, range.elements()))};
}

// The first matrix of each batch and the last one, and in the next update their neighbours. At least one.
void MuonCheck::keep() {
  const std::vector<Muon::Batch>& batches = optimizer_.muon()->batches();
  chosen_.clear();
  double left = most_operations;
  const std::size_t first = next_batch_;
  for (std::size_t i = 0; i < batches.size() && left > 0; ++i) {
    next_batch_ = (first + i) % batches.size();
    const Muon::Batch& batch = batches[next_batch_];
    const std::int64_t near = next_matrix_ % batch.count, far = batch.count - 1 - near;
    const double cost = operations_of(batch, optimizer_.config().muon.steps);
    for (const std::int64_t index : near == far ? std::vector{near} : std::vector{near, far}) {
      if (!chosen_.empty() && cost > left) continue;
      left -= cost;
      const ElementRange range = matrix_at(batch, index);
      chosen_.push_back({&batch, range, read(set_.all_values(), range, batch),
                         read(optimizer_.moment(0), optimizer_.packed(range), batch)});
      seen_[next_batch_] = true;
    }
  }
  if (!batches.empty()) next_batch_ = (next_batch_ + 1) % batches.size();
  ++next_matrix_;
}

std::string MuonCheck::name_of(const ElementRange& range) const {
  for (const train::Parameter& p : set_.all())
    if (range.begin >= p.offset && range.begin < p.offset + p.elements())
      return p.name + (range.elements() < p.elements()
                           ? " (matrix " + std::to_string((range.begin - p.offset) / range.elements()) + ")"
                           : "");
  return "a matrix";
}

void MuonCheck::compare(double rate, double unscale, std::int64_t update_number) {
  for (const Chosen& chosen : chosen_) compare(chosen, rate, unscale, update_number);
}

void MuonCheck::compare(const Chosen& chosen, double rate, double unscale, std::int64_t update_number) {
  const Muon& muon = *optimizer_.muon();
  const train::MuonConfig& config = optimizer_.config().muon;
  const Muon::Batch& batch = *chosen.batch;
  const Matrix gradient = read(set_.all_gradients(), chosen.range, batch);
  const Matrix now = read(set_.all_values(), chosen.range, batch);
  const double kept = config.momentum, decay = config.weight_decay;
  Matrix update = gradient;
  for (std::size_t i = 0; i < update.values.size(); ++i) {
    const double g = gradient.values[i] * unscale;
    const double momentum = kept * chosen.momentum.values[i] + (1 - kept) * g;
    update.values[i] = config.nesterov ? (1 - kept) * g + kept * momentum : momentum;
  }
  const Storage storage = storage_of(trainer_, muon);
  const Matrix right = orthogonalised(update, config.steps, Storage::exact);
  const std::vector<double> factors = factors_of_roundings(config.steps);
  std::vector<double> off(right.rows);  // by row: squares, of the mean over all roundings
  for (const double by : factors) {
    Matrix again = update;
    combine(again, by, again, 0);
    again = orthogonalised(std::move(again), config.steps, storage);
    combine(again, 1, right, -1);
    for (std::size_t r = 0; r < off.size(); ++r)
      off[r] += norm_of(again.row(r), again.columns) * norm_of(again.row(r), again.columns) /
                static_cast<double>(factors.size());
  }
  const auto m = static_cast<double>(batch.rows), n = static_cast<double>(batch.columns);
  const double factor = rate * (config.adjust == train::MuonAdjust::original ? std::sqrt(std::max(1.0, m / n))
                                                                             : 0.2 * std::sqrt(std::max(m, n)));
  const double share = (storage == Storage::fp32 ? allowed_of_fp32 : allowed_of_rounding) *
                       (config.steps > settled_steps ? of_unsettled : 1);
  const double mean_off = std::sqrt(std::accumulate(off.begin(), off.end(), 0.0) / m);
  const std::size_t columns = now.columns;
  const std::size_t which = static_cast<std::size_t>(chosen.batch - muon.batches().data());
  for (std::size_t r = 0; r < now.rows; ++r) {
    const double *w = chosen.value.row(r), *x = right.row(r), *found = now.row(r);
    double distance = 0, stored = 0, moved = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const double expected = (1 - rate * decay) * w[c] - factor * x[c],
                   half = half_unit(set_.policy().parameter, expected);
      distance += (found[c] - expected) * (found[c] - expected);
      stored += half * half;
      moved += (expected - w[c]) * (expected - w[c]);
    }
    const double sizes = norm_of(w, columns) + factor * norm_of(x, columns);
    const double allowed =
        factor * share * (std::sqrt(off[r]) + mean_off) + std::sqrt(stored) + 8 * fp32_rounding * sizes + 0x1p-126;
    const double error = std::sqrt(distance) / allowed;
    worst_ = compute::worse(worst_, error);
    if (std::sqrt(moved) > 2 * allowed) moved_[which] = true;
    if (error <= 1) continue;
    throw Error(ASSAY_WRONG_RESULT,
                "after update " + std::to_string(update_number) + " row " + std::to_string(r) + " of " +
                    name_of(chosen.range) + " is " + workload::number(std::sqrt(distance)) +
                    " from the one that float64 makes orthogonal, in the Euclidean norm, and may be " +
                    workload::number(allowed) + "; the update is " + workload::number(std::sqrt(moved)));
  }
  ++compared_;
}

void MuonCheck::require_same() {
  for (const Chosen& chosen : chosen_) {
    const bool same =
        read(set_.all_values(), chosen.range, *chosen.batch).values == chosen.value.values &&
        read(optimizer_.moment(0), optimizer_.packed(chosen.range), *chosen.batch).values == chosen.momentum.values;
    if (!same)
      throw Error(ASSAY_WRONG_RESULT,
                  "a step that the loss scale skips has changed " + name_of(chosen.range) + " or its momentum");
  }
}

std::string MuonCheck::text() const {
  const auto count = [](const std::vector<bool>& of) { return std::to_string(std::count(of.begin(), of.end(), true)); };
  return std::to_string(compared_) + " updates of whole matrices, of " + count(seen_) + " of " +
         std::to_string(seen_.size()) + " batches, made orthogonal as float64 does within " +
         workload::number(worst_, "%.2g") + " of what rounding allows, those of " + count(moved_) +
         " batches moved by more than that; ";
}

}  // namespace assay::verification
