// What a reduction leaves when it is repeated in place: each one reads what the one before has left. A sum of n ranks
// grows by the factor n each time, up to infinity. An average and a maximum stay. The part of a reduce-scatter takes up
// the parts of the other ranks, which do not change, again and again. All of it is known but for roundings.
#pragma once
#include <assay/comm/exact_data.hpp>
#include <assay/comm/message.hpp>
#include <assay/comm/pieces.hpp>
#include <assay/compute/backend.hpp>

#include <cstdint>
#include <vector>

namespace all_reduce {

// What a result may be, both included. Infinities are values of it.
struct Range {
  double least = 0, most = 0;
  bool has(double value) const { return value >= least && value <= most; }
};

// One element of the data of all ranks. `own`: this rank's; `others`, `magnitude`: sums over the other ranks, and over
// their absolute values; `reduced`: of all ranks, in exact arithmetic.
struct Element {
  double own, others, magnitude, reduced;
};

struct Repetition {
  assay::comm::Collective collective;  // all_reduce or reduce_scatter
  assay::comm::Reduction reduction;
  assay::compute::DType dtype;
  std::int32_t ranks;
  double first_tolerance;  // ExactData's, of one reduction
};
Range after(const Repetition& repetition, const Element& element, std::uint64_t times);

// x[i] against data[i + shift] after as many reductions.
assay::comm::Comparison compare_repeated(assay::compute::Backend& backend, const assay::compute::Tensor& x,
                                         const Repetition& repetition, const assay::comm::ExactData& exact,
                                         std::int32_t rank, std::int64_t shift, std::uint64_t times);

}  // namespace all_reduce
