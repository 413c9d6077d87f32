// Answers a verification's questions about tensors where they lie, in float64: sums, hashes, products, differences. The
// code is simple and shares nothing with the operations, so no kernel vouches for itself. The conformance suite
// compares a device's inspector with the one that computes on the host.
//
// All calls block, read what was enqueued before them on the main lane, and are only for verifications. They take
// device memory, and compute on the host if there is none. One thread at a time.
#pragma once
#include <assay/compute/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace assay::compute {

class Backend;

// Elements [first, first + count) of a tensor as it lies in memory, of one dimension.
struct ElementSpan {
  std::int64_t first = 0, count = 0;
  bool operator==(const ElementSpan&) const = default;
};

// A part of one row: elements [first, first + count) of row `row`, rows being all dimensions but the last, flattened.
struct RowSegment {
  std::int64_t row = 0, first = 0, count = 0;
};

// What the elements of a line and their squares are multiplied by; empty: this side is not wanted.
struct LineWeights {
  std::vector<double> values, squares;
};
struct LineSums {
  std::vector<double> values;   // sum over w x
  std::vector<double> squares;  // sum over w' x x
};
struct MatrixSums {
  LineSums of_rows, of_columns;
};

// Elements whose weights begin with the `place`-th of a sequence that repeats itself.
struct WeightedSpan {
  std::int64_t first = 0, count = 0, place = 0;
};
// Of elements x with weights w: the sums of w x and of (w x)^2. A sum of random signs would be as large as the root of
// the latter.
struct WeightedSum {
  double sum = 0, squares = 0;
  bool operator==(const WeightedSum&) const = default;
};

// How one tensor differs from the expected one, by blocks of neighbours: sums over each block's elements.
struct BlockSums {
  static constexpr std::int64_t block_elements = 256;
  struct Block {
    double distance = 0;  // (found - expected)^2
    double expected = 0;  // expected^2
    double along = 0;     // (found - expected) expected
  };
  std::int64_t elements = 0;
  std::vector<Block> blocks;  // the last one may have fewer elements
};

// The elements of a tensor as they were, on the device or on the host; of large ones some.
class KeptTensor {
 public:
  KeptTensor() = default;
  KeptTensor(const KeptTensor&) = delete;
  KeptTensor& operator=(const KeptTensor&) = delete;
  virtual ~KeptTensor() = default;
  virtual std::int64_t elements() const = 0;  // kept ones
  // Leaves the device's memory to others: what the inspector would have kept on the host stays, there. Returns whether
  // it has freed any.
  virtual bool move_to_host() { return false; }
};

class Inspector {
 public:
  Inspector() = default;
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  virtual ~Inspector() = default;

  // Elements in their order, whatever the strides; float64 holds the numbers of all types, but int64 beyond 2^53.
  virtual std::vector<double> read(const Tensor& t) = 0;
  // Those of `segments`, one behind the other.
  virtual std::vector<double> read(const Tensor& t, const std::vector<RowSegment>& segments) = 0;
  // Those of `spans` of a contiguous floating-point tensor, one span behind the other.
  virtual std::vector<float> read(const Tensor& t, const std::vector<ElementSpan>& spans) = 0;

  // Of all bits of a contiguous tensor: the same wherever the bits are the same, on every device.
  virtual std::uint64_t hash(const Tensor& t) = 0;

  // Of a tensor of rank 2: `over_columns` makes the sum of each row, `over_rows` that of each column.
  virtual MatrixSums sum_matrix(const Tensor& t, const LineWeights& over_columns, const LineWeights& over_rows) = 0;
  // Of each span of a contiguous floating-point tensor.
  virtual std::vector<WeightedSum> sum_spans(const Tensor& t, const std::vector<WeightedSpan>& spans,
                                             const std::vector<float>& weights) = 0;

  // x [rows, k] times the transpose of `w` [n, k], of any strides: [rows, n], row by row.
  virtual std::vector<double> product(const std::vector<double>& x, std::int64_t rows, const Tensor& w) = 0;
  // `found` [m, n] times `factor`, rounded to fp32, against the transpose of a [rows, m] times b [rows, n], rounded to
  // fp32: what a weight's gradient is over so many rows. `found` is contiguous.
  virtual BlockSums difference_from_product(const Tensor& found, float factor, const std::vector<double>& a,
                                            const std::vector<double>& b, std::int64_t rows) = 0;

  // A copy of a contiguous floating-point tensor: whole on the device, if there is room to spare, otherwise about
  // `most_on_host` of its elements, evenly spread runs of `spread_spans`, on the host.
  virtual std::unique_ptr<KeptTensor> keep(const Tensor& t, std::int64_t most_on_host) = 0;
  // What was kept, as found, against a tensor of the same number of elements, of any strides, as expected.
  virtual BlockSums difference(const KeptTensor& found, const Tensor& expected) = 0;

  // Frees the device memory that the calls above took as scratch; they take it again when needed. It does not free what
  // keep() returned.
  virtual void release_memory() {}
};

// The device's inspector, or one that downloads and computes on the host. The backend must outlive it.
std::shared_ptr<Inspector> inspector_of(Backend& backend);

// Which of `elements` are looked at: all of them, where `most` allows; otherwise runs of up to `run` elements, evenly
// spread, with both ends, `most` together or a little more.
inline constexpr std::int64_t spread_run = 4096;
std::vector<ElementSpan> spread_spans(std::int64_t elements, std::int64_t most, std::int64_t run = spread_run);

}  // namespace assay::compute
