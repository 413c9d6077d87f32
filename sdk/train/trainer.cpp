#include "assay/train/trainer.hpp"

#include <assay/train/checkpoint.hpp>
#include <assay/train/memory_plan.hpp>
#include <assay/train/repeatability.hpp>
#include <assay/train/training_step.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/shared_tuning.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace assay::train {
namespace {

// A graph of a step. It knows addresses: once memory of the step lies elsewhere, a replay would read and write what
// belongs to others by then.
class PlacedGraph final : public compute::Graph {
 public:
  PlacedGraph(std::unique_ptr<compute::Graph> graph, std::shared_ptr<const std::uint64_t> moves)
      : graph_(std::move(graph)), moves_(std::move(moves)), moves_when_captured_(*moves_) {}

  void launch() override {
    if (*moves_ != moves_when_captured_)
      throw Error(ASSAY_INVALID_ARGUMENT,
                  "a captured step is launched whose memory was taken anew since then; capture it again");
    graph_->launch();
  }
  std::size_t node_count() const override { return graph_->node_count(); }

 private:
  std::unique_ptr<compute::Graph> graph_;
  std::shared_ptr<const std::uint64_t> moves_;
  std::uint64_t moves_when_captured_;
};

}  // namespace

Trainer::Trainer(const Host& host, const TrainerConfig& config)
    : host_(host), config_(config), parameters_(config.precision), scaler_(config.precision) {
  if (updates_beside_backward() && config_.optimizer.name == "muon")
    throw Error(ASSAY_UNSUPPORTED,
                "optimizer = \"muon\" makes the matrices' updates orthogonal when backward is over, in products that "
                "take the whole device; expected update = \"after_backward\", or optimizer = \"adamw\"");
  if (updates_in_products() && (config_.optimizer.name != "adamw" || scaler_.active() || updates_beside_backward()))
    throw Error(ASSAY_UNSUPPORTED,
                "an update within products is AdamW's, without a loss scale, which has to see all gradients first; "
                "expected optimizer = \"adamw\", and another precision than fp16");
  if (updates_beside_backward() && scaler_.active())
    throw Error(ASSAY_UNSUPPORTED,
                "an update beside backward cannot have a loss scale, which has to see all gradients first; expected "
                "another precision than fp16");
}

void Trainer::use(Model& model) {
  // The loss is read after the step: nothing may lie in its place by then.
  const BufferPlan& plan = model.plan();
  int end = 0;
  for (const BufferPlan::Buffer& buffer : plan.buffers()) end = std::max(end, buffer.last);
  if (const std::size_t loss = plan.buffer_at(model.loss().data);
      loss < plan.buffers().size() && plan.buffers()[loss].last < end)
    throw Error(ASSAY_INVALID_ARGUMENT, "the loss '" + plan.buffers()[loss].name +
                                            "' is no result of its plan; add it with BufferPlan::Use::result");
  if (updates_beside_backward() && !model.allows_update_beside_backward())
    throw Error(ASSAY_INVALID_ARGUMENT,
                "an update beside backward needs the side lane and raises the step number during backward, and this "
                "model's backward uses one of them; expected a model without its own side lane and without dropout");
  model_ = &model;
  optimizer_.emplace(config_.optimizer, parameters_);
}

void Trainer::setup(const Launch& launch, const std::function<void()>& enqueue, const SetupMoments& moments) {
  open(launch);
  take_parameter_memory(moments);
  if (moments.parameters_taken) moments.parameters_taken();
  take_step_memory();
  take_input_memory();
  if (moments.step_taken) moments.step_taken();
  take_state_memory();
  prepare(enqueue);
  load_inputs();
  initialize();
  start();
}

void Trainer::setup_cold(const Launch& launch) {
  open(launch);
  take_parameter_memory();
  take_input_memory();
  prepare([] {});  // opens the backend for no operation: those of a step are prepared in the first one
  load_inputs();
  start_parameters();
  backend_->synchronize();
}

void Trainer::take_memory_cold() {
  take_state_memory();
  take_step_memory();
  initialize();
  start_state();
}

void Trainer::enqueue_step() const { training_step(*this, UnmarkedLaunch()); }

void Trainer::open(const Launch& launch) {
  if (!model_) throw Error(ASSAY_INVALID_ARGUMENT, "the trainer has no model; call use(model) in its constructor");
  if (backend_) throw Error(ASSAY_INVALID_ARGUMENT, "the trainer was set up before; make another one");
  backend_ = workload::open_backend(host_, launch);
  backend_->set_product_math(config_.precision.product_math);
  backend_->set_tuning(config_.tuning);
}

void Trainer::take_parameter_memory(const SetupMoments& moments) {
  const std::size_t bytes = parameter_memory_bytes();
  if (moments.parameter_memory) {
    parameters_at_ = moments.parameter_memory(bytes);
  } else {
    parameter_memory_ = DeviceMemory(host_, ASSAY_MEMORY_PARAMETERS, bytes, "parameters");
    parameters_at_ = parameter_memory_.data();
  }
  bind_parameters();
}

// A forward alone has no loss, and no gradients.
StepAccount::Subjects Trainer::account_subjects() const {
  if (!config_.backward) return {{}, model_->forward_result(), {}};
  const compute::Tensor values = config_.train_step ? parameters_.all_values() : compute::Tensor();
  if (parameters_.dropped_gradients().empty()) return {model_->loss(), parameters_.all_gradients(), values};
  // In the place of gradients that are gone the first moments, which hold them all.
  return {model_->loss(), optimizer_->moment(0), values, parameters_.all_gradients()};
}

// The parts of the parameters that this rank updates: its gradients of the other parts may be undefined. Or, of
// gradients that are kept where others are dropped, places in their arena.
std::vector<std::int64_t> Trainer::account_places(bool of_kept_gradients) const {
  if (of_kept_gradients) {
    std::vector<ElementRange> kept;
    for (ParameterSet::Id id = 0; id < parameters_.all().size(); ++id) {
      const std::int64_t begin = parameters_.gradient_position(parameters_.all()[id].offset);
      if (!parameters_.drops_gradient(id)) kept.push_back({begin, begin + parameters_.all()[id].elements()});
    }
    return StepAccount::spread(kept);
  }
  if (!config_.backward) return StepAccount::spread({{0, model_->forward_result().elements()}});
  std::vector<ElementRange> ranges;
  for (const ElementRange& owned : optimizer_->ranges())
    for (const Parameter& p : parameters_.all()) {
      const ElementRange part{std::max(owned.begin, p.offset), std::min(owned.end, p.offset + p.elements())};
      if (part.begin < part.end) ranges.push_back(part);
    }
  return StepAccount::spread(ranges);
}

Account Trainer::account() const {
  // On a device that adds in no fixed order a step that is taken again differs by roundings of its sums. A mark adds up
  // hundreds of places, or the losses of a batch, so that single roundings of its format, 2^-8 of bf16 and 2^-24 of
  // fp32, are far below these shares of it.
  const bool repeats = repeats_to_the_bit(*backend_);
  const double roundings = config_.precision.activation == compute::DType::f32 ? 0x1p-16 : 0x1p-12;
  Account account = account_.read(*backend_, repeats ? 0 : roundings, scaler_.active());
  if (!repeats && config_.precision.activation != compute::DType::f32)
    StepAccount::allow_for_earlier_steps(account, model_->picks_by_comparison());
  if (!config_.train_step) return account;
  std::int64_t updates = 0;
  backend_->download(&updates, optimizer_->step_number());
  const std::int64_t skipped = scaler_.skipped_steps(*backend_);
  if (static_cast<std::uint64_t>(updates + skipped) != account.steps)
    throw Error(ASSAY_WRONG_RESULT, "in " + std::to_string(account.steps) + " steps the optimizer has made " +
                                        std::to_string(updates) + " updates and skipped " + std::to_string(skipped));
  return account;
}

void Trainer::take_state_memory() {
  const bool drops = !parameters_.dropped_gradients().empty();
  account_.take_memory(host_, *backend_, account_places(false),
                       drops ? account_places(true) : std::vector<std::int64_t>());
  const std::size_t optimizer_bytes = config_.train_step ? optimizer_->state_bytes() : 0;
  if (optimizer_bytes + scaler_.state_bytes() == 0) return;
  state_memory_ =
      DeviceMemory(host_, ASSAY_MEMORY_OPTIMIZER_STATE, optimizer_bytes + scaler_.state_bytes(), "optimizer state");
  optimizer_->bind(state_memory_.data());
  if (const std::size_t scratch = config_.train_step ? optimizer_->scratch_bytes() : 0; scratch > 0) {
    optimizer_memory_ = DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, scratch, "the optimizer's matrices");
    optimizer_->bind_scratch(optimizer_memory_.data());
  }
  scaler_.bind(state_memory_.data<char>() + optimizer_bytes);
  lend_scalars(*model_);
}

void Trainer::lend_scalars(Model& model) const {
  model.set_loss_scale(scaler_.tensors().scale);
  if (config_.train_step) model.set_dropout_step(optimizer_->step_number());
}

void Trainer::take_step_memory() {
  if (const std::vector<ParameterSet::Id>& dropped = parameters_.dropped_gradients(); !dropped.empty()) {
    const std::vector<std::int64_t> none(dropped.size());
    gradient_places_ =
        DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, none.size() * sizeof(std::int64_t), "places of gradients");
    for (const ParameterSet::Id id : dropped) backend_->upload(gradient_place(id), none.data());
  }
  if (config_.backward)
    gradient_memory_ = DeviceMemory(host_, ASSAY_MEMORY_GRADIENTS, parameters_.gradient_bytes(), "gradients");
  activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, model_->activation_bytes(), "activations");
  bind_parameters();
  model_->bind(gradient_memory_.data(), activation_memory_.data());
  report_plan(host_, model_->plan(), parameters_, gradient_memory_.data(), activation_memory_.data());
}

compute::Tensor Trainer::gradient_place(ParameterSet::Id id) const {
  const std::vector<ParameterSet::Id>& dropped = parameters_.dropped_gradients();
  const auto at = std::lower_bound(dropped.begin(), dropped.end(), id) - dropped.begin();
  return compute::Tensor(gradient_places_.data<std::int64_t>() + at, compute::DType::i64, {1});
}

void Trainer::show_gradients() {
  if (parameters_.dropped_gradients().empty() || shown_gradients_.data()) return;
  shown_gradients_ = DeviceMemory(host_, ASSAY_MEMORY_GRADIENTS, parameters_.shown_gradient_bytes(), "verification");
  parameters_.show_gradients(shown_gradients_.data());
  backend_->synchronize();
  for (const ParameterSet::Id id : parameters_.dropped_gradients()) {
    const auto place = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(parameters_.gradient(id).data));
    backend_->upload(gradient_place(id), &place);
  }
}

void Trainer::bind_parameters() {
  parameters_.bind(parameters_at_, static_cast<char*>(parameters_at_) + parameters_.value_bytes(),
                   gradient_memory_.data());
}

void Trainer::prepare(const std::function<void()>& enqueue) {
  prepare_workspace(*backend_, [&] {
    draw_parameters(config_.seed);  // whatever they start from: no file is read for this
    enqueue();
  });
}

void Trainer::prepare(compute::Backend& by, const std::function<void(compute::Backend&)>& enqueue) {
  prepare_workspace(by, [&] { enqueue(by); });
}

void Trainer::prepare_workspace(compute::Backend& by, const std::function<void()>& enqueue) {
  const workload::SharedTuning shared(host_, by, "trainer " + std::to_string(times_prepared_++));
  const std::uint64_t before = workspace_.times_taken();
  workspace_.prepare(host_, by, enqueue);
  *moves_ += workspace_.times_taken() - before;
}

void Trainer::start(double loss_scale) {
  start_parameters();
  start_state(loss_scale);
  backend_->synchronize();
}

void Trainer::start_state(double loss_scale) const {
  account_.reset(*backend_);
  if (config_.train_step) optimizer_->reset(*backend_);
  scaler_.reset(*backend_, loss_scale);
}

std::unique_ptr<compute::Graph> Trainer::capture(const std::function<void()>& enqueue, Marks marks) {
  if (std::string_view(backend_->kind()) == "cpu") return nullptr;
  // Once without a graph: a kernel's code is loaded at its first launch, which is no part of a capture.
  enqueue();
  start();
  return capture_as_is(enqueue, marks);
}

std::unique_ptr<compute::Graph> Trainer::capture_as_is(const std::function<void()>& enqueue, Marks marks) {
  if (std::string_view(backend_->kind()) == "cpu") return nullptr;
  std::optional<CaptureMarks> captured;
  if (marks == Marks::captured) captured.emplace(host_);
  std::unique_ptr<compute::Graph> graph = backend_->capture(enqueue);
  return graph ? std::make_unique<PlacedGraph>(std::move(graph), moves_) : nullptr;
}

void Trainer::start_parameters() const {
  if (config_.weights_file.empty())
    draw_parameters(config_.seed);
  else
    load_weights(SafetensorsReader(config_.weights_file));
}

void Trainer::load_weights(const SafetensorsReader& file) const { load_parameters(*backend_, parameters_, file); }

void Trainer::lend_memory(Model& other) {
  if (other.activation_bytes() > activation_memory_.bytes()) {
    ++*moves_;
    activation_memory_.reset();
    activation_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, other.activation_bytes(), "verification");
    model_->bind(gradient_memory_.data(), activation_memory_.data());
  }
  lend_scalars(other);
  other.bind(gradient_memory_.data(), activation_memory_.data());
}

double Trainer::loss_of(const Model& model) const {
  float loss = 0;
  backend_->synchronize();
  backend_->download(&loss, model.loss());
  return static_cast<double>(loss);
}

}  // namespace assay::train
