#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/workload/open_backend.hpp>

#include "matrix_rate.hpp"

namespace attention {

namespace op = assay::compute::op;

using assay::compute::ProductMath;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      operands_(settings_.problem),
      layer_(make_layer(settings_, operands_)),
      starts_cold_(!c.prepares()) {}

assay::Work Workload::work() const {
  const Problem& p = settings_.problem;
  assay::Work work{.items = static_cast<std::uint64_t>(p.batch * p.seq),
                   .arithmetic = assay::workload::arithmetic_of(settings_.precision)};
  if (has_forward()) work.flops += forward_flops(p), work.bytes += forward_bytes(p);
  if (has_backward()) work.flops += backward_flops(p), work.bytes += backward_bytes(p);
  return work;
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.precision);
}

void Workload::setup(const Launch& launch) {
  if (!starts_cold_) measure_matrices(launch);  // which prepares the device as well
  open(launch);
  make_model();
  make_inputs();
  if (starts_cold_) return setup_cold();
  first_forward();
  if (has_backward()) first_backward();
  hold_for_steps();
  if (settings_.execution == Execution::graph) capture(launch);
}

void Workload::measure_matrices(const Launch& launch) {
  matrix_tflop_per_s_ = measure_matrix_rate(host_, launch, settings_.precision);
  launch.report(matrix_rate_metric, matrix_tflop_per_s_);
}

void Workload::open(const Launch& launch) {
  backend_ = std::make_unique<assay::compute::CountedBackend>(assay::workload::open_backend(host_, launch));
  if (settings_.precision.product_math != ProductMath::exact)
    backend_->set_product_math(settings_.precision.product_math);
}

void Workload::prepare(const std::function<void()>& enqueue) { workspace_.prepare(host_, *backend_, enqueue); }

void Workload::make_model() {
  take(host_, layer_->model());
  layer_->initialize_model(*backend_, settings_.seed);
  assay::memory_moment(host_, "after_model");
}

void Workload::make_inputs() {
  take(host_, layer_->inputs());
  layer_->initialize_inputs(*backend_, settings_.seed);
  assay::memory_moment(host_, "after_inputs");
}

void Workload::run_forward_once() {
  take(host_, layer_->forward_only());
  take(host_, layer_->kept());
  take(host_, layer_->results());
  prepare([&] { layer_->forward(*backend_); });
  layer_->forward(*backend_);
  backend_->synchronize();
}

void Workload::first_forward() {
  run_forward_once();
  workspace_.reset(*backend_);
  release(layer_->forward_only());
  assay::memory_moment(host_, "after_forward");
}

void Workload::first_backward() {
  layer_->result_gradient().take(host_);
  backend_->run(op::RandomNormal{.x = layer_->result_gradient().in_memory_order(),
                                 .seed = settings_.seed,
                                 .stream = result_gradient_stream,
                                 .mean = 0,
                                 .std = 1});
  assay::memory_moment(host_, "before_backward");
  take(host_, layer_->gradients());
  take(host_, layer_->backward_only());
  prepare([&] { layer_->backward(*backend_); });
  layer_->backward(*backend_);
  backend_->synchronize();
  workspace_.reset(*backend_);
  release(layer_->backward_only());
  // A backward that is to be repeated keeps what the forward left for it.
  if (settings_.pass == Pass::both) release(layer_->kept());
  assay::memory_moment(host_, "after_backward");
}

// All that a step needs at one time or another, so that it allocates nothing.
void Workload::hold_for_steps() {
  if (has_forward()) take(host_, layer_->forward_only());
  take(host_, layer_->kept());
  if (has_backward()) take(host_, layer_->backward_only());
  prepare_account();
  prepare([&] {
    if (has_forward()) layer_->forward(*backend_);
    if (has_backward()) layer_->backward(*backend_);
  });
}

void Workload::capture(const Launch& launch) {
  if (std::string_view(backend_->kind()) == "cpu") return;
  const assay::CaptureMarks marks(host_);
  graph_ = backend_->capture([&] { enqueue_step(launch); });
}

void Workload::setup_cold() {
  if (has_backward()) {
    layer_->result_gradient().take(host_);
    backend_->run(op::RandomNormal{.x = layer_->result_gradient().in_memory_order(),
                                   .seed = settings_.seed,
                                   .stream = result_gradient_stream,
                                   .mean = 0,
                                   .std = 1});
  }
  if (!has_forward()) {  // the step's backward is of this one
    run_forward_once();
    release(layer_->forward_only());
  }
  backend_->synchronize();
  prepare_account();
}

void Workload::take_first_step(const Launch& launch) {
  if (has_forward()) {
    const auto phase = launch.phase(forward_phase);
    take(host_, layer_->forward_only());
    take(host_, layer_->kept());
    take(host_, layer_->results());
    prepare([&] { layer_->forward(*backend_); });
    layer_->forward(*backend_);
  }
  if (has_backward()) {
    const auto phase = launch.phase(backward_phase);
    take(host_, layer_->gradients());
    take(host_, layer_->backward_only());
    prepare([&] { layer_->backward(*backend_); });
    layer_->backward(*backend_);
  }
  if (settings_.execution == Execution::graph) capture(launch);
}

void Workload::run(const Launch& launch) {
  if (starts_cold_ && launch.iteration() == 0) return take_first_step(launch);
  repeat_step(launch);
  if (graph_) assay::mark_replayed(host_);
}

void Workload::repeat_step(const Launch& launch) { graph_ ? graph_->launch() : enqueue_step(launch); }

void Workload::enqueue_step(const Launch& launch) {
  if (has_forward()) {
    const auto phase = launch.phase(forward_phase);
    layer_->forward(*backend_);
  }
  if (has_backward()) {
    const auto phase = launch.phase(backward_phase);
    layer_->backward(*backend_);
  }
}

void Workload::finish(const Launch& launch) {
  if (starts_cold_) measure_matrices(launch);
  const double tflop_per_s =
      1e-9 * static_cast<double>(work().flops) / median_ms(*backend_, [&] { repeat_step(launch); });
  launch.report(share_metric, tflop_per_s / matrix_tflop_per_s_);
}

}  // namespace attention
