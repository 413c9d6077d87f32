// Loss, reductions and optimizers, and scratch. The constants of a step come from device memory.
#include "cuda_backend.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/muon.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/ordered_sum.hpp"
#include "kernels/reduction.hpp"
#include "kernels/step_account.hpp"

namespace assay::cuda {
namespace {

// ---- cross-entropy -------------------------------------------------------------------------------------------------
CrossEntropyArgs cross_entropy_args(const char* operation, const Tensor& logits, const Tensor& labels, float soft_cap,
                                    const compute::ClassColumns& classes = {}) {
  require_countable(operation, logits);
  CrossEntropyArgs args{};
  args.soft_cap = soft_cap;
  args.labels = data_of<std::int64_t>(labels);
  args.type = logits.dtype;
  args.logits = logits.data;
  args.columns = logits.dim(-1);
  args.rows = rows_of(logits);
  args.first_class = classes.first;
  args.classes_each = classes.each;
  args.classes = classes.all > 0 ? classes.all : args.columns * classes.each;
  return args;
}

// ---- reductions ----------------------------------------------------------------------------------------------------
ReductionArgs reduction_args(const Tensor& x, const Tensor& out, float factor, void* partials) {
  ReductionArgs args{};
  args.type = x.dtype;
  args.count = x.elements();
  args.x = x.data;
  args.factor = factor;
  args.out = data_of<float>(out);
  args.partials = partials;
  return args;
}

// ---- optimizers ----------------------------------------------------------------------------------------------------
LossScalePointers loss_scale_pointers(const Tensor& scale, const Tensor& nonfinite) {
  LossScalePointers pointers{};
  pointers.scale = data_of<float>(scale);
  pointers.nonfinite = data_of<float>(nonfinite);
  return pointers;
}

MuonShape muon_shape(const Tensor& matrices, int multiprocessors) {
  return {matrices.dim(0), matrices.dim(1), multiprocessors};
}

template <class Op>
OptimizerArgs optimizer_args(const Op& op, int multiprocessors, bool on_side_lane) {
  OptimizerArgs args{};
  args.parameter_type = op.parameter.dtype;
  args.gradient_type = op.gradient.dtype;
  args.state_type = op.parameter.dtype;
  args.copy_type = op.compute_copy.dtype;
  args.count = op.parameter.elements();
  args.parameter = op.parameter.data;
  args.gradient = op.gradient.data;
  args.compute_copy = op.compute_copy.data;
  args.loss_scale = loss_scale_pointers(op.loss_scale.scale, op.loss_scale.nonfinite);
  args.step = data_of<std::int64_t>(op.step);
  args.lr = data_of<float>(op.lr);
  args.multiprocessors = multiprocessors;
  args.short_blocks = on_side_lane;
  return args;
}

}  // namespace

void CudaBackend::execute(const op::CrossEntropyForward& op) {
  CrossEntropyArgs args = cross_entropy_args(op.name, op.logits, op.labels, op.soft_cap, op.classes);
  args.losses = data_of<float>(op.losses);
  args.lse = data_of<float>(op.lse);
  if (!preparing()) cuda::cross_entropy_forward(args, stream());
}

void CudaBackend::execute(const op::CrossEntropyBackward& op) {
  CrossEntropyArgs args = cross_entropy_args(op.name, op.logits, op.labels, op.soft_cap, op.classes);
  args.lse = data_of<float>(op.lse);
  args.dlogits = op.dlogits.data;
  args.scale = op.scale;
  args.loss_scale = data_of<float>(op.loss_scale);
  if (!preparing()) cuda::cross_entropy_backward(args, stream());
}

void CudaBackend::execute(const op::CrossEntropyInPlace& op) {
  CrossEntropyArgs args = cross_entropy_args(op.name, op.logits, op.labels, op.soft_cap);
  args.losses = data_of<float>(op.losses);
  args.dlogits = op.logits.data;
  args.scale = op.scale;
  args.loss_scale = data_of<float>(op.loss_scale);
  if (!preparing()) cuda::cross_entropy_in_place(args, stream());
}

void CudaBackend::execute(const op::Sum& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, op.factor, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::sum(args, stream());
}

void CudaBackend::execute(const op::SumOfSquares& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::sum_of_squares(args, stream());
}

void CudaBackend::execute(const op::MaxAbs& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::max_abs(args, stream());
}

void CudaBackend::execute(const op::CountNonfinite& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::count_nonfinite(args, stream());
}

void CudaBackend::execute(const op::OrderedSum& op) {
  OrderedSumArgs args{op.x.dtype, op.x.elements(), op.x.data, nullptr, data_of<float>(op.out), nullptr, op.options};
  args.partials = static_cast<float*>(scratch(ordered_sum_partials(op.x.elements(), op.options) * sizeof(float)));
  if (!preparing()) cuda::ordered_sum(args, stream());
}

void CudaBackend::execute(const op::OrderedDot& op) {
  OrderedSumArgs args{op.x.dtype, op.x.elements(), op.x.data, op.y.data, data_of<float>(op.out), nullptr, op.options};
  args.partials = static_cast<float*>(scratch(ordered_sum_partials(op.x.elements(), op.options) * sizeof(float)));
  if (!preparing()) cuda::ordered_sum(args, stream());
}

void CudaBackend::execute(const op::Advance& op) {
  std::int64_t* const number = data_of<std::int64_t>(op.step);
  const LossScalePointers pointers = loss_scale_pointers(op.loss_scale.scale, op.loss_scale.nonfinite);
  if (!preparing()) cuda::advance(number, pointers, stream());
}

void CudaBackend::execute(const op::AdamW& op) {
  OptimizerArgs args = optimizer_args(op, multiprocessors_, lane_ != 0);
  args.first = op.m.data;
  args.second = op.v.data;
  args.state_type = op.m.dtype;
  if (!preparing()) cuda::adamw(args, op.options, stream());
}

void CudaBackend::execute(const op::Sgd& op) {
  OptimizerArgs args = optimizer_args(op, multiprocessors_, lane_ != 0);
  if (op.options.momentum != 0.0F) args.first = op.momentum.data;
  if (!preparing()) cuda::sgd(args, op.options, stream());
}

void CudaBackend::execute(const op::MuonMomentum& op) {
  const MuonMomentumArgs args{.shape = muon_shape(op.update, multiprocessors_),
                              .gradient = {op.gradient.dtype, op.gradient.data, op.gradient.step(0)},
                              .momentum = {op.momentum.dtype, op.momentum.data, op.momentum.step(0)},
                              .update = {op.update.dtype, op.update.data, op.update.step(0)},
                              .loss_scale = loss_scale_pointers(op.loss_scale.scale, op.loss_scale.nonfinite)};
  if (!preparing()) cuda::muon_momentum(args, op.options, stream());
}

void CudaBackend::execute(const op::NormalizeRows& op) {
  const std::size_t partials = normalize_partials(op.x.dim(0), op.x.dim(1));
  const NormalizeRowsArgs args{.shape = muon_shape(op.x, multiprocessors_),
                               .x = {op.x.dtype, op.x.data, op.x.step(0)},
                               .eps = op.eps,
                               .partials = static_cast<double*>(scratch(partials * sizeof(double)))};
  if (!preparing()) cuda::normalize_rows(args, stream());
}

void CudaBackend::execute(const op::MuonUpdate& op) {
  const MuonUpdateArgs args{.shape = muon_shape(op.update, multiprocessors_),
                            .parameter = {op.parameter.dtype, op.parameter.data, op.parameter.step(0)},
                            .update = {op.update.dtype, op.update.data, op.update.step(0)},
                            .compute_copy = {op.compute_copy.dtype, op.compute_copy.data, op.compute_copy.step(0)},
                            .lr = data_of<float>(op.lr),
                            .loss_scale = loss_scale_pointers(op.loss_scale.scale, op.loss_scale.nonfinite)};
  if (!preparing()) cuda::muon_update(args, op.options, stream());
}

void CudaBackend::execute(const op::UpdateLossScale& op) {
  const LossScalePointers pointers = loss_scale_pointers(op.scale, op.nonfinite);
  std::int64_t* const good = data_of<std::int64_t>(op.good_steps);
  std::int64_t* const skips = data_of<std::int64_t>(op.skipped_steps);
  if (!preparing()) cuda::update_loss_scale(pointers, good, skips, op.options, stream());
}

void CudaBackend::execute(const op::SpoilPlaces& op) {
  const SpoiledPlaces spoiled{op.x.dtype, op.x.data, data_of<std::int64_t>(op.places), op.x ? op.places.elements() : 0,
                              data_of<float>(op.loss)};
  if (!preparing()) cuda::spoil_places(spoiled, stream());
}

void CudaBackend::execute(const op::MarkStep& op) {
  StepMarks marks{};
  marks.count = data_of<std::int64_t>(op.count);
  marks.marks = data_of<float>(op.marks);
  marks.rows = op.marks.dim(0);
  marks.loss = data_of<float>(op.loss);
  marks.results = {op.results.dtype, op.results.data};
  marks.state = {op.state.dtype, op.state.data};
  marks.places = data_of<std::int64_t>(op.places);
  marks.place_count = op.places ? op.places.elements() : 0;
  if (!preparing()) cuda::mark_step(marks, stream());
}

}  // namespace assay::cuda
