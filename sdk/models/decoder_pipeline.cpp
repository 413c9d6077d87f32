#include "assay/models/decoder_pipeline.hpp"

#include <algorithm>
#include <assay/train/step_recording.hpp>
#include <string>
#include <utility>

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::DType;
using compute::Tensor;
using train::PipelineAction;
using ActionKind = PipelineAction::Kind;

void validate_stages(const DecoderConfig& c) {
  const auto refuse = [&](const std::string& text) {
    throw Error(ASSAY_UNSUPPORTED, "a decoder in stages over " + std::to_string(c.stages.ranks) + " ranks: " + text);
  };
  if (c.stages.rank < 0 || c.stages.rank >= c.stages.ranks) refuse("there is no rank " + std::to_string(c.stages.rank));
  const std::int64_t stages = c.stages.ranks * c.stages.virtual_stages;
  if (c.layers < stages)
    refuse(std::to_string(c.layers) + (c.layers == 1 ? " layer is" : " layers are") + " fewer than the " +
           std::to_string(stages) + " stages, each of which has one at least; expected layers of at least " +
           std::to_string(stages) + (c.stages.virtual_stages > 1 ? ", fewer virtual_stages" : "") + ", or fewer ranks");
  if (c.tied_embeddings)
    refuse(
        "the embedding is on the first rank and the head on the last one, so that they cannot be one weight; expected "
        "tied_embeddings = false, which a size of a public model may set to true; fsdp serves it");
  if (c.is_split() || c.shares_context() || c.experts.any())
    refuse("expected a dense model whose products and sequences are whole on each rank");
  if (!c.fused || !c.backward || c.keep_logits || c.side_lane || c.precision.eight_bit_products ||
      c.precision.loss_scaling)
    refuse(
        "expected a training step of fused operations, without a side lane, kept logits, products of 8 bits or a loss "
        "scale");
  train::require_order(pipeline_shape(c));
}

train::PipelineShape pipeline_shape(const DecoderConfig& c) {
  return {.ranks = c.stages.ranks,
          .virtual_stages = c.stages.virtual_stages,
          .micro_batches = c.accumulation_steps,
          .receives = c.stages.receives};
}

DecoderConfig config_of_chunk(const DecoderConfig& c, std::int64_t chunk) {
  const std::vector<std::int64_t> layers = layers_of_stages(c);
  const std::int64_t stage = chunk * c.stages.ranks + c.stages.rank;
  DecoderConfig config = c;
  config.stages = {};
  config.layers = layers[static_cast<std::size_t>(stage)];
  config.stage = {.has_embedding = stage == 0, .has_head = stage + 1 == static_cast<std::int64_t>(layers.size())};
  for (std::int64_t before = 0; before < stage; ++before)
    config.stage.first_layer += layers[static_cast<std::size_t>(before)];
  return config;
}

// In the order in which backward comes to them, as of a whole model.
std::vector<DecoderParameters> add_chunk_parameters(train::ParameterSet& set, const DecoderConfig& c) {
  std::vector<DecoderParameters> chunks(static_cast<std::size_t>(c.stages.virtual_stages));
  for (std::int64_t chunk = c.stages.virtual_stages - 1; chunk >= 0; --chunk)
    chunks[static_cast<std::size_t>(chunk)] = add_decoder_parameters(set, config_of_chunk(c, chunk));
  return chunks;
}

std::vector<std::int64_t> ranks_of_parameters(const DecoderConfig& c, const train::ParameterSet& whole) {
  std::vector<std::int64_t> ranks(whole.all().size(), -1);
  for (std::int64_t rank = 0; rank < c.stages.ranks; ++rank) {
    DecoderConfig of_rank = c;
    of_rank.stages.rank = rank;
    train::ParameterSet own(c.precision);
    add_chunk_parameters(own, of_rank);
    for (const DecoderPart& part : decoder_parts(of_rank, own, whole)) ranks[part.whole] = rank;
  }
  return ranks;
}

DecoderPipeline::DecoderPipeline(const DecoderConfig& config, const train::ParameterSet& set,
                                 const std::vector<DecoderParameters>& chunks)
    : config_(config), schedule_(pipeline_shape(config), config.stages.rank) {
  using Use = train::BufferPlan::Use;
  config_.validate();
  const auto tensors = [&](const std::string& name, std::int64_t count) {
    std::vector<Id> ids;
    for (std::int64_t i = 0; i < count; ++i)
      ids.push_back(plan_.add(name + "." + std::to_string(i), config_.precision.activation,
                              {config_.rows(), config_.d_model}, Use::outlives_steps));
    return ids;
  };
  std::size_t shared_bytes = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    chunks_.push_back(
        std::make_unique<DecoderModel>(config_of_chunk(config_, static_cast<std::int64_t>(chunk)), set, chunks[chunk]));
    const auto elements = static_cast<std::int64_t>(chunks_.back()->activation_bytes() / sizeof(float));
    shared_bytes = std::max(shared_bytes, chunks_.back()->plan().borrowed_bytes());
    activations_.emplace_back();
    for (std::int64_t place = 0; place < schedule_.activation_places()[chunk]; ++place)
      activations_.back().push_back(
          plan_.add("chunk." + std::to_string(chunk) + ".activations." + std::to_string(place), DType::f32, {elements},
                    Use::outlives_steps));
  }
  shared_ =
      plan_.add("shared", DType::f32, {static_cast<std::int64_t>(shared_bytes / sizeof(float))}, Use::outlives_steps);
  // The losses of all micro-batches are added up where the last one's is made.
  if (has_head() && activations_.back().size() != 1)
    throw Error(ASSAY_INTERNAL, "the last stage of a pipeline has several micro-batches at a time; expected one");
  received_ = tensors("received", schedule_.receive_places());
  const bool sends = std::any_of(schedule_.actions().begin(), schedule_.actions().end(),
                                 [](const PipelineAction& a) { return a.kind == ActionKind::send; });
  sent_ = tensors("sent", sends ? 2 : 0);  // one is filled while the other one travels
  loss_ = plan_.add("loss", DType::f32, {1}, Use::result);
  train::plan_step(plan_, nullptr, [&](Backend& recorder) { recorder.run(op::Fill{.x = plan_[loss_], .value = 0.0}); });
}

DecoderModel& DecoderPipeline::bound(std::int64_t chunk, std::int64_t place) const {
  const auto c = static_cast<std::size_t>(chunk);
  chunks_[c]->bind(plan_[shared_].data, plan_[activations_[c][static_cast<std::size_t>(place)]].data);
  return *chunks_[c];
}

void DecoderPipeline::initialize(Backend& b) const {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk)
    for (std::size_t place = 0; place < activations_[chunk].size(); ++place)
      bound(static_cast<std::int64_t>(chunk), static_cast<std::int64_t>(place)).initialize(b);
}

std::uint64_t DecoderPipeline::sent_bytes() const {
  std::uint64_t bytes = 0;
  for (const PipelineAction& a : schedule_.actions())
    if (a.kind == ActionKind::send) bytes += plan_[sent_[0]].bytes();
  return bytes;
}

void DecoderPipeline::work(Backend& b, const PipelineAction& a, const Tensor& ids, const Tensor& labels,
                           std::int64_t valid_rows, train::StageExchange* ranks, const train::StepMarks& marks,
                           train::GradientListener* listener, const InFlight& messages) const {
  const Tensor sent = a.sends ? plan_[sent_[messages.next_send]] : Tensor();
  const Tensor received = a.read_place >= 0 ? plan_[received_[static_cast<std::size_t>(a.read_place)]] : Tensor();
  if (ranks && (sent || received)) {
    const auto phase = marks.phase(train::communication_wait_phase);
    if (sent) ranks->wait(messages.sent[messages.next_send]);  // what was sent from there before
    if (received) ranks->wait(messages.received[static_cast<std::size_t>(a.read_place)]);
  }
  const DecoderModel& chunk = bound(a.chunk, a.place);
  const std::int64_t rows = config_.rows();
  const Tensor own_ids = ids.slice(0, a.micro_batch * rows, rows),
               own_labels = labels.slice(0, a.micro_batch * rows, rows);
  if (a.kind == ActionKind::forward) {
    const auto phase = marks.phase(train::forward_phase);
    if (received) b.run(op::Copy{.to = chunk.stage_input(), .from = received});
    chunk.forward(b, own_ids, &own_labels, valid_rows, a.micro_batch);
    if (sent) b.run(op::Copy{.to = sent, .from = chunk.stage_output()});
    if (chunk.config().stage.has_head && a.micro_batch + 1 == config_.accumulation_steps)
      b.run(op::Copy{.to = plan_[loss_], .from = chunk.loss()});
  } else {
    const auto phase = marks.phase(train::backward_phase);
    if (received) b.run(op::Copy{.to = chunk.stage_gradient(), .from = received});
    // Of several chunks none knows how far the others' gradients are.
    const bool is_last = chunks_.size() == 1 && a.micro_batch + 1 == config_.accumulation_steps;
    chunk.backward(b, own_ids, own_labels, valid_rows, is_last ? listener : nullptr, a.micro_batch);
    if (sent) b.run(op::Copy{.to = sent, .from = chunk.stage_gradient()});
  }
}

void DecoderPipeline::enqueue(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                              train::StageExchange* ranks, const train::StepMarks& marks,
                              train::GradientListener* listener) const {
  InFlight messages{std::vector<train::StageExchange::Ticket>(received_.size(), 0),
                    std::vector<train::StageExchange::Ticket>(sent_.size(), 0)};
  if (!has_head()) b.run(op::Fill{.x = plan_[loss_], .value = 0.0});
  for (const PipelineAction& a : schedule_.actions()) {
    switch (a.kind) {
      case ActionKind::forward:
      case ActionKind::backward: work(b, a, ids, labels, valid_rows, ranks, marks, listener, messages); break;
      case ActionKind::send:
        if (ranks) messages.sent[messages.next_send] = ranks->send(plan_[sent_[messages.next_send]], a.peer);
        messages.next_send = (messages.next_send + 1) % sent_.size();
        break;
      case ActionKind::receive: {
        const auto place = static_cast<std::size_t>(a.place);
        if (ranks) messages.received[place] = ranks->receive(plan_[received_[place]], a.peer);
        break;
      }
    }
  }
  if (!ranks) return;
  // Memory of what still travels is a later step's, too.
  const auto phase = marks.phase(train::communication_wait_phase);
  for (const train::StageExchange::Ticket ticket : messages.sent) ranks->wait(ticket);
}

}  // namespace assay::models
