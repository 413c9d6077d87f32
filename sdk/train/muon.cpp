#include "assay/train/muon.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace assay::train {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {

constexpr std::size_t alignment = 256;
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Where a matrix begins in the arena, and where its momentum does.
using Begins = std::map<std::int64_t, std::int64_t>;

// As few runs of one step each, in the arena and in the momentum: the longest one that begins with the first matrix
// comes first.
std::vector<Muon::Run> runs_of(Begins left) {
  constexpr std::size_t steps_tried = 64;
  std::vector<Muon::Run> runs;
  while (!left.empty()) {
    const auto [first, momentum] = *left.begin();
    Muon::Run longest{first, 0, 1};
    std::size_t tried = 0;
    for (auto second = std::next(left.begin()); second != left.end() && tried < steps_tried; ++second, ++tried) {
      const std::int64_t step = second->first - first, momentum_step = second->second - momentum;
      std::int64_t count = 2;
      for (auto next = left.find(first + count * step);
           next != left.end() && next->second == momentum + count * momentum_step;)
        next = left.find(first + ++count * step);
      if (count > longest.count) longest = {first, step, count};
    }
    for (std::int64_t i = 0; i < longest.count; ++i) left.erase(first + i * longest.step);
    runs.push_back(longest);
  }
  return runs;
}

// Cuts them into batches of about equal counts, `most` matrices each.
std::vector<Muon::Batch> batches_of(std::int64_t rows, std::int64_t columns, const std::vector<Muon::Run>& runs,
                                    std::int64_t most) {
  std::int64_t count = 0;
  for (const Muon::Run& run : runs) count += run.count;
  const std::int64_t parts = (count + most - 1) / most;
  std::vector<Muon::Batch> batches;
  auto run = runs.begin();
  std::int64_t taken = 0;  // of this run
  for (std::int64_t part = 0; part < parts; ++part) {
    Muon::Batch batch{rows, columns, count * (part + 1) / parts - count * part / parts, {}};
    for (std::int64_t wanted = batch.count; wanted > 0;) {
      const std::int64_t here = std::min(wanted, run->count - taken);
      batch.runs.push_back({run->begin + taken * run->step, run->step, here});
      wanted -= here, taken += here;
      if (taken == run->count) ++run, taken = 0;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// A run's matrices where they lie: [count, elements].
Tensor rows_of(const Tensor& arena, const Muon::Run& run, std::int64_t elements) {
  if (!arena) return {};
  Tensor t(arena.slice(0, run.begin, elements).data, arena.dtype, {run.count, elements});
  if (run.count > 1) t.stride[0] = run.step;
  return t;
}

// The same run in the momentum, whose ranges are packed.
Muon::Run momentum_of(const Muon::Run& run, std::int64_t elements, const Muon::State& state) {
  const auto place = [&](std::int64_t begin) { return state.packed({begin, begin + elements}); };
  const std::int64_t begin = place(run.begin);
  return {begin, run.count > 1 ? place(run.begin + run.step) - begin : 0, run.count};
}

std::int64_t small_side(const Muon::Batch& batch) { return std::min(batch.rows, batch.columns); }

// Where the tensors of a batch lie in the scratch.
struct Places {
  Tensor x, next;       // [count, rows, columns]
  Tensor gram, update;  // [count, small, small]
  std::size_t bytes = 0;

  Places(const Muon::Batch& batch, DType dtype, void* scratch) {
    const auto place = [&](std::int64_t rows, std::int64_t columns) {
      Tensor t(scratch ? static_cast<char*>(scratch) + bytes : nullptr, dtype, {batch.count, rows, columns});
      bytes += aligned(t.bytes());
      return t;
    };
    const std::int64_t small = small_side(batch);
    x = place(batch.rows, batch.columns);
    next = place(batch.rows, batch.columns);
    gram = place(small, small);
    update = place(small, small);
  }
};

}  // namespace

double muon_factor(MuonAdjust adjust, std::int64_t rows, std::int64_t columns) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
  return adjust == MuonAdjust::original ? std::sqrt(std::max(1.0, m / n)) : 0.2 * std::sqrt(std::max(m, n));
}

// Its products: of X with itself, of the Gram matrix with itself, and of the two sums with X.
double newton_schulz_operations(std::int64_t rows, std::int64_t columns) {
  const auto small = static_cast<double>(std::min(rows, columns)), large = static_cast<double>(std::max(rows, columns));
  return 2 * small * small * (2 * large + small);
}

std::vector<ArenaMatrix> matrices_of(const Parameter& p) {
  if (p.dims.size() < 2 || p.row_parts == 0) return {};
  const std::int64_t stacked = p.dims.size() == 3 ? p.dims[0] : 1;
  const std::int64_t rows = p.dims[p.dims.size() - 2] / p.row_parts, columns = p.dims.back();
  std::vector<ArenaMatrix> matrices;
  for (std::int64_t i = 0; i < stacked * p.row_parts; ++i)
    matrices.push_back({p.offset + i * rows * columns, rows, columns});
  return matrices;
}

Muon::Muon(const MuonConfig& config, const ParameterSet& parameters, const std::vector<ElementRange>& ranges,
           std::int64_t most_of_batch)
    : config_(config), parameters_(&parameters) {
  std::map<MatrixShape, Begins> begins;
  std::int64_t packed = 0;  // elements of the ranges so far
  for (const ElementRange& owned : ranges) {
    bool continues = false;  // the last of rest_
    for (const Parameter& p : parameters.all()) {
      const ElementRange part{std::max(owned.begin, p.offset), std::min(owned.end, p.offset + p.elements())};
      if (part.begin >= part.end) continue;
      const std::vector<ArenaMatrix> matrices = matrices_of(p);
      if (matrices.empty()) {
        if (continues)
          rest_.back().end = part.end;
        else
          rest_.push_back(part);
        continues = true;
        continue;
      }
      continues = false;
      for (const ArenaMatrix& m : matrices) {
        const ElementRange whole = m.range();
        if (whole.end <= owned.begin || whole.begin >= owned.end) continue;
        if (whole.begin < owned.begin || whole.end > owned.end)
          throw Error(ASSAY_UNSUPPORTED, "optimizer = \"muon\" updates whole matrices, and this rank has a part of '" +
                                             p.name + "'; expected optimizer = \"adamw\" where parameters are cut");
        begins[m.shape()][m.begin] = packed + m.begin - owned.begin;
      }
    }
    packed += owned.elements();
  }
  for (const auto& [shape, of_shape] : begins) {
    const auto [rows, columns] = shape;
    const std::int64_t most = std::max<std::int64_t>(1, most_of_batch / (rows * columns));
    for (Batch& batch : batches_of(rows, columns, runs_of(of_shape), most)) batches_.push_back(std::move(batch));
  }
}

DType Muon::dtype() const { return parameters_->policy().activation == DType::f32 ? DType::f32 : DType::bf16; }

std::int64_t Muon::elements() const {
  std::int64_t all = 0;
  for (const Batch& batch : batches_) all += batch.count * batch.rows * batch.columns;
  return all;
}

std::size_t Muon::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const Batch& batch : batches_) bytes = std::max(bytes, Places(batch, dtype(), nullptr).bytes);
  return bytes;
}

void Muon::step(compute::Backend& backend, const LossScaler& scaler, const State& state) const {
  for (const Batch& batch : batches_) step(backend, scaler, state, batch);
}

void Muon::step(compute::Backend& backend, const LossScaler& scaler, const State& state,
                const MatrixShape& shape) const {
  for (const Batch& batch : batches_)
    if (MatrixShape{batch.rows, batch.columns} == shape) step(backend, scaler, state, batch);
}

void Muon::step(compute::Backend& backend, const LossScaler& scaler, const State& state, const Batch& batch) const {
  const Places at(batch, dtype(), scratch_);
  const std::int64_t elements = batch.rows * batch.columns;
  const auto each_run = [&](const Tensor& x, const auto& enqueue) {
    std::int64_t first = 0;
    for (const Run& run : batch.runs) {
      enqueue(run, x.slice(0, first, run.count).view({run.count, elements}));
      first += run.count;
    }
  };
  each_run(at.x, [&](const Run& run, const Tensor& x) {
    backend.run(op::MuonMomentum{.gradient = rows_of(parameters_->all_gradients(), run, elements),
                                 .momentum = rows_of(state.momentum, momentum_of(run, elements, state), elements),
                                 .update = x,
                                 .options = {config_.momentum, config_.nesterov},
                                 .loss_scale = scaler.tensors()});
  });
  backend.run(op::NormalizeRows{.x = at.x.view({batch.count, elements})});
  const auto factor = static_cast<float>(muon_factor(config_.adjust, batch.rows, batch.columns));
  each_run(orthogonal(backend, batch), [&](const Run& run, const Tensor& x) {
    backend.run(op::MuonUpdate{.parameter = rows_of(parameters_->all_values(), run, elements),
                               .update = x,
                               .lr = state.learning_rate,
                               .options = {config_.weight_decay, factor},
                               .compute_copy = rows_of(parameters_->compute_copy(), run, elements),
                               .loss_scale = scaler.tensors()});
  });
}

Tensor Muon::orthogonal(compute::Backend& backend, const Batch& batch) const {
  Places at(batch, dtype(), scratch_);
  const bool is_tall = batch.rows > batch.columns;
  for (std::int64_t i = 0; i < config_.steps; ++i) {
    backend.run(op::Matmul{.a = at.x, .b = at.x, .c = at.gram, .transpose_a = is_tall, .transpose_b = !is_tall});
    backend.run(op::Matmul{.a = at.gram,
                           .b = at.gram,
                           .c = at.update,
                           .alpha = NewtonSchulz::c,
                           .residual = at.gram,
                           .residual_scale = NewtonSchulz::b});
    backend.run(op::Matmul{.a = is_tall ? at.x : at.update,
                           .b = is_tall ? at.update : at.x,
                           .c = at.next,
                           .residual = at.x,
                           .residual_scale = NewtonSchulz::a});
    std::swap(at.x, at.next);
  }
  return at.x;
}

}  // namespace assay::train
