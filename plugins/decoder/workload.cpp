#include "workload.hpp"

#include <assay/train/checkpoint.hpp>
#include <assay/train/memory_plan.hpp>
#include <cstring>
#include <limits>

namespace decoder {

using assay::DeviceMemory;
using assay::Error;
using assay::compute::DType;
using assay::compute::Mode;
using assay::compute::Tensor;
using assay::train::DecoderModel;

namespace {

// Streams of the counter-based generator; parameters use their own ids as streams.
constexpr std::uint64_t input_stream = 1'000'001;
constexpr std::uint64_t label_stream = 1'000'002;

}  // namespace

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      parameters_(settings_.model.precision),
      ids_(assay::train::add_decoder_parameters(parameters_, settings_.model)),
      model_(settings_.model, parameters_, ids_),
      optimizer_(settings_.optimizer, parameters_),
      scaler_(settings_.model.precision) {}

assay::Work Workload::work() const {
  const std::uint64_t forward = assay::train::decoder_forward_flops(settings_.model);
  const auto n = static_cast<std::uint64_t>(parameters_.parameter_count());
  const std::uint64_t weight = assay::compute::size_of(settings_.model.precision.activation);
  const std::uint64_t gradient = assay::compute::size_of(settings_.model.precision.gradient);
  const std::uint64_t state = assay::compute::size_of(settings_.model.precision.state);
  const std::uint64_t master = assay::compute::size_of(settings_.model.precision.parameter);
  // Weights are read by forward, and read again by backward, which writes the gradients; AdamW reads gradient, weight
  // and two moments, and writes all but the gradient. Activations can stay in cache and are left out: a lower bound.
  std::uint64_t bytes = n * weight;
  if (settings_.pass != Pass::forward) bytes += n * (weight + gradient);
  if (settings_.pass == Pass::train_step) bytes += n * (gradient + 2 * master + 4 * state);
  return {.flops = settings_.pass == Pass::forward ? forward : 3 * forward,
          .bytes = bytes,
          .items = static_cast<std::uint64_t>(settings_.model.rows())};
}

void Workload::prepare(const std::function<void()>& enqueue) {
  backend_->set_mode(Mode::prepare);
  enqueue();
  backend_->set_mode(Mode::execute);
  if (const std::size_t wanted = backend_->workspace_bytes(); wanted > workspace_memory_.bytes()) {
    workspace_memory_.reset();
    workspace_memory_ = DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, wanted, "workspace");
    backend_->set_workspace(workspace_memory_.data(), wanted);
  }
}

void Workload::setup(const assay::Launch& launch) {
  launch.metric(parameters_metric, static_cast<double>(parameters_.parameter_count()));
  backend_ = assay::train::open_backend(host_, launch);
  backend_->set_product_math(settings_.model.precision.product_math);
  take_memory();
  prepare([&] {
    parameters_.initialize(*backend_, settings_.seed);  // whatever they start from: no file is read for this
    enqueue_step(launch);
  });
  load_inputs();
  model_.initialize(*backend_);
  start(assay::train::LossScaler::start);
  if (settings_.model.fused) capture(launch);
}

void Workload::capture(const assay::Launch& launch) {
  if (std::string_view(backend_->kind()) == "cpu") return;
  // Once without a graph: a kernel's code is loaded at its first launch, which is no part of a capture.
  enqueue_step(launch);
  start(assay::train::LossScaler::start);
  const assay::CaptureMarks marks(host_);
  graph_ = backend_->capture([&] { enqueue_step(launch); });
}

void Workload::start(double loss_scale) {
  start_parameters();
  if (settings_.pass == Pass::train_step) optimizer_.reset(*backend_);
  scaler_.reset(*backend_, loss_scale);
  backend_->synchronize();
}

void Workload::take_memory() {
  const std::size_t value_bytes = parameters_.value_bytes();
  parameter_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_PARAMETERS, value_bytes + parameters_.copy_bytes(), "parameters");
  const std::size_t optimizer_bytes = settings_.pass == Pass::train_step ? optimizer_.state_bytes() : 0;
  if (optimizer_bytes + scaler_.state_bytes() > 0) {
    state_memory_ =
        DeviceMemory(host_, ASSAY_MEMORY_OPTIMIZER_STATE, optimizer_bytes + scaler_.state_bytes(), "optimizer state");
    optimizer_.bind(state_memory_.data());
    scaler_.bind(state_memory_.data<char>() + optimizer_bytes);
  }
  model_.set_loss_scale(scaler_.tensors().scale);
  if (settings_.model.backward)
    gradient_memory_ = DeviceMemory(host_, ASSAY_MEMORY_GRADIENTS, parameters_.gradient_bytes(), "gradients");
  activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, model_.activation_bytes(), "activations");
  parameters_.bind(parameter_memory_.data(), parameter_memory_.data<char>() + value_bytes, gradient_memory_.data());
  model_.bind(gradient_memory_.data(), activation_memory_.data());
  assay::train::report_plan(host_, model_.plan(), parameters_, gradient_memory_.data(), activation_memory_.data());
  data_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_DATA, 2 * static_cast<std::size_t>(settings_.model.rows()) * 8, "tokens");
  inputs_ = Tensor(data_memory_.data(), DType::i64, {settings_.model.rows()});
  labels_ = Tensor(data_memory_.data<char>() + inputs_.bytes(), DType::i64, {settings_.model.rows()});
}

void Workload::start_parameters() {
  if (settings_.weights_file.empty())
    parameters_.initialize(*backend_, settings_.seed);
  else
    assay::train::load_parameters(*backend_, parameters_, assay::train::SafetensorsReader(settings_.weights_file));
}

void Workload::load_inputs() {
  const auto rows = static_cast<std::size_t>(settings_.model.rows());
  std::vector<std::int64_t> ids(rows);
  std::vector<std::int64_t> labels(rows);
  if (settings_.inputs_file.empty()) {
    backend_->random_integers(inputs_, settings_.seed, input_stream, 0, settings_.model.vocab_size);
    backend_->random_integers(labels_, settings_.seed, label_stream, 0, settings_.model.vocab_size);
    valid_rows_ = settings_.model.rows();
    backend_->download(&first_token_, inputs_.slice(0, 0, 1));
    return;
  }
  const assay::train::SafetensorsReader file(settings_.inputs_file);
  const std::vector<std::int64_t> expected{settings_.model.batch_size, settings_.model.context_length};
  const auto read = [&](const char* name, std::vector<std::int64_t>& out, std::int64_t lowest) {
    const assay::train::StoredTensor& t = file.at(name);
    if (t.dtype != DType::i64 || t.dims != expected)
      throw Error(ASSAY_INVALID_ARGUMENT, settings_.inputs_file + ": '" + name +
                                              "' must be int64 of shape [batch_size, " + "context_length] = [" +
                                              std::to_string(expected[0]) + ", " + std::to_string(expected[1]) + "]");
    const std::vector<std::byte> bytes = file.read(name);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    for (const std::int64_t token : out)
      if (token < lowest || token >= settings_.model.vocab_size)
        throw Error(ASSAY_INVALID_ARGUMENT, settings_.inputs_file + ": '" + name + "' holds token " +
                                                std::to_string(token) + ", outside the vocabulary of " +
                                                std::to_string(settings_.model.vocab_size));
  };
  read("input_ids", ids, 0);
  read("labels", labels, std::numeric_limits<std::int64_t>::min());  // a negative label is ignored by the loss
  backend_->upload(inputs_, ids.data());
  backend_->upload(labels_, labels.data());
  valid_rows_ = 0;
  for (const std::int64_t label : labels) valid_rows_ += label >= 0 ? 1 : 0;
  if (valid_rows_ == 0)
    throw Error(ASSAY_INVALID_ARGUMENT, settings_.inputs_file + ": every label is negative: no loss");
  first_token_ = ids[0];
}

void Workload::run(const assay::Launch& launch) {
  if (!graph_) return enqueue_step(launch);
  graph_->launch();
  assay::mark_replayed(host_);
}

void Workload::enqueue_step(const assay::Launch& launch) {
  {
    const auto phase = launch.phase(forward_phase);
    model_.forward(*backend_, inputs_, settings_.model.backward ? &labels_ : nullptr, valid_rows_);
  }
  if (settings_.pass == Pass::forward) return;
  {
    const auto phase = launch.phase(backward_phase);
    model_.backward(*backend_, inputs_, labels_, valid_rows_);
  }
  if (settings_.pass == Pass::forward_backward) return;
  const auto phase = launch.phase(optimizer_phase);
  optimizer_.step(*backend_, scaler_);
}

void Workload::finish(const assay::Launch& launch) {
  if (settings_.model.backward) {
    float loss = 0;
    backend_->download(&loss, model_.loss());
    launch.metric(loss_metric, static_cast<double>(loss));
  }
  if (scaler_.active()) {
    launch.metric(loss_scale_metric, scaler_.scale(*backend_));
    launch.metric(skipped_steps_metric, static_cast<double>(scaler_.skipped_steps(*backend_)));
  }
  if (!settings_.dump_file.empty()) dump();
}

void Workload::dump() {
  assay::train::SafetensorsWriter file(settings_.dump_file);
  const auto& all = parameters_.all();
  const auto& m = settings_.model;
  file.declare("logits", DType::f32, {m.batch_size, m.context_length, m.vocab_size});
  if (m.backward) {
    file.declare("loss", DType::f32, {});
    for (const auto& p : all) file.declare("grad." + p.name, DType::f32, p.dims);
  }
  for (const auto& p : all) file.declare("weight." + p.name, DType::f32, p.dims);

  const auto write = [&](const std::string& name, const Tensor& t, double divisor = 1.0) {
    std::vector<float> values = assay::train::download_f32(*backend_, t);
    if (divisor != 1.0)
      for (float& v : values) v = static_cast<float>(v / divisor);
    file.write(name, values.data(), values.size() * sizeof(float));
  };
  write("logits", model_.kept_logits());
  if (m.backward) {
    write("loss", model_.loss());
    const double scale = scaler_.scale_of_gradients(*backend_);
    for (std::size_t i = 0; i < all.size(); ++i) write("grad." + all[i].name, parameters_.gradient(i), scale);
  }
  for (std::size_t i = 0; i < all.size(); ++i) write("weight." + all[i].name, parameters_.value(i));
  file.finish();
}

}  // namespace decoder
