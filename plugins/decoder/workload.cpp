#include "workload.hpp"

#include <assay/models/decoder_dump.hpp>
#include <assay/workload/peak.hpp>

namespace decoder {

using Marks = assay::train::Trainer::Marks;

Workload::Workload(const assay::Case& c)
    : host_(c.host()), settings_(c), asked_(c), trainer_(host_, settings_.trainer), starts_cold_(!c.prepares()) {
  trainer_.leave_multiprocessors(settings_.left_multiprocessors);
}

assay::Work Workload::work() const {
  const auto micro_batches = static_cast<std::uint64_t>(model().accumulation_steps);
  const auto n = static_cast<std::uint64_t>(trainer_.parameters().parameter_count());
  const std::uint64_t weight = assay::compute::size_of(model().precision.activation);
  const std::uint64_t gradient = assay::compute::size_of(model().precision.gradient);
  const std::uint64_t state = assay::compute::size_of(model().precision.state);
  const std::uint64_t master = assay::compute::size_of(model().precision.parameter);
  // Weights are read by forward, and read again by backward, which writes the gradients, and from the second
  // micro-batch on reads them, too; AdamW reads gradient, weight
  // and two moments, and writes all but the gradient. Activations can stay in cache and are left out: a lower bound.
  std::uint64_t bytes = micro_batches * n * weight;
  if (settings_.pass != Pass::forward) bytes += n * (micro_batches * weight + (2 * micro_batches - 1) * gradient);
  if (settings_.pass == Pass::train_step) bytes += n * (gradient + 2 * master + 4 * state);
  // Of Muon's matrices there is one moment. What its products read and write can stay in cache, too.
  if (const assay::train::Muon* const muon = trainer_.optimizer().muon(); muon && settings_.pass == Pass::train_step)
    bytes -= static_cast<std::uint64_t>(muon->elements()) * 2 * state;
  assay::Work work = assay::models::decoder_training_work(model());
  work.bytes = bytes;
  if (settings_.pass == Pass::forward) work.flops /= 3;
  return work;
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, model().precision);
}

void Workload::setup(const Launch& launch) {
  report_parameters(launch, trainer_);
  report_live_activations(launch, trainer_.model().plan());
  if (starts_cold_) return trainer_.setup_cold(launch);
  trainer_.setup(launch);
  if (model().fused) graph_ = trainer_.capture([&] { training_step(trainer_, launch); }, Marks::captured);
}

void Workload::run(const Launch& launch) {
  if (starts_cold_) return take_first_step(launch);
  if (!graph_) return training_step(trainer_, launch);
  graph_->launch();
  assay::mark_replayed(host_);
}

void Workload::take_first_step(const Launch& launch) {
  starts_cold_ = false;
  cold_training_step(trainer_, launch);
  if (model().fused) graph_ = trainer_.capture_as_is([&] { training_step(trainer_, launch); }, Marks::captured);
}

assay::Account Workload::account(const Launch&) { return trainer_.account(); }

void Workload::restart(const Launch&) { trainer_.start(); }

void Workload::finish(const Launch& launch) {
  if (model().backward) launch.report(loss_metric, trainer_.last_loss());
  report_loss_scaling(launch, trainer_);
  if (const std::int64_t tokens = model().context_length; !model().documents.empty())
    launch.report(pair_share_metric, static_cast<double>(assay::models::document_pairs(model().documents, 0)) /
                                         static_cast<double>(assay::compute::visible_pairs(tokens, tokens, true, 0)));
  if (!settings_.dump_file.empty()) assay::models::dump_step(trainer_, settings_.dump_file);
}

}  // namespace decoder
