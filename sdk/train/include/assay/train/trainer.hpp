// A Trainer holds all that a workload needs to train any model on one rank: its parameters, optimizer and loss scaler,
// and their arenas, taken from the host by kind. The workload decides what a step consists of and when it communicates;
// the derived class (DecoderTrainer, EncoderDecoderTrainer) decides which inputs a model has.
//
// Set-up, in this order: open; take_parameter_memory, take_state_memory and take_step_memory in any order, the last one
// after the first; prepare; inputs; initialize; start.
//
// A cold start (assay_case.prepare) makes parameters and inputs in set-up, and leaves the rest to the first step:
// memory for state and step, initialize, start_state, and a call of prepare for the operations of each phase, inside
// that phase.
#pragma once
#include <assay/compute/workspace.hpp>
#include <assay/train/backend_access.hpp>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/train/trained_model.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace assay::train {

struct TrainerConfig {
  PrecisionPolicy precision;
  OptimizerConfig optimizer;
  bool backward = true;    // with gradients
  bool train_step = true;  // with an optimizer and its state
  std::uint64_t seed = 0;
  std::string weights_file;  // safetensors; "": random, from the seed
};

class Trainer {
 public:
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void open(const Launch& launch);
  void take_parameter_memory();  // values and, where the policy has one, the compute copy
  void take_state_memory();      // optimizer (after its restrict_to, if any) and loss scaler
  void take_step_memory();       // gradients and activations
  // Finds kernels and reserves workspace for the operations of `enqueue`, without touching a tensor. There must be no
  // communication among them.
  void prepare(const std::function<void()>& enqueue);
  void initialize() { model_->initialize(*backend_); }
  // Makes the state before the first step: parameters, optimizer, loss scale. Blocks.
  void start(double loss_scale = LossScaler::start);
  void start_parameters() const;                                  // the first part of start(): enqueues
  void start_state(double loss_scale = LossScaler::start) const;  // and the rest of it: optimizer and loss scale

  // Captures the step that `enqueue` enqueues as a graph. Phases that it marks are part of the graph, or it marks none.
  // The result is null where the device has no graphs: the caller then enqueues each step anew. Runs the step once, and
  // then starts anew.
  enum class Marks { none, captured };
  std::unique_ptr<compute::Graph> capture(const std::function<void()>& enqueue, Marks marks);
  // The same, once the step has run: its state stays as it is.
  std::unique_ptr<compute::Graph> capture_as_is(const std::function<void()>& enqueue, Marks marks);

  void update() const { optimizer_->step(*backend_, scaler_); }  // enqueues

  // Binds `other`, a model of the same parameters (of another batch or path), to the gradient arena and the activation
  // memory, which is taken anew when it needs more. Both models stay bound; initialize() whichever runs next.
  void lend_memory(TrainedModel& other);
  double last_loss() const;  // blocks

  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const LossScaler& scaler() const { return scaler_; }
  compute::Backend& backend() const { return *backend_; }
  const DeviceMemory& gradient_memory() const { return gradient_memory_; }  // to register it for communication
  const DeviceMemory& parameter_memory() const { return parameter_memory_; }

 protected:
  Trainer(const Host& host, const TrainerConfig& config);
  ~Trainer() = default;
  // To be called once, in the derived class's constructor, when the parameters are complete. `model` must live as long
  // as this object. INVALID_ARGUMENT when its loss is no result of its plan.
  void use(TrainedModel& model);

  const Host& host() const { return host_; }

 private:
  void bind_parameters();
  void lend_scalars(TrainedModel& model) const;

  Host host_;
  TrainerConfig config_;
  ParameterSet parameters_;
  LossScaler scaler_;
  std::optional<Optimizer> optimizer_;  // made when the parameters are complete
  TrainedModel* model_ = nullptr;
  std::unique_ptr<compute::Backend> backend_;
  DeviceMemory parameter_memory_, gradient_memory_, state_memory_, activation_memory_;
  compute::Workspace workspace_;
};

}  // namespace assay::train
