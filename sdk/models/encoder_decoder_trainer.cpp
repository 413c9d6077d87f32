#include "assay/models/encoder_decoder_trainer.hpp"

namespace assay::models {

EncoderDecoderTrainer::EncoderDecoderTrainer(const Host& host, const EncoderDecoderTrainerConfig& config)
    : train::Trainer(host, {.precision = config.model.precision,
                            .optimizer = config.optimizer,
                            .backward = config.model.backward,
                            .train_step = true,
                            .seed = config.seed,
                            .weights_file = config.weights_file}),
      config_(config),
      ids_(add_encoder_decoder_parameters(parameters(), config.model)),
      model_(config.model, parameters(), ids_) {
  use(model_);
}

void EncoderDecoderTrainer::take_input_memory() {
  const std::int64_t elements = config_.model.batch_elements();
  batch_memory_ =
      DeviceMemory(host(), ASSAY_MEMORY_DATA, static_cast<std::size_t>(elements) * sizeof(std::int64_t), "batch");
  batch_ = compute::Tensor(batch_memory_.data(), compute::DType::i64, {elements});
}

}  // namespace assay::models
