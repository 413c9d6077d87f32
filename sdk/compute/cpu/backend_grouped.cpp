// Products by groups of rows. Each group is cut into pieces whose products are prepared (row_pieces.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cpu_backend.hpp"
#include "kernels/experts.hpp"
#include "row_pieces.hpp"

namespace assay::cpu {
namespace {

// A bad offset must not read or write another tensor's memory.
const std::int32_t* checked_offsets(const char* operation, const Tensor& offsets, std::int64_t rows) {
  const auto* const first = data_of<std::int32_t>(offsets);
  std::int64_t least = 0;
  for (std::int64_t e = 0; e < offsets.elements(); ++e) {
    if (first[e] < least || first[e] > rows || (e == 0 && first[e] != 0))
      invalid(operation, fmt::format("offset {} is {}; expected 0 in the beginning, none less than the one before, and "
                                     "at most {}, the rows",
                                     e, first[e], rows));
    least = first[e];
  }
  return first;
}

// Matrix `index` of a tensor of rank 3.
Tensor matrix(const Tensor& t, std::int64_t index) {
  const Tensor one = t.slice(0, index, 1);
  return {one.data, t.dtype, {t.dim(1), t.dim(2)}};
}

}  // namespace

void CpuBackend::execute(const op::GroupedMatmul& op) {
  const std::int64_t groups = op.b.dim(0), rows = op.a.dim(0);
  if (rows == 0) return;
  const auto multiply = [&](std::int64_t group, std::int64_t first, std::int64_t count) {
    execute(op::Matmul{.a = op.a.slice(0, first, count),
                       .b = matrix(op.b, group),
                       .c = op.c.slice(0, first, count),
                       .transpose_b = op.transpose_b,
                       .bias = op.bias ? op.bias.slice(0, group, 1).flat() : Tensor()});
  };
  if (preparing()) {
    for (std::int64_t count = 1; count <= std::min(rows, most_piece_rows); count *= 2) multiply(0, 0, count);
    return;
  }
  const std::int32_t* const offsets = checked_offsets(op.name, op.offsets, rows);
  for (std::int64_t e = 0; e < groups; ++e)
    for_each_piece(offsets[e + 1] - offsets[e], 1, true, [&](std::int64_t count, std::int64_t left) {
      multiply(e, count > left ? offsets[e + 1] - count : offsets[e + 1] - left, count);
    });
}

// A bf16 gradient of several pieces is summed in fp32.
void CpuBackend::execute(const op::GroupedWeightGradient& op) {
  constexpr std::int64_t least = 16;  // so many rows, most of them 0, take no longer than one
  const std::int64_t groups = op.dw.dim(0), rows = op.dy.dim(0);
  const std::int64_t most = std::min(most_piece_rows, std::max(least, piece_that_covers(rows)));
  const bool narrow = op.dw.dtype == DType::bf16;
  Tensor sum(nullptr, DType::f32, {op.dw.dim(1), op.dw.dim(2)});
  Tensor padded_dy(nullptr, op.dy.dtype, {most, op.dy.dim(1)}), padded_x(nullptr, op.x.dtype, {most, op.x.dim(1)});
  const auto aligned = [](const Tensor& t) { return (t.bytes() + 63) / 64 * 64; };
  const std::size_t at_x = aligned(padded_dy), at_sum = at_x + aligned(padded_x);
  with_scratch(at_sum + (narrow ? aligned(sum) : 0), [&](char* memory) {
    const auto multiply = [&](const Tensor& dy, const Tensor& x, const Tensor& to, std::int64_t count, bool add) {
      execute(op::Matmul{
          .a = dy.slice(0, 0, count), .b = x.slice(0, 0, count), .c = to, .transpose_a = true, .accumulate = add});
    };
    if (preparing()) {
      for (std::int64_t count = least; count <= most; count *= 2) {
        multiply(padded_dy, padded_x, matrix(op.dw, 0), count, op.accumulate);
        if (!narrow) multiply(padded_dy, padded_x, matrix(op.dw, 0), count, true);
        for (const bool add : {false, true})
          if (narrow) multiply(padded_dy, padded_x, sum, count, add);
      }
      return;
    }
    padded_dy.data = memory, padded_x.data = memory + at_x, sum.data = memory + at_sum;
    const std::int32_t* const offsets = checked_offsets(op.name, op.offsets, rows);
    // The next rows of a group, and zeros where the piece has more.
    const auto piece_of = [&](const Tensor& all, const Tensor& padded, std::int64_t first, std::int64_t count,
                              std::int64_t left) -> Tensor {
      if (count <= left) return all.slice(0, first, count);
      const Tensor there = all.slice(0, first, left), rest = padded.slice(0, left, count - left);
      std::memcpy(padded.data, there.data, there.bytes());
      std::memset(rest.data, 0, rest.bytes());
      return padded;
    };
    for (std::int64_t e = 0; e < groups; ++e) {
      const Tensor dw = matrix(op.dw, e);
      const std::int64_t group_rows = offsets[e + 1] - offsets[e];
      if (group_rows == 0 && !op.accumulate) execute(op::Fill{.x = dw, .value = 0});
      bool begins = true, summed = false;
      for_each_piece(group_rows, least, false, [&](std::int64_t count, std::int64_t left) {
        const bool is_all = begins && count >= left;
        summed = narrow && !is_all;
        const std::int64_t first = offsets[e + 1] - left;
        multiply(piece_of(op.dy, padded_dy, first, count, left), piece_of(op.x, padded_x, first, count, left),
                 summed ? sum : dw, count, !begins || (op.accumulate && !summed));
        begins = false;
      });
      if (summed)
        expert_kernels(isa_).round_sum(dw.data, static_cast<const float*>(sum.data), dw.elements(), op.accumulate);
    }
  });
  if (preparing() || !op.dbias) return;
  expert_kernels(isa_).group_bias[index_of(op.dy.dtype)][index_of(op.dbias.dtype)](
      op.dbias.data, op.dy.data, checked_offsets(op.name, op.offsets, rows), groups, op.dy.dim(1), op.accumulate);
}

}  // namespace assay::cpu
