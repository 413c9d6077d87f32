// An encoder-decoder with all that trains it on one rank, and the place of its batch, which someone else fills. See
// trainer.hpp for the order of set-up.
#pragma once
#include <assay/train/encoder_decoder.hpp>
#include <assay/train/trainer.hpp>
#include <functional>
#include <string>

namespace assay::train {

struct EncoderDecoderTrainerConfig {
  EncoderDecoderConfig model;  // batch_size: of this rank
  OptimizerConfig optimizer;
  std::uint64_t seed = 0;    // for the weights: the same on every rank
  std::string weights_file;  // safetensors; "": random, from the seed
};

class EncoderDecoderTrainer : public Trainer {
 public:
  EncoderDecoderTrainer(const Host& host, const EncoderDecoderTrainerConfig& config);  // throws assay::Error

  // open to prepare. `enqueue` is one step without communication. Then fill batch(), initialize and start.
  void setup(const Launch& launch, const std::function<void()>& enqueue);

  // Enqueue the parts of a step.
  void forward() const { model_.forward(backend(), batch_); }
  void backward(GradientListener* listener = nullptr) const { model_.backward(backend(), batch_, listener); }

  const EncoderDecoderTrainerConfig& config() const { return config_; }
  const EncoderDecoderParameters& ids() const { return ids_; }
  const EncoderDecoderModel& model() const { return model_; }
  const compute::Tensor& batch() const { return batch_; }  // i64 [batch_elements], as the model says

 private:
  EncoderDecoderTrainerConfig config_;
  EncoderDecoderParameters ids_;
  EncoderDecoderModel model_;
  DeviceMemory batch_memory_;
  compute::Tensor batch_;
};

}  // namespace assay::train
