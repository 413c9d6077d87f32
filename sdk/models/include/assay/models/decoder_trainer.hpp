// A decoder with all that trains it on one rank, and its batch.
#pragma once
#include <assay/models/decoder.hpp>
#include <assay/models/decoder_pipeline.hpp>
#include <assay/train/trainer.hpp>
#include <optional>
#include <string>

namespace assay::models {

struct DecoderTrainerConfig {
  // batch_size: of a micro-batch of this rank; where ranks share a split model or sequences, of all ranks of a replica.
  DecoderConfig model;
  train::OptimizerConfig optimizer;
  bool train_step = true;  // with an optimizer and its state
  bool update_beside_backward = false, update_in_products = false;
  // With update_in_products of one micro-batch: the gradients of the experts' matrices have no memory.
  bool drops_expert_gradients = false;
  std::uint64_t seed = 0;
  // The batch is the `data_rank`-th of `data_ranks` equal parts of a global one, which depends on the seed (or the
  // file) and on its size alone. Ranks that share a split model (model.split), its stages (model.stages) or its
  // sequences (model.context) have one batch, 0 of 1, or that of their replica; of the last of these each has the
  // tokens of its chunks.
  std::int64_t data_rank = 0, data_ranks = 1;
  // The loss and the gradients are this rank's terms of a sum over all ranks: the mean counts the labels of the global
  // batch. Those of shared sequences are such terms in any case.
  bool is_term = false;
  std::int64_t arena_multiple = 1;        // elements; the arenas' length is a multiple of it
  std::string weights_file, inputs_file;  // safetensors; "": random, from the seed. Inputs hold the global batch.
  compute::Tuning tuning = compute::Tuning::measured;  // first_choice: of a trainer that nobody measures

  bool has_terms() const { return is_term || model.shares_context(); }
};

class DecoderTrainer : public train::Trainer {
 public:
  DecoderTrainer(const Host& host, const DecoderTrainerConfig& config)
      : DecoderTrainer(host, config, nullptr) {}  // throws assay::Error
  // The model's parameters come and go by blocks: parameters() are those that `blocks` keeps here. The arenas are then
  // not padded to arena_multiple, and no file of weights is read. `blocks` must outlive the trainer.
  DecoderTrainer(const Host& host, const DecoderTrainerConfig& config, train::BlockParameters* blocks)
      : DecoderTrainer(host, config, blocks, nullptr) {}
  // The model is split over ranks as config.model says, which may be one: parameters() are this rank's parts, and no
  // file of weights is read. Or its sequences are shared out. `exchange` must outlive the trainer. Of a model in stages
  // (model.stages) neither is needed, parameters() are this rank's, no file is read, and a step is enqueue_stages().
  DecoderTrainer(const Host& host, const DecoderTrainerConfig& config, train::PartExchange& exchange)
      : DecoderTrainer(host, config, nullptr, &exchange) {}

  using train::Trainer::host;

  // Without a backward in the model forward ends at the logits.
  void forward() const override { forward_of(0); }
  void backward(train::GradientListener* listener = nullptr) const override { backward_of(0, listener); }
  std::int64_t micro_batches() const override { return config_.model.accumulation_steps; }
  void forward_of(std::int64_t micro_batch) const override;
  void backward_of(std::int64_t micro_batch, train::GradientListener* listener) const override;

  // Forward and backward of all micro-batches through this rank's stages: as DecoderPipeline::enqueue.
  void enqueue_stages(train::StageExchange* ranks, const train::StepMarks& marks,
                      train::GradientListener* listener = nullptr) const {
    pipeline_->enqueue(backend(), inputs_, labels_, valid_rows_, ranks, marks, listener);
  }

  const DecoderTrainerConfig& config() const { return config_; }
  const train::ParameterSet& model_parameters() const { return blocks_ ? whole_ : parameters(); }
  const DecoderParameters& ids() const { return ids_; }           // of model_parameters()
  const DecoderModel& model() const { return *model_; }           // of one that has no stages
  const DecoderPipeline& pipeline() const { return *pipeline_; }  // of one that has
  // The one of the two that steps are of.
  const train::Model& model_of_step() const {
    if (pipeline_) return *pipeline_;
    return *model_;
  }
  std::int64_t whole_parameter_count() const;  // of the whole model, where this is a part of one

  // i64 [step_rows] of this rank, and of all ranks, in their order; micro-batches follow each other
  const compute::Tensor& inputs() const { return inputs_; }
  const compute::Tensor& labels() const { return labels_; }
  const compute::Tensor& global_inputs() const { return global_inputs_; }
  const compute::Tensor& global_labels() const { return global_labels_; }
  std::int64_t valid_rows() const { return valid_rows_; }    // labels >= 0 of this rank
  std::int64_t first_token() const { return first_token_; }  // its embedding has a gradient
  // Of experts whose routing is drawn: for DecoderModel::give_experts of a model of `config`, a part of this one's
  // layers and tokens; else empty.
  std::vector<compute::Tensor> drawn_experts_for(const DecoderConfig& config) const;
  void give_experts(std::vector<compute::Tensor> by_layer) { model_->give_experts(std::move(by_layer)); }
  // Of experts that are shared out over ranks, before set-up: by whom they are reached, which outlives the trainer. The
  // loss and the gradients of what all ranks have are then this rank's terms of a sum.
  void share_experts(train::ExpertExchange& ranks) { model_->share_experts(ranks); }
  // Ranges of the gradients that are that sum already.
  std::vector<train::ElementRange> own_expert_ranges() const {
    return models::own_expert_ranges(config_.model, parameters(), expert_parameters());
  }

 private:
  DecoderTrainer(const Host& host, const DecoderTrainerConfig& config, train::BlockParameters* blocks,
                 train::PartExchange* exchange);
  DecoderParameters add_parameters();
  void draw_parameters(std::uint64_t seed) const override;
  std::vector<train::ParameterSet::Id> ids_in_whole_model() const;  // of this rank's parameters
  void require_one_stage() const {
    if (pipeline_) throw Error(ASSAY_INTERNAL, "a step of a model in stages is enqueue_stages(); expected that call");
  }
  void take_input_memory() override;
  void load_inputs() override;
  void load_weights(const train::SafetensorsReader& file) const override;  // published names, too
  void read_inputs();
  void ignore_labels_across_documents();
  std::vector<ExpertParameters> expert_parameters() const;  // by layer that has them
  void take_own_chunks();
  // What the mean loss is over: of ranks that share experts, the tokens of all, each having as many; of terms, and of
  // shared sequences, those of the global batch.
  std::int64_t counted_rows() const {
    return config_.has_terms() ? global_valid_rows_ : valid_rows_ * config_.model.experts.ranks;
  }

  DecoderTrainerConfig config_;
  train::BlockParameters* blocks_;
  train::ParameterSet whole_;                 // the model's parameters, where they come and go
  std::vector<DecoderParameters> chunk_ids_;  // of a model in stages
  DecoderParameters ids_;
  std::optional<DecoderModel> model_;
  std::optional<DecoderPipeline> pipeline_;
  DeviceMemory data_memory_, experts_memory_;
  compute::Tensor inputs_, labels_, global_inputs_, global_labels_;
  compute::Tensor experts_;                              // i32 [step_rows, per_token], where they are drawn
  std::int64_t valid_rows_ = 0, global_valid_rows_ = 0;  // of this rank, and of the global batch
  std::int64_t first_token_ = 0;
};

}  // namespace assay::models
