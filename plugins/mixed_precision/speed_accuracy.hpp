// study = "speed_accuracy" shows what a precision does to a decoder's training: the time of a step, the loss after some
// steps against that of fp32, and the error of the gradients against float64.
#pragma once
#include <assay/train/decoder_trainer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "study.hpp"

namespace mixed_precision {

class SpeedAccuracy final : public Study {
 public:
  explicit SpeedAccuracy(const assay::Case& c);  // throws assay::Error
  void setup(const Launch& launch) override;
  void run(const Launch& launch) override;
  std::string verify(const Launch& launch) override;  // reports loss and errors
  assay::Work work() const override;

 private:
  using Gradients = std::vector<std::vector<float>>;  // by parameter
  struct Accuracy {
    double loss = 0;  // in the step after loss_steps updates
    double skipped_steps = 0;
    Gradients gradients;  // for the sequence that is compared, from the start; multiplied by `scale`
    double scale = 1;
  };

  const assay::train::DecoderConfig& model() const { return config_.model; }
  assay::train::DecoderConfig compared_model(assay::train::DecoderConfig config) const;
  double reference_gflop() const;
  bool has_exact_reference() const { return reference_ == Reference::fp64; }
  void enqueue_step(const Launch& launch) const;
  std::string check_operations();
  Accuracy accuracy_of(assay::train::DecoderTrainer& trainer) const;
  Gradients exact_gradients(const assay::train::DecoderTrainer& fp32) const;

  assay::Host host_;
  assay::train::DecoderTrainerConfig config_;
  std::int64_t loss_steps_, reference_context_;
  Reference reference_;  // of the gradients
  bool is_fp32_;
  std::optional<assay::train::DecoderTrainer> trainer_;  // until verify makes room for the fp32 one
  std::unique_ptr<assay::compute::Graph> graph_;
};

}  // namespace mixed_precision
