#include "workload.hpp"

#include <assay/train/backend_access.hpp>

#include "matrix_rate.hpp"

namespace attention {

using assay::compute::Mode;
using assay::compute::ProductMath;

namespace {

enum Stream : std::uint64_t { q_stream, k_stream, v_stream, dout_stream };  // for the random numbers

std::unique_ptr<Algorithm> algorithm_of(const Settings& s, const Operands& operands) {
  const bool differentiable = s.pass != Pass::forward;
  if (s.implementation == Implementation::flash) return make_flash(s.problem, operands, differentiable);
  return s.execution == Execution::eager ? make_eager(s.problem, operands, differentiable)
                                         : make_fused(s.problem, operands, differentiable);
}

}  // namespace

Workload::Workload(const assay::Case& c)
    : host_(c.host()), settings_(c), operands_(settings_.problem), algorithm_(algorithm_of(settings_, operands_)) {}

assay::Work Workload::work() const {
  const Problem& p = settings_.problem;
  assay::Work work{.items = static_cast<std::uint64_t>(p.batch * p.seq)};
  if (has_forward()) work.flops += forward_flops(p), work.bytes += forward_bytes(p);
  if (has_backward()) work.flops += backward_flops(p), work.bytes += backward_bytes(p);
  return work;
}

void Workload::setup(const assay::Launch& launch) {
  open(launch);
  make_inputs();
  first_forward();
  if (has_backward()) first_backward();
  hold_for_steps();
  if (settings_.execution == Execution::graph) capture(launch);
}

void Workload::open(const assay::Launch& launch) {
  matrix_tflop_per_s_ = measure_matrix_rate(host_, launch, settings_.precision);
  launch.metric(matrix_rate_metric, matrix_tflop_per_s_);
  backend_ = assay::train::open_backend(host_, launch);
  if (settings_.precision.product_math != ProductMath::exact)
    backend_->set_product_math(settings_.precision.product_math);
}

void Workload::prepare(const std::function<void()>& enqueue) {
  backend_->set_mode(Mode::prepare);
  enqueue();
  backend_->set_mode(Mode::execute);
  const std::size_t bytes = backend_->workspace_bytes();
  if (bytes > 0) workspace_ = assay::DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, bytes, "workspace");
  backend_->set_workspace(workspace_.data(), bytes);
}

void Workload::make_inputs() {
  take(host_, {&operands_.q, &operands_.k, &operands_.v});
  take(host_, algorithm_->inputs());
  backend_->random_normal(operands_.q, settings_.seed, q_stream, 0, 1);
  backend_->random_normal(operands_.k, settings_.seed, k_stream, 0, 1);
  backend_->random_normal(operands_.v, settings_.seed, v_stream, 0, 1);
  algorithm_->initialize(*backend_);
  assay::memory_moment(host_, "after_inputs");
}

void Workload::first_forward() {
  take(host_, algorithm_->forward_only());
  take(host_, algorithm_->kept());
  operands_.out.take(host_);
  prepare([&] { algorithm_->forward(*backend_); });
  algorithm_->forward(*backend_);
  backend_->synchronize();
  workspace_.reset();
  release(algorithm_->forward_only());
  assay::memory_moment(host_, "after_forward");
}

void Workload::first_backward() {
  operands_.dout.take(host_);
  backend_->random_normal(operands_.dout, settings_.seed, dout_stream, 0, 1);
  assay::memory_moment(host_, "before_backward");
  take(host_, {&operands_.dq, &operands_.dk, &operands_.dv});
  take(host_, algorithm_->backward_only());
  prepare([&] { algorithm_->backward(*backend_); });
  algorithm_->backward(*backend_);
  backend_->synchronize();
  workspace_.reset();
  release(algorithm_->backward_only());
  // A backward that is to be repeated keeps what the forward left for it.
  if (settings_.pass == Pass::both) release(algorithm_->kept());
  assay::memory_moment(host_, "after_backward");
}

// All that a step needs at one time or another, so that it allocates nothing.
void Workload::hold_for_steps() {
  if (has_forward()) take(host_, algorithm_->forward_only());
  take(host_, algorithm_->kept());
  if (has_backward()) take(host_, algorithm_->backward_only());
  prepare([&] {
    if (has_forward()) algorithm_->forward(*backend_);
    if (has_backward()) algorithm_->backward(*backend_);
  });
}

void Workload::capture(const assay::Launch& launch) {
  if (std::string_view(backend_->kind()) == "cpu") return;
  const assay::CaptureMarks marks(host_);
  graph_ = backend_->capture([&] { enqueue_step(launch); });
}

void Workload::run(const assay::Launch& launch) {
  repeat_step(launch);
  if (graph_) assay::mark_replayed(host_);
}

void Workload::repeat_step(const assay::Launch& launch) { graph_ ? graph_->launch() : enqueue_step(launch); }

void Workload::enqueue_step(const assay::Launch& launch) {
  if (has_forward()) {
    const auto phase = launch.phase(forward_phase);
    algorithm_->forward(*backend_);
  }
  if (has_backward()) {
    const auto phase = launch.phase(backward_phase);
    algorithm_->backward(*backend_);
  }
}

void Workload::finish(const assay::Launch& launch) {
  const double tflop_per_s =
      1e-9 * static_cast<double>(work().flops) / median_ms(*backend_, [&] { repeat_step(launch); });
  launch.metric(share_metric, tflop_per_s / matrix_tflop_per_s_);
}

}  // namespace attention
