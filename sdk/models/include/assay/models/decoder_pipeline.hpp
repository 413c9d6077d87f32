// One rank of a decoder whose layers are shared out over ranks in stages ("pipeline parallel"). The first stage has the
// embedding, the last one the final norm, the head and the loss. A rank's stages are its chunks, each a DecoderModel of
// its own layers; their parameters are in one set.
//
// A chunk works on several micro-batches in turn (train/pipeline_schedule.hpp): for each that is between its forward
// and its backward there is memory for what backward reads of forward. All else of a forward or a backward lies in one
// memory, which all chunks share. Messages have separate memory, so that what comes does not wait for a place, and what
// goes is not overwritten.
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/models/decoder.hpp>
#include <assay/models/stage_layers.hpp>
#include <assay/train/pipeline_schedule.hpp>
#include <assay/train/stage_exchange.hpp>
#include <assay/train/step_marks.hpp>
#include <cstdint>
#include <memory>
#include <vector>

namespace assay::models {

// Throws assay::Error(UNSUPPORTED) where config.stages cannot share this model, with the remedy.
void validate_stages(const DecoderConfig& config);

// The model that a chunk of this rank is.
DecoderConfig config_of_chunk(const DecoderConfig& config, std::int64_t chunk);
// The parameters of the rank's chunks, by chunk.
std::vector<DecoderParameters> add_chunk_parameters(train::ParameterSet& set, const DecoderConfig& config);
// Which rank has it: by the id of the whole model's parameters.
std::vector<std::int64_t> ranks_of_parameters(const DecoderConfig& config, const train::ParameterSet& whole);
train::PipelineShape pipeline_shape(const DecoderConfig& config);

class DecoderPipeline final : public train::Model {
 public:
  // The parameters must outlive it.
  DecoderPipeline(const DecoderConfig& config, const train::ParameterSet& set,
                  const std::vector<DecoderParameters>& chunks);

  // Enqueues forward and backward of all micro-batches, with the phases forward, backward and communication_wait. ids
  // and labels: i64 [step_rows], the first and the last stage read them. Without `ranks` nothing is sent, and what was
  // received before is read. `listener`, if there is one, hears of the last backward where the rank has one stage.
  void enqueue(compute::Backend& b, const compute::Tensor& ids, const compute::Tensor& labels, std::int64_t valid_rows,
               train::StageExchange* ranks, const train::StepMarks& marks,
               train::GradientListener* listener = nullptr) const;

  void initialize(compute::Backend& b) const override;
  compute::Tensor loss() const override { return plan_[loss_]; }  // of ranks without the head 0
  // Bytes of a rank's messages in a step, as sent.
  std::uint64_t sent_bytes() const;
  const train::PipelineSchedule& schedule() const { return schedule_; }

 private:
  using Id = train::BufferPlan::Id;
  struct InFlight {
    std::vector<train::StageExchange::Ticket> received, sent;  // by place
    std::size_t next_send = 0;                                 // the place of the next message that goes
  };

  bool has_head() const { return config_.stages.rank + 1 == config_.stages.ranks; }
  DecoderModel& bound(std::int64_t chunk, std::int64_t place) const;
  void work(compute::Backend& b, const train::PipelineAction& action, const compute::Tensor& ids,
            const compute::Tensor& labels, std::int64_t valid_rows, train::StageExchange* ranks,
            const train::StepMarks& marks, train::GradientListener* listener, const InFlight& messages) const;

  DecoderConfig config_;
  train::PipelineSchedule schedule_;
  std::vector<std::unique_ptr<DecoderModel>> chunks_;
  std::vector<std::vector<Id>> activations_;  // by chunk and place
  Id shared_ = 0;                             // what is alive within a forward or a backward alone
  std::vector<Id> received_, sent_;           // by place
  Id loss_ = 0;
};

}  // namespace assay::models
