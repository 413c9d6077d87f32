#include "assay/train/decoder_trainer.hpp"

#include <assay/train/checkpoint.hpp>
#include <assay/train/memory_plan.hpp>
#include <cstring>
#include <limits>
#include <vector>

namespace assay::train {

using compute::DType;
using compute::Mode;
using compute::Tensor;

namespace {

// Streams of the counter-based generator; parameters use their own ids as streams.
constexpr std::uint64_t input_stream = 1'000'001;
constexpr std::uint64_t label_stream = 1'000'002;

DecoderParameters add_padded(ParameterSet& set, const DecoderTrainerConfig& config) {
  DecoderParameters ids = add_decoder_parameters(set, config.model);
  set.pad_to(config.arena_multiple);
  return ids;
}

}  // namespace

DecoderTrainer::DecoderTrainer(const Host& host, const DecoderTrainerConfig& config)
    : host_(host),
      config_(config),
      parameters_(config.model.precision),
      ids_(add_padded(parameters_, config)),
      model_(config.model, parameters_, ids_),
      optimizer_(config.optimizer, parameters_),
      scaler_(config.model.precision) {}

void DecoderTrainer::setup(const Launch& launch, const std::function<void()>& enqueue) {
  open(launch);
  take_parameter_memory();
  take_state_memory();
  take_step_memory();
  prepare(enqueue);
  load_inputs();
  initialize();
  start();
}

void DecoderTrainer::open(const Launch& launch) {
  backend_ = open_backend(host_, launch);
  backend_->set_product_math(config_.model.precision.product_math);
}

void DecoderTrainer::take_parameter_memory() {
  parameter_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_PARAMETERS, parameters_.value_bytes() + parameters_.copy_bytes(), "parameters");
  bind_parameters();
}

void DecoderTrainer::take_state_memory() {
  const std::size_t optimizer_bytes = config_.train_step ? optimizer_.state_bytes() : 0;
  if (optimizer_bytes + scaler_.state_bytes() == 0) return;
  state_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_OPTIMIZER_STATE, optimizer_bytes + scaler_.state_bytes(), "optimizer state");
  optimizer_.bind(state_memory_.data());
  scaler_.bind(state_memory_.data<char>() + optimizer_bytes);
  model_.set_loss_scale(scaler_.tensors().scale);
}

void DecoderTrainer::take_step_memory() {
  if (config_.model.backward)
    gradient_memory_ = DeviceMemory(host_, ASSAY_MEMORY_GRADIENTS, parameters_.gradient_bytes(), "gradients");
  activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, model_.activation_bytes(), "activations");
  bind_parameters();
  model_.bind(gradient_memory_.data(), activation_memory_.data());
  report_plan(host_, model_.plan(), parameters_, gradient_memory_.data(), activation_memory_.data());
  const std::int64_t rows = config_.model.rows();
  data_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_DATA, 2 * static_cast<std::size_t>(config_.ranks * rows) * 8, "tokens");
  global_inputs_ = Tensor(data_memory_.data(), DType::i64, {config_.ranks * rows});
  global_labels_ = Tensor(data_memory_.data<char>() + global_inputs_.bytes(), DType::i64, {config_.ranks * rows});
  inputs_ = global_inputs_.slice(0, config_.rank * rows, rows);
  labels_ = global_labels_.slice(0, config_.rank * rows, rows);
}

void DecoderTrainer::bind_parameters() {
  parameters_.bind(parameter_memory_.data(), parameter_memory_.data<char>() + parameters_.value_bytes(),
                   gradient_memory_.data());
}

void DecoderTrainer::prepare(const std::function<void()>& enqueue) {
  backend_->set_mode(Mode::prepare);
  parameters_.initialize(*backend_, config_.seed);  // whatever they start from: no file is read for this
  enqueue();
  backend_->set_mode(Mode::execute);
  if (const std::size_t wanted = backend_->workspace_bytes(); wanted > workspace_memory_.bytes()) {
    workspace_memory_.reset();
    workspace_memory_ = DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, wanted, "workspace");
    backend_->set_workspace(workspace_memory_.data(), wanted);
  }
}

void DecoderTrainer::start(double loss_scale) {
  start_parameters();
  if (config_.train_step) optimizer_.reset(*backend_);
  scaler_.reset(*backend_, loss_scale);
  backend_->synchronize();
}

void DecoderTrainer::start_parameters() const {
  if (config_.weights_file.empty())
    parameters_.initialize(*backend_, config_.seed);
  else
    load_parameters(*backend_, parameters_, SafetensorsReader(config_.weights_file));
}

void DecoderTrainer::load_inputs() {
  if (!config_.inputs_file.empty()) return read_inputs();
  backend_->random_integers(global_inputs_, config_.seed, input_stream, 0, config_.model.vocab_size);
  backend_->random_integers(global_labels_, config_.seed, label_stream, 0, config_.model.vocab_size);
  valid_rows_ = config_.model.rows();
  backend_->download(&first_token_, inputs_.slice(0, 0, 1));
}

void DecoderTrainer::read_inputs() {
  const std::string& name_of_file = config_.inputs_file;
  const std::int64_t vocab = config_.model.vocab_size;
  const SafetensorsReader file(name_of_file);
  const std::vector<std::int64_t> expected{config_.ranks * config_.model.batch_size, config_.model.context_length};
  const auto read = [&](const char* name, std::int64_t lowest) {
    const StoredTensor& t = file.at(name);
    if (t.dtype != DType::i64 || t.dims != expected)
      throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": '" + name +
                                              "' must be int64 of shape [batch_size, context_length] = [" +
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
  backend_->upload(global_inputs_, ids.data());
  backend_->upload(global_labels_, labels.data());
  const auto rows = static_cast<std::size_t>(config_.model.rows());
  const std::size_t first_row = static_cast<std::size_t>(config_.rank) * rows;
  valid_rows_ = 0;
  for (std::size_t i = 0; i < rows; ++i) valid_rows_ += labels[first_row + i] >= 0 ? 1 : 0;
  if (valid_rows_ == 0) throw Error(ASSAY_INVALID_ARGUMENT, name_of_file + ": every label is negative: no loss");
  first_token_ = ids[first_row];
}

void DecoderTrainer::forward() const {
  model_.forward(*backend_, inputs_, config_.model.backward ? &labels_ : nullptr, valid_rows_);
}

void DecoderTrainer::backward(GradientListener* listener) const {
  model_.backward(*backend_, inputs_, labels_, valid_rows_, listener);
}

void DecoderTrainer::lend_memory(DecoderModel& other) {
  if (other.activation_bytes() > activation_memory_.bytes()) {
    activation_memory_.reset();
    activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, other.activation_bytes(), "verification");
    model_.bind(gradient_memory_.data(), activation_memory_.data());
  }
  other.set_loss_scale(scaler_.tensors().scale);
  other.bind(gradient_memory_.data(), activation_memory_.data());
}

double DecoderTrainer::last_loss() const {
  float loss = 0;
  backend_->download(&loss, model_.loss());
  return static_cast<double>(loss);
}

}  // namespace assay::train
