// Muon's matrices: which parameters are matrices, and the step that makes their momentum orthogonal (Keller Jordan's
// Muon, as in torch.optim.Muon). Embeddings, the head, norms and biases are not matrices; the Optimizer updates them by
// AdamW.
//
// A step over a matrix W with gradient G:
//   M = M + (1 - momentum) (G - M);  X = nesterov ? G + momentum (M - G) : M;  X = X / |X|   (Frobenius)
//   `steps` times, of Newton and Schulz: A = X X';  B = b A + c A A;  X = a X + B X
//   W = (1 - lr weight_decay) W - lr factor X
// Of a matrix with more rows than columns A is X' X, and B stands behind X: the small one of the two Gram matrices.
// X is bf16; of a precision whose activations are fp32 it is fp32.
//
// Matrices of one shape go through it together, in batches: a product of a batch is one launch.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/parameters.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay::train {

// The factor of the learning rate of a matrix with these rows and columns:
//   original         sqrt(max(1, rows / columns))
//   match_rms_adamw  0.2 sqrt(max(rows, columns)): an update as large as AdamW's, whose rate then serves
enum class MuonAdjust { original, match_rms_adamw };
inline constexpr std::array<const char*, 2> muon_adjusts{"original", "match_rms_adamw"};
double muon_factor(MuonAdjust adjust, std::int64_t rows, std::int64_t columns);

// Of Newton's and Schulz's steps.
struct NewtonSchulz {
  static constexpr float a = 3.4445F, b = -4.7750F, c = 2.0315F;
};

// Multiplications and additions of one such step over a matrix.
double newton_schulz_operations(std::int64_t rows, std::int64_t columns);

struct MuonConfig {  // torch.optim.Muon's numbers
  double lr = 1e-3;
  float weight_decay = 0.1F;
  float momentum = 0.95F;
  bool nesterov = true;
  std::int64_t steps = 5;
  MuonAdjust adjust = MuonAdjust::original;
};

struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
  auto operator<=>(const MatrixShape&) const = default;
};

// One matrix in the arena.
struct ArenaMatrix {
  std::int64_t begin = 0, rows = 0, columns = 0;
  std::int64_t elements() const { return rows * columns; }
  ElementRange range() const { return {begin, begin + elements()}; }
  MatrixShape shape() const { return {rows, columns}; }
};
// The matrices of a parameter, in order; empty if it is no matrix.
std::vector<ArenaMatrix> matrices_of(const Parameter& parameter);

class Muon {
 public:
  // The most elements of a batch, unless one matrix has more. Large enough that the last wave of a product's tiles is a
  // small share of all.
  static constexpr std::int64_t batch_elements = std::int64_t{96} << 20;

  // Matrices that begin `step` elements after one another, and whose momentum is as evenly spaced.
  struct Run {
    std::int64_t begin = 0, step = 0, count = 0;
  };
  struct Batch {
    std::int64_t rows = 0, columns = 0, count = 0;
    std::vector<Run> runs;
  };
  // What a step reads and writes beside the parameters.
  struct State {
    compute::Tensor momentum;                                 // of all ranges, packed
    std::function<std::int64_t(const ElementRange&)> packed;  // where the momentum of a piece of the arena begins in it
    compute::Tensor learning_rate;                            // fp32 [1]
  };

  // Of the matrices that lie in `ranges` of the arena. UNSUPPORTED where a range has a part of one.
  Muon(const MuonConfig& config, const ParameterSet& parameters, const std::vector<ElementRange>& ranges,
       std::int64_t most_of_batch = batch_elements);

  const std::vector<Batch>& batches() const { return batches_; }
  std::int64_t elements() const;  // of all matrices
  // The rest of the same ranges, without the matrices: neighbours together.
  const std::vector<ElementRange>& rest() const { return rest_; }

  compute::DType dtype() const;  // of X
  // Memory for the batches' products, which is of use to others between steps.
  std::size_t scratch_bytes() const;
  void bind(void* scratch) { scratch_ = scratch; }
  // Enqueues the update of every matrix, or of every one of a shape.
  void step(compute::Backend& backend, const LossScaler& scaler, const State& state) const;
  void step(compute::Backend& backend, const LossScaler& scaler, const State& state, const MatrixShape& shape) const;

 private:
  void step(compute::Backend& backend, const LossScaler& scaler, const State& state, const Batch& batch) const;
  // X starts in the batch's first place; returns its final place.
  compute::Tensor orthogonal(compute::Backend& backend, const Batch& batch) const;

  MuonConfig config_;
  const ParameterSet* parameters_;
  std::vector<Batch> batches_;
  std::vector<ElementRange> rest_;
  void* scratch_ = nullptr;
};

}  // namespace assay::train
