#include "assay/models/decoder_trainer.hpp"

#include <algorithm>
#include <assay/compute/checked_size.hpp>
#include <assay/models/published_weights.hpp>
#include <assay/train/safetensors.hpp>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace assay::models {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {

// Streams of the counter-based generator; parameters use their own ids as streams.
constexpr std::uint64_t input_stream = 1'000'001;
constexpr std::uint64_t label_stream = 1'000'002;

// The loss ignores negative labels; this counts the others.
std::int64_t counted(std::span<const std::int64_t> labels) {
  return std::count_if(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; });
}

}  // namespace

DecoderTrainer::DecoderTrainer(const Host& host, const DecoderTrainerConfig& config, train::BlockParameters* blocks,
                               train::PartExchange* exchange)
    : train::Trainer(host, {.precision = config.model.precision,
                            .optimizer = config.optimizer,
                            .backward = config.model.backward,
                            .train_step = config.train_step,
                            .update_beside_backward = config.update_beside_backward,
                            .update_in_products = config.update_in_products,
                            .seed = config.seed,
                            .weights_file = config.weights_file,
                            .tuning = config.tuning}),
      config_(config),
      blocks_(blocks),
      whole_(config.model.precision),
      ids_(add_parameters()) {
  if (config.model.is_pipelined()) {
    pipeline_.emplace(config.model, parameters(), chunk_ids_);
    use(*pipeline_);
  } else {
    model_.emplace(config.model, model_parameters(), ids_,
                   DecoderModel::Residence{blocks, blocks ? &parameters() : nullptr}, exchange);
    use(*model_);
  }
}

DecoderParameters DecoderTrainer::add_parameters() {
  if (config_.model.is_pipelined()) {
    if (!config_.weights_file.empty() || blocks_)
      throw Error(
          ASSAY_INVALID_ARGUMENT,
          "a model in stages over ranks starts from random weights, which stay where they are; expected neither "
          "a file of weights nor parameters that come and go");
    config_.model.validate();
    chunk_ids_ = add_chunk_parameters(parameters(), config_.model);
    parameters().pad_to(config_.arena_multiple);
    return {};
  }
  if (config_.model.is_split() && !config_.weights_file.empty())
    throw Error(ASSAY_INVALID_ARGUMENT, "a model that is split over ranks starts from random weights; '" +
                                            config_.weights_file + "' cannot be read");
  if (config_.model.experts.is_over_ranks() && !config_.weights_file.empty())
    throw Error(ASSAY_INVALID_ARGUMENT, "a model whose experts are shared over ranks starts from random weights; '" +
                                            config_.weights_file + "' cannot be read");
  if (!blocks_) {
    DecoderParameters ids = add_decoder_parameters(parameters(), config_.model);
    parameters().pad_to(config_.arena_multiple);
    if (config_.drops_expert_gradients) {
      std::vector<train::ParameterSet::Id> dropped;
      for (const DecoderLayerParameters& layer : ids.layers)
        if (config_.model.has_experts(&layer - ids.layers.data()))
          dropped.insert(dropped.end(), {layer.experts.w2, layer.experts.w13});
      parameters().drop_gradients(dropped);
    }
    return ids;
  }
  if (!config_.weights_file.empty())
    throw Error(ASSAY_INVALID_ARGUMENT, "a model whose parameters come and go by blocks starts from random weights; '" +
                                            config_.weights_file + "' cannot be read");
  if (config_.model.experts.any())
    throw Error(ASSAY_UNSUPPORTED,
                "a model whose parameters come and go by blocks has no experts; expected a model without experts");
  DecoderParameters ids = add_decoder_parameters(whole_, config_.model);
  blocks_->divide(whole_, decoder_blocks(ids), parameters());
  return ids;
}

void DecoderTrainer::draw_parameters(std::uint64_t seed) const {
  if (blocks_)
    blocks_->draw(backend(), seed);
  else if (config_.model.is_pipelined())
    parameters().initialize(backend(), seed, ids_in_whole_model());
  else if (config_.model.is_split())
    model_->draw_parts(backend(), seed);
  else
    Trainer::draw_parameters(seed);
  const ExpertsConfig& experts = config_.model.experts;
  if (experts.is_over_ranks())
    draw_experts(backend(), parameters(), expert_parameters(), experts, experts.rank, 1, seed);
  if (experts.drawn_parts == 1) return;
  ExpertsConfig of_a_part = experts;
  of_a_part.ranks = experts.drawn_parts;
  draw_experts(backend(), parameters(), expert_parameters(), of_a_part, 0, experts.drawn_parts, seed);
}

namespace {

// Of the model that ranks share by products or by stages, without memory.
train::ParameterSet unshared_parameters(DecoderConfig model) {
  model.split = {}, model.stages = {};
  train::ParameterSet set(model.precision);
  add_decoder_parameters(set, model);
  return set;
}

}  // namespace

std::vector<train::ParameterSet::Id> DecoderTrainer::ids_in_whole_model() const {
  std::vector<train::ParameterSet::Id> ids;
  for (const DecoderPart& part : decoder_parts(config_.model, parameters(), unshared_parameters(config_.model)))
    ids.push_back(part.whole);
  return ids;
}

std::int64_t DecoderTrainer::whole_parameter_count() const {
  if (!config_.model.is_split() && !config_.model.is_pipelined()) return model_parameters().parameter_count();
  return unshared_parameters(config_.model).parameter_count();
}

std::vector<ExpertParameters> DecoderTrainer::expert_parameters() const {
  std::vector<ExpertParameters> by_layer;
  for (std::int64_t l = 0; l < config_.model.layers; ++l)
    if (config_.model.has_experts(l)) by_layer.push_back(ids_.layers[static_cast<std::size_t>(l)].experts);
  return by_layer;
}

void DecoderTrainer::take_input_memory() {
  const std::int64_t rows = config_.model.step_rows();
  const std::int64_t all = config_.data_ranks * rows * config_.model.context.ranks;
  const std::int64_t chunks = config_.model.shares_context() ? rows : 0;  // beside the whole sequences
  const std::int64_t dims[] = {2, all + chunks};                          // tokens and labels
  data_memory_ = DeviceMemory(host(), ASSAY_MEMORY_DATA,
                              compute::checked_bytes("the batch of all ranks", DType::i64, dims), "tokens");
  const Tensor memory(data_memory_.data(), DType::i64, {2 * (all + chunks)});
  global_inputs_ = memory.slice(0, 0, all);
  global_labels_ = memory.slice(0, all, all);
  inputs_ = global_inputs_.slice(0, config_.data_rank * rows, rows);
  labels_ = global_labels_.slice(0, config_.data_rank * rows, rows);
  if (chunks > 0) inputs_ = memory.slice(0, 2 * all, rows), labels_ = memory.slice(0, 2 * all + rows, rows);
  if (!config_.model.experts.any() || config_.model.experts.routing == Routing::learned) return;
  const std::int64_t chosen[] = {rows, config_.model.experts.per_token};
  experts_memory_ = DeviceMemory(host(), ASSAY_MEMORY_DATA,
                                 compute::checked_bytes("the experts of each token", DType::i32, chosen), "experts");
  experts_ = Tensor(experts_memory_.data(), DType::i32, {rows, config_.model.experts.per_token});
  model_->give_experts(drawn_experts_for(config_.model));
}

std::vector<Tensor> DecoderTrainer::drawn_experts_for(const DecoderConfig& config) const {
  std::vector<Tensor> by_layer;
  if (experts_) by_layer.assign(static_cast<std::size_t>(config.layers), experts_.slice(0, 0, config.step_rows()));
  return by_layer;
}

void DecoderTrainer::load_weights(const train::SafetensorsReader& file) const {
  if (!has_published_names(file)) return train::Trainer::load_weights(file);
  if (config_.model.experts.any())
    throw Error(ASSAY_UNSUPPORTED, "'" + config_.weights_file +
                                       "' has the names of a published file, which are known of models without "
                                       "experts alone; expected the names of this model's parameters");
  train::load_parameters(backend(), parameters(), file, published_layout(config_.model));
}

void DecoderTrainer::load_inputs() {
  if (experts_) {
    const std::vector<std::int32_t> drawn =
        drawn_experts(config_.model.experts, config_.model.rows(), config_.model.accumulation_steps, config_.seed);
    backend().upload(experts_, drawn.data());
  }
  if (!config_.inputs_file.empty()) return read_inputs();
  backend().run(op::RandomIntegers{
      .x = global_inputs_, .seed = config_.seed, .stream = input_stream, .low = 0, .high = config_.model.vocab_size});
  backend().run(op::RandomIntegers{
      .x = global_labels_, .seed = config_.seed, .stream = label_stream, .low = 0, .high = config_.model.vocab_size});
  valid_rows_ = config_.model.step_rows();
  if (!config_.model.documents.empty()) ignore_labels_across_documents();
  global_valid_rows_ = config_.data_ranks * valid_rows_;  // each has as many
  if (config_.model.shares_context()) take_own_chunks();
  backend().download(&first_token_, inputs_.slice(0, 0, 1));
}

// Of labels that are drawn; a file has those that it wants.
void DecoderTrainer::ignore_labels_across_documents() {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(global_labels_.elements()));
  backend().synchronize();
  backend().download(labels.data(), global_labels_);
  models::ignore_labels_across_documents(labels, config_.model.documents);
  backend().upload(global_labels_, labels.data());
  const std::int64_t sequences = config_.model.step_rows() / config_.model.context_length;
  valid_rows_ -= sequences * (static_cast<std::int64_t>(config_.model.documents.size()) - 1);
}

// From the sequences of this rank's batch, among those of all ranks, which the backend has.
void DecoderTrainer::take_own_chunks() {
  const DecoderConfig& c = config_.model;
  const std::int64_t batch = c.step_rows() * c.context.ranks, first = config_.data_rank * batch;
  const auto take = [&](const Tensor& from, const Tensor& to) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(from.elements())), own;
    backend().synchronize();
    backend().download(all.data(), from);
    for (std::int64_t begin = first; begin < first + batch; begin += c.context_length)
      for (const int which : {0, 1}) {
        const auto chunk = all.begin() + begin + c.chunk_begin(c.context.rank, which);
        own.insert(own.end(), chunk, chunk + c.chunk_length());
      }
    backend().upload(to, own.data());
    return std::pair(std::move(all), std::move(own));
  };
  take(global_inputs_, inputs_);
  const auto [labels, own_labels] = take(global_labels_, labels_);
  global_valid_rows_ = counted(labels);
  valid_rows_ = counted(own_labels);
}

void DecoderTrainer::read_inputs() {
  const std::string& name_of_file = config_.inputs_file;
  const std::int64_t vocab = config_.model.vocab_size;
  const train::SafetensorsReader file(name_of_file);
  const std::vector<std::int64_t> expected{
      config_.data_ranks * config_.model.accumulation_steps * config_.model.batch_size, config_.model.context_length};
  const auto read = [&](const char* name, std::int64_t lowest) {
    const train::StoredTensor& t = file.at(name);
    if (t.dtype != DType::i64 || t.dims != expected)
      throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": '" + name +
                                              "' must be int64 of shape [sequences of a step, context_length] = [" +
                                              std::to_string(expected[0]) + ", " + std::to_string(expected[1]) + "]");
    const std::vector<std::byte> bytes = file.read(name);
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(expected[0] * expected[1]));
    std::memcpy(tokens.data(), bytes.data(), bytes.size());
    for (const std::int64_t token : tokens)
      if (token < lowest || token >= vocab)
        throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": '" + name + "' holds token " + std::to_string(token) +
                                                ", outside the vocabulary of " + std::to_string(vocab));
    return tokens;
  };
  const std::vector<std::int64_t> ids = read("input_ids", 0);
  // a negative label is ignored by the loss
  const std::vector<std::int64_t> labels = read("labels", std::numeric_limits<std::int64_t>::min());
  backend().upload(global_inputs_, ids.data());
  backend().upload(global_labels_, labels.data());
  if (config_.model.shares_context()) {
    take_own_chunks();
    if (global_valid_rows_ == 0)
      throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": every label is negative: no loss");
    return backend().download(&first_token_, inputs_.slice(0, 0, 1));
  }
  const auto rows = static_cast<std::size_t>(config_.model.step_rows());
  const std::size_t first_row = static_cast<std::size_t>(config_.data_rank) * rows;
  valid_rows_ = counted(std::span(labels).subspan(first_row, rows));
  global_valid_rows_ = counted(labels);
  if (valid_rows_ == 0) throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": every label is negative: no loss");
  first_token_ = ids[first_row];
}

void DecoderTrainer::forward_of(std::int64_t micro_batch) const {
  require_one_stage();
  const std::int64_t rows = config_.model.rows();
  const Tensor ids = inputs_.slice(0, micro_batch * rows, rows), labels = labels_.slice(0, micro_batch * rows, rows);
  model_->forward(backend(), ids, config_.model.backward ? &labels : nullptr, counted_rows(), micro_batch);
}

void DecoderTrainer::backward_of(std::int64_t micro_batch, train::GradientListener* listener) const {
  require_one_stage();
  const std::int64_t rows = config_.model.rows();
  const Tensor ids = inputs_.slice(0, micro_batch * rows, rows), labels = labels_.slice(0, micro_batch * rows, rows);
  backend().leave_multiprocessors(micro_batch + 1 == micro_batches() ? left_multiprocessors() : 0);
  model_->backward(backend(), ids, labels, counted_rows(), listener, micro_batch);
  backend().leave_multiprocessors(0);
}

}  // namespace assay::models
