// Products of groups of rows: on Hopper's matrix units where they serve the types and shapes, else by plain arithmetic.
#include <fmt/format.h>

#include "common/kernel_arguments.hpp"
#include "cuda_backend.hpp"
#include "expert_limits.hpp"
#include "kernels/grouped_products.hpp"

namespace assay::cuda {
namespace {

template <class Op>
void require_groups_served(const Op& op) {
  if (const std::string why = refusal_of_experts(op); !why.empty()) reject(op.name, why);
}

bool updates_by_matrix_units(const op::GroupedWeightGradient& op, const GroupedProduct& product, int major) {
  const auto aligned = [](const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0; };
  const WeightUpdate& u = op.update;
  return updates_in_bf16(op) && serves_by_matrix_units(product, major) && aligned(u.parameter) && aligned(u.m) &&
         aligned(u.v);
}

}  // namespace

void CudaBackend::run_grouped(const char* operation, const GroupedProduct& product) {
  const bool by_matrix_units = serves_by_matrix_units(product, compute_capability_);
  if (preparing()) {
    constexpr const char* forms[] = {"rows_by_transposed", "rows", "weights"};
    grouped_products_.insert(
        {fmt::format("{} {} {} {} groups, {} rows, {} x {}", operation, forms[static_cast<int>(product.form)],
                     name_of(product.type), product.groups, product.rows, product.columns, product.inner),
         by_matrix_units ? product.update.parameter ? "wgmma 128x256x64, adamw" : "wgmma 128x256x64"
                         : "plain 64x64x16"});
    return;
  }
  if (by_matrix_units)
    launch_grouped_by_matrix_units(stream(), product, multiprocessors_ - left_multiprocessors_);
  else
    launch_grouped_plain(stream(), product);
}

void CudaBackend::execute(const op::GroupedMatmul& op) {
  require_groups_served(op);
  run_grouped(op.name, {.form = op.transpose_b ? GroupedForm::rows_by_transposed : GroupedForm::rows,
                        .type = op.a.dtype,
                        .result = op.c.dtype,
                        .a = op.a.data,
                        .b = op.b.data,
                        .c = op.c.data,
                        .bias = op.bias.data,
                        .offsets = data_of<std::int32_t>(op.offsets),
                        .groups = op.b.dim(0),
                        .rows = op.a.dim(0),
                        .columns = op.c.dim(1),
                        .inner = op.a.dim(1)});
}

void CudaBackend::execute(const op::GroupedWeightGradient& op) {
  require_groups_served(op);
  const auto* const offsets = data_of<std::int32_t>(op.offsets);
  GroupedProduct product{.form = GroupedForm::weights,
                         .type = op.dy.dtype,
                         .result = op.dw.dtype,
                         .a = op.dy.data,
                         .b = op.x.data,
                         .c = op.dw.data,
                         .bias = nullptr,
                         .offsets = offsets,
                         .groups = op.dw.dim(0),
                         .rows = op.dy.dim(0),
                         .columns = op.dw.dim(2),
                         .inner = op.dw.dim(1),
                         .accumulate = op.accumulate};
  const bool updates_at_once = op.update.any() && updates_by_matrix_units(op, product, compute_capability_);
  if (updates_at_once)
    product.update = {.parameter = op.update.parameter.data,
                      .first = op.update.m.data,
                      .second = op.update.v.data,
                      .step = data_of<std::int64_t>(op.update.step),
                      .lr = data_of<float>(op.update.lr),
                      .options = op.update.options,
                      .gradient_place = data_of<std::int64_t>(op.update.gradient_place)};
  op::GroupedWeightGradient with_memory = op;  // where the gradient is left out and another kernel updates
  if (!op.dw && !updates_at_once) {
    product.c = with_memory.dw.data = scratch(op.dw.bytes());
    if (preparing()) with_memory.dw.data = op.update.parameter.data;  // nothing is written
  }
  run_grouped(op.name, product);
  if (op.dbias && !preparing())
    launch_grouped_bias_gradient(stream(), op.dy.dtype, op.dbias.dtype, op.dy.data, offsets, op.dbias.data,
                                 op.dw.dim(0), op.dw.dim(1), op.accumulate);
  if (!op.update.any() || updates_at_once) return;
  if (!op.dw && !preparing())
    launch_copy_to_place(stream(), with_memory.dw.data, data_of<std::int64_t>(op.update.gradient_place), op.dw.bytes());
  execute(op::adamw_of(with_memory));
}

}  // namespace assay::cuda
