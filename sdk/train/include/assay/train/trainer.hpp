// A Trainer holds what a workload needs to train any model on one rank: parameters, optimizer and loss scaler, and
// their arenas, taken from the host by kind. Once constructed, without a device, it knows the parameters and the plan
// of the model; setup() makes it ready for the first step, in one call. The workload decides what a step consists of
// (training_step.hpp) and when it communicates; the derived class provides the model and its inputs.
#pragma once
#include <assay/compute/workspace.hpp>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/model.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/train/safetensors.hpp>
#include <assay/train/step_account.hpp>
#include <assay/workload/precision.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace assay::train {

struct TrainerConfig {
  workload::PrecisionPolicy precision;
  OptimizerConfig optimizer;
  bool backward = true;    // with gradients
  bool train_step = true;  // with an optimizer and its state
  // training_step() without an exchange updates beside backward (update_beside_backward.hpp); a cold first step and a
  // step with an exchange do not. UNSUPPORTED with a loss scale, INVALID_ARGUMENT for a model that does not allow it.
  bool update_beside_backward = false;
  // training_step() updates in the products that can (update_in_products.hpp), and the rest after backward; a cold
  // first step does not. Of AdamW; UNSUPPORTED with another optimizer or a loss scale.
  // Gradients that the parameters drop (ParameterSet::drop_gradients) then have no memory, and training_step() alone
  // can make them, until show_gradients().
  bool update_in_products = false;
  std::uint64_t seed = 0;
  std::string weights_file;                            // safetensors; "": random, from the seed
  compute::Tuning tuning = compute::Tuning::measured;  // of all operations that the trainer prepares
};

// Called by setup() between its parts, for workloads that look at the memory there, or take some.
struct SetupMoments {
  // Takes the parameters' memory, this many bytes, in place of the trainer, which it must outlive; the backend is open.
  std::function<void*(std::size_t)> parameter_memory;
  std::function<void()> parameters_taken;  // the parameters' memory is there, and nothing else
  std::function<void()> step_taken;        // gradients, activations and inputs, too, but not the optimizer's state
};

class Trainer {
 public:
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Opens the device's backend, takes all memory, finds kernels and reserves workspace for the operations of `enqueue`,
  // which must not communicate, loads the inputs, and makes the state before the first step. Blocks. Without `enqueue`
  // the operations are those of enqueue_step(). Call it once, on the thread that runs the case; before it only
  // parameters() and the model's plan exist. Throws assay::Error: UNSUPPORTED for a device without operations, or
  // without one of these; OUT_OF_MEMORY; INVALID_ARGUMENT for a file of weights or inputs that does not fit.
  void setup(const Launch& launch, const std::function<void()>& enqueue, const SetupMoments& moments = {});
  void setup(const Launch& launch) {
    setup(launch, [this] { enqueue_step(); });
  }

  // A cold start (assay_case.prepare) leaves more to the first step: set-up makes parameters and inputs, and
  // take_memory_cold, in the first phase of the first step, memory for state and step. Each phase then prepares what it
  // enqueues (training_step.hpp does).
  void setup_cold(const Launch& launch);
  void take_memory_cold();

  // The parts of a step. Each enqueues.
  virtual void forward() const = 0;
  // To be called after forward. `listener`, if any, hears of gradients as they become final.
  virtual void backward(GradientListener* listener = nullptr) const = 0;
  // Of every step from here on: what the products of its last backward, beside which others work, leave to them
  // (Backend::leave_multiprocessors). Their kernels are prepared for each count.
  void leave_multiprocessors(std::int32_t count) { left_multiprocessors_ = count; }
  std::int32_t left_multiprocessors() const { return left_multiprocessors_; }
  void update() const { optimizer_->step(*backend_, scaler_); }
  // A step may have several micro-batches, whose gradients are added up before the update: each has a forward and a
  // backward, in this order, and the `listener` is the last one's.
  virtual std::int64_t micro_batches() const { return 1; }
  virtual void forward_of(std::int64_t /*micro_batch*/) const { forward(); }
  virtual void backward_of(std::int64_t /*micro_batch*/, GradientListener* listener) const { backward(listener); }
  // All parts that the configuration asks for, as training_step() enqueues them, without phases.
  void enqueue_step() const;
  // Every step begins and ends with these, outside its phases: they keep the account of steps (step_account.hpp).
  void begin_step() const { account_.begin_step(*backend_, account_subjects()); }
  void end_step() const { account_.end_step(*backend_, account_subjects()); }
  // What a workload's account() answers: the steps since the last start(), as the device has counted and marked them.
  // Blocks. WRONG_RESULT where the optimizer has not taken one update in each of them, skipped ones left out.
  Account account() const;

  // Finds kernels and reserves workspace for further operations, without touching a tensor. They must not include
  // communication: ranks share what they find by timing (workload/shared_tuning.hpp), and wait for it.
  void prepare(const std::function<void()>& enqueue);
  // The same for operations that `by` will carry out, a backend that hands them on to backend(): one that has no side
  // lane needs all workspace on the main one.
  void prepare(compute::Backend& by, const std::function<void(compute::Backend&)>& enqueue);
  void initialize() { model_->initialize(*backend_); }  // after another model has had the memory: enqueues
  // Restores the state before the first step: parameters, optimizer, loss scale. Blocks.
  void start(double loss_scale = LossScaler::start);

  // Captures the step that `enqueue` enqueues as a graph. Phases that it marks are part of the graph, if it marks any.
  // Null if the device has no graphs: the caller then enqueues each step. Runs the step once, and then restarts.
  enum class Marks { none, captured };
  std::unique_ptr<compute::Graph> capture(const std::function<void()>& enqueue, Marks marks);
  // The same after the step has run, without a restart. If memory of the step is taken again (lend_memory, prepare),
  // the graph refuses to be launched: INVALID_ARGUMENT.
  std::unique_ptr<compute::Graph> capture_as_is(const std::function<void()>& enqueue, Marks marks);

  // Binds `other`, a model with the same parameters (of another batch or path), to the gradient arena and the
  // activation memory, which is taken again if it needs more. Both models stay bound; call initialize() on the one that
  // runs next.
  void lend_memory(Model& other);
  double last_loss() const { return loss_of(*model_); }  // blocks
  double loss_of(const Model& model) const;              // of one that has been bound; blocks

  // From here on steps write dropped gradients as well, captured ones too: for a verification, which takes the memory
  // for them. Blocks. Nothing where none is dropped.
  void show_gradients();
  // i64 [1] in device memory: where a dropped gradient is written (compute::WeightUpdate::gradient_place).
  compute::Tensor gradient_place(ParameterSet::Id id) const;

  void require_set_up() const {  // throws INVALID_ARGUMENT
    if (!backend_) throw Error(ASSAY_INVALID_ARGUMENT, "the trainer is not set up; call setup() before the first step");
  }
  bool has_backward() const { return config_.backward; }
  bool has_update() const { return config_.train_step; }
  bool updates_beside_backward() const { return config_.train_step && config_.update_beside_backward; }
  bool updates_in_products() const { return config_.train_step && config_.update_in_products; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const LossScaler& scaler() const { return scaler_; }
  compute::Backend& backend() const { return *backend_; }
  // To register them for communication. Of the parameters' memory: values, then the compute copy.
  const DeviceMemory& gradient_memory() const { return gradient_memory_; }
  const DeviceMemory& activation_memory() const { return activation_memory_; }
  void* parameter_memory() const { return parameters_at_; }
  std::size_t parameter_memory_bytes() const { return parameters_.value_bytes() + parameters_.copy_bytes(); }

 protected:
  Trainer(const Host& host, const TrainerConfig& config);
  virtual ~Trainer() = default;
  // Call it once, in the derived class's constructor, when the parameters are complete. `model` must live as long as
  // this object. INVALID_ARGUMENT if its loss is no result of its plan.
  void use(Model& model);

  // Draws parameters() from their distributions; enqueues. A derived class whose model has other parameters than the
  // optimizer overrides it.
  virtual void draw_parameters(std::uint64_t seed) const { parameters_.initialize(*backend_, seed); }

  // What a derived class with inputs overrides; setup() calls both. Memory is taken from host(), of ASSAY_MEMORY_DATA.
  virtual void take_input_memory() {}
  virtual void load_inputs() {}
  // Fills the parameters from the file of TrainerConfig, by their own names. Another model may know other names, too.
  virtual void load_weights(const SafetensorsReader& file) const;

  const Host& host() const { return host_; }

 private:
  void open(const Launch& launch);
  void prepare_workspace(compute::Backend& by, const std::function<void()>& enqueue);
  // Values and, where the policy has one, the compute copy.
  void take_parameter_memory(const SetupMoments& moments = {});
  void take_step_memory();        // gradients and activations
  void take_state_memory();       // optimizer (after its restrict_to, if any) and loss scaler
  void start_parameters() const;  // the first part of start(): enqueues
  void start_state(double loss_scale = LossScaler::start) const;  // and the rest of it: optimizer and loss scale
  void bind_parameters();
  void lend_scalars(Model& model) const;
  StepAccount::Subjects account_subjects() const;
  std::vector<std::int64_t> account_places(bool of_kept_gradients) const;

  Host host_;
  TrainerConfig config_;
  ParameterSet parameters_;
  LossScaler scaler_;
  std::optional<Optimizer> optimizer_;  // made when the parameters are complete
  Model* model_ = nullptr;
  std::int32_t left_multiprocessors_ = 0;
  std::unique_ptr<compute::Backend> backend_;
  void* parameters_at_ = nullptr;
  DeviceMemory gradient_places_, shown_gradients_;
  DeviceMemory parameter_memory_, gradient_memory_, state_memory_, optimizer_memory_, activation_memory_;
  compute::Workspace workspace_;
  std::uint64_t times_prepared_ = 0;
  StepAccount account_;
  // How often memory of a captured step was taken again. Graphs outlive nothing that they use, but may be launched
  // after it has moved.
  const std::shared_ptr<std::uint64_t> moves_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace assay::train
