// Everything that a workload needs to train a decoder on one rank: parameters, model, optimizer and loss scaler, their
// arenas taken from the host by kind, and the batch. What a step is made of, and when it communicates, is the
// workload's.
//
// Set-up, in this order (setup() does it all):
//   open; take_parameter_memory, take_state_memory and take_step_memory in any order, the last one after the first;
//   prepare; load_inputs; initialize; start.
#pragma once
#include <assay/train/backend_access.hpp>
#include <assay/train/decoder.hpp>
#include <assay/train/loss_scaler.hpp>
#include <assay/train/optimizer.hpp>
#include <functional>
#include <memory>
#include <string>

namespace assay::train {

struct DecoderTrainerConfig {
  DecoderConfig model;  // batch_size: of this rank
  OptimizerConfig optimizer;
  bool train_step = true;  // with an optimizer and its state
  std::uint64_t seed = 0;
  // The batch is the `rank`-th of `ranks` equal parts of a global one, which depends on the seed (or the file) and on
  // its size alone.
  std::int64_t rank = 0, ranks = 1;
  std::int64_t arena_multiple = 1;        // elements; the arenas' length is a multiple of it
  std::string weights_file, inputs_file;  // safetensors; "": random, from the seed. Inputs hold the global batch.
};

class DecoderTrainer {
 public:
  DecoderTrainer(const Host& host, const DecoderTrainerConfig& config);  // throws assay::Error
  DecoderTrainer(const DecoderTrainer&) = delete;
  DecoderTrainer& operator=(const DecoderTrainer&) = delete;

  // open to start. `enqueue` is one step without communication.
  void setup(const Launch& launch, const std::function<void()>& enqueue);

  void open(const Launch& launch);
  void take_parameter_memory();  // values and, where the policy has one, the compute copy
  void take_state_memory();      // of the optimizer (after its restrict_to, if any) and of the loss scaler
  void take_step_memory();       // gradients, activations, tokens
  // Finds kernels and reserves workspace for what `enqueue` does, without touching a tensor; no communication in there.
  void prepare(const std::function<void()>& enqueue);
  void load_inputs();
  void initialize() { model_.initialize(*backend_); }
  // The state before the first step: parameters, optimizer, loss scale. Blocks.
  void start(double loss_scale = LossScaler::start);

  // Enqueue the parts of a step. Without a backward in the model forward ends at the logits.
  void forward() const;
  void backward(GradientListener* listener = nullptr) const;
  void update() const { optimizer_.step(*backend_, scaler_); }

  // Binds `other`, a model of the same parameters (of another batch or path), to the gradient arena and the activation
  // memory, which is taken anew when it needs more. Both models stay bound; initialize() whichever runs next.
  void lend_memory(DecoderModel& other);
  double last_loss() const;  // blocks

  const DecoderTrainerConfig& config() const { return config_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  const DecoderParameters& ids() const { return ids_; }
  const DecoderModel& model() const { return model_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  const LossScaler& scaler() const { return scaler_; }
  compute::Backend& backend() const { return *backend_; }
  const DeviceMemory& gradient_memory() const { return gradient_memory_; }  // to register it for communication
  const DeviceMemory& parameter_memory() const { return parameter_memory_; }

  // i64 [rows] of this rank, and of all ranks, in their order
  const compute::Tensor& inputs() const { return inputs_; }
  const compute::Tensor& labels() const { return labels_; }
  const compute::Tensor& global_inputs() const { return global_inputs_; }
  const compute::Tensor& global_labels() const { return global_labels_; }
  std::int64_t valid_rows() const { return valid_rows_; }    // labels >= 0 of this rank
  std::int64_t first_token() const { return first_token_; }  // its embedding has a gradient

 private:
  void start_parameters() const;
  void read_inputs();
  void bind_parameters();

  Host host_;
  DecoderTrainerConfig config_;
  ParameterSet parameters_;
  DecoderParameters ids_;
  DecoderModel model_;
  Optimizer optimizer_;
  LossScaler scaler_;
  std::unique_ptr<compute::Backend> backend_;
  DeviceMemory parameter_memory_, gradient_memory_, state_memory_, activation_memory_, workspace_memory_, data_memory_;
  compute::Tensor inputs_, labels_, global_inputs_, global_labels_;
  std::int64_t valid_rows_ = 0;
  std::int64_t first_token_ = 0;
};

}  // namespace assay::train
