// An encoder-decoder with all that trains it on one rank, and the place of its batch, which someone else fills after
// setup().
#pragma once
#include <assay/models/encoder_decoder.hpp>
#include <assay/train/trainer.hpp>
#include <string>

namespace assay::models {

struct EncoderDecoderTrainerConfig {
  EncoderDecoderConfig model;  // batch_size: of this rank
  train::OptimizerConfig optimizer;
  std::uint64_t seed = 0;    // for the weights: the same on every rank
  std::string weights_file;  // safetensors; "": random, from the seed
};

class EncoderDecoderTrainer : public train::Trainer {
 public:
  EncoderDecoderTrainer(const Host& host, const EncoderDecoderTrainerConfig& config);  // throws assay::Error

  void forward() const override { model_.forward(backend(), batch_); }
  void backward(train::GradientListener* listener = nullptr) const override {
    model_.backward(backend(), batch_, listener);
  }

  const EncoderDecoderTrainerConfig& config() const { return config_; }
  const EncoderDecoderParameters& ids() const { return ids_; }
  const EncoderDecoderModel& model() const { return model_; }
  const compute::Tensor& batch() const { return batch_; }  // i64 [batch_elements], as the model says

 private:
  void take_input_memory() override;

  EncoderDecoderTrainerConfig config_;
  EncoderDecoderParameters ids_;
  EncoderDecoderModel model_;
  DeviceMemory batch_memory_;
  compute::Tensor batch_;
};

}  // namespace assay::models
