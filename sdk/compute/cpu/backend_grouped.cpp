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

std::size_t room_of(const Tensor& t) { return (t.bytes() + 63) / 64 * 64; }

// Scratch for a piece of rows of `t`, of so many rows.
Tensor piece_like(const Tensor& t, std::int64_t rows) { return {nullptr, t.dtype, {rows, t.dim(1)}}; }

// The `left` rows from `first` on as a piece with `rows` rows, the rest 0: in the memory of `piece`.
Tensor padded(const Tensor& t, std::int64_t first, std::int64_t left, const Tensor& piece, std::int64_t rows) {
  const Tensor there = t.slice(0, first, left), rest = piece.slice(0, left, rows - left);
  std::memcpy(piece.data, there.data, there.bytes());
  std::memset(rest.data, 0, rest.bytes());
  return piece.slice(0, 0, rows);
}

}  // namespace

// The last piece of a group goes back to rows that are done already and writes them once more, or, where the
// group has too few, is a copy with rows of 0.
void CpuBackend::execute(const op::GroupedMatmul& op) {
  const std::int64_t groups = op.b.dim(0), rows = op.a.dim(0), most = piece_that_covers(rows);
  if (rows == 0) return;
  Tensor few = piece_like(op.a, most), results = piece_like(op.c, most);
  with_scratch(room_of(few) + room_of(results), [&](char* memory) {
    const auto multiply = [&](std::int64_t group, const Tensor& a, const Tensor& c) {
      execute(op::Matmul{.a = a,
                         .b = matrix(op.b, group),
                         .c = c,
                         .transpose_b = op.transpose_b,
                         .bias = op.bias ? op.bias.slice(0, group, 1).flat() : Tensor()});
    };
    if (preparing()) {
      for (std::int64_t count = least_piece_rows; count <= most; count *= 2)
        multiply(0, few.slice(0, 0, count), results.slice(0, 0, count));
      return;
    }
    few.data = memory, results.data = memory + room_of(few);
    const std::int32_t* const offsets = checked_offsets(op.name, op.offsets, rows);
    for (std::int64_t e = 0; e < groups; ++e) {
      const std::int64_t end = offsets[e + 1], all = end - offsets[e];
      for_each_piece(all, [&](std::int64_t count, std::int64_t left) {
        if (count <= all) {
          const std::int64_t first = count > left ? end - count : end - left;
          return multiply(e, op.a.slice(0, first, count), op.c.slice(0, first, count));
        }
        multiply(e, padded(op.a, end - left, left, few, count), results.slice(0, 0, count));
        const Tensor to = op.c.slice(0, end - left, left);
        std::memcpy(to.data, results.data, to.bytes());
      });
    }
  });
}

// A bf16 gradient of several pieces is summed in fp32.
void CpuBackend::execute(const op::GroupedWeightGradient& op) {
  if (!op.dw)
    return with_scratch(room_of(op.dw), [&](char* memory) {
      op::GroupedWeightGradient with_memory = op;
      with_memory.update.gradient_place = {};
      with_memory.dw.data = preparing() ? op.update.parameter.data : memory;  // nothing is written while preparing
      if (const std::int64_t place = preparing() ? 0 : *data_of<std::int64_t>(op.update.gradient_place))
        with_memory.dw.data = reinterpret_cast<void*>(place);
      execute(with_memory);
    });
  const std::int64_t groups = op.dw.dim(0), rows = op.dy.dim(0), most = piece_that_covers(rows);
  const bool narrow = op.dw.dtype == DType::bf16;
  Tensor few_dy = piece_like(op.dy, most), few_x = piece_like(op.x, most);
  Tensor sum(nullptr, DType::f32, {op.dw.dim(1), op.dw.dim(2)});
  with_scratch(room_of(few_dy) + room_of(few_x) + (narrow ? room_of(sum) : 0), [&](char* memory) {
    const auto multiply = [&](const Tensor& dy, const Tensor& x, const Tensor& to, bool add) {
      execute(op::Matmul{.a = dy, .b = x, .c = to, .transpose_a = true, .accumulate = add});
    };
    if (preparing()) {
      for (std::int64_t count = least_piece_rows; count <= most; count *= 2) {
        const Tensor dy = few_dy.slice(0, 0, count), x = few_x.slice(0, 0, count);
        multiply(dy, x, matrix(op.dw, 0), op.accumulate);
        if (!narrow) multiply(dy, x, matrix(op.dw, 0), true);
        for (const bool add : {false, true})
          if (narrow) multiply(dy, x, sum, add);
      }
      return;
    }
    few_dy.data = memory, few_x.data = memory + room_of(few_dy);
    sum.data = memory + room_of(few_dy) + room_of(few_x);
    const std::int32_t* const offsets = checked_offsets(op.name, op.offsets, rows);
    for (std::int64_t e = 0; e < groups; ++e) {
      const Tensor dw = matrix(op.dw, e);
      const std::int64_t end = offsets[e + 1], all = end - offsets[e];
      if (all == 0 && !op.accumulate) execute(op::Fill{.x = dw, .value = 0});
      bool begins = true, summed = false;
      for_each_piece(all, [&](std::int64_t count, std::int64_t left) {
        summed = narrow && !(begins && count >= left);
        const std::int64_t first = end - left;
        const bool fits = count <= left;
        multiply(fits ? op.dy.slice(0, first, count) : padded(op.dy, first, left, few_dy, count),
                 fits ? op.x.slice(0, first, count) : padded(op.x, first, left, few_x, count), summed ? sum : dw,
                 !begins || (op.accumulate && !summed));
        begins = false;
      });
      if (summed) expert_kernels(isa_).round_sum(dw.data, data_of<float>(sum), dw.elements(), op.accumulate);
    }
  });
  if (!preparing() && op.dbias)
    expert_kernels(isa_).group_bias[index_of(op.dy.dtype)][index_of(op.dbias.dtype)](
        op.dbias.data, op.dy.data, checked_offsets(op.name, op.offsets, rows), groups, op.dy.dim(1), op.accumulate);
  if (op.update.any()) execute(op::adamw_of(op));
}

}  // namespace assay::cpu
