// Was the timed work the training of the whole decoder, if the ranks share out its parameters? Each rank holds the
// whole model beside its part, and computes it without communication. Each question builds on the one before it:
//   after the last step, whichever kind it was: are loss and gradients finite;
//   does each rank train on its part of the batch, and start from pieces of the whole model's weights;
//   are the loss and the gradients that a timed step leaves those of the whole model (check_gradients);
//   do three steps, as they are timed, move what each rank has, weights and moments, as float64 has it;
//   is what a rank then gathers of the weights what their owners have (take_weights), and are loss and gradients from
//   these weights on, of labels not seen before, again those of the whole model;
//   are the gradients of the whole model right: by another path, and against float64.
// The derived class defines how parameters are shared out.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::verification {

class WholeModelCheck {
 public:
  // `name` is the workload's. `mine`: what this rank has, set up; `whole`: the configuration of the whole model, with
  // the batch of this rank. All must outlive it.
  WholeModelCheck(const Host& host, std::string name, models::DecoderTrainer& mine,
                  const models::DecoderTrainerConfig& whole, const parallel::RankSteps& steps);
  virtual ~WholeModelCheck() = default;

  // Every rank calls it, once. `step` enqueues a step as the timed ones were enqueued. Throws WRONG_RESULT; in part
  // where a rank has no memory for the whole model. Blocks.
  Verified verify(const Launch& launch, const std::function<void()>& step);

 protected:
  // A piece of a parameter that this rank has; tensors are flat.
  struct Piece {
    train::ParameterSet::Id whole;   // the parameter of the whole model
    compute::Tensor value, compute;  // here; `compute`: empty without a copy
    // The same piece of a tensor of the whole parameter, until the next call.
    std::function<compute::Tensor(const compute::Tensor&)> of;
  };

  // Called once, when the whole model is there. What more memory is needed is to be taken here: throws OUT_OF_MEMORY.
  virtual void begin() {}
  virtual std::vector<Piece> pieces() const = 0;
  // `when`: "after 3 steps". Returns a text on the result, with "; " behind it, or throws WRONG_RESULT on every rank.
  virtual Verified check_gradients(const std::string& when) = 0;
  // Fills the whole model's weights with those of the ranks, as products read them. Likewise.
  virtual std::string take_weights(const std::string& when) = 0;
  virtual void after_step(int /*index*/) {}  // of the three

  // For after_step() where ranks have weights in common: the visible rate of rank 0's gradients becomes that of all, so
  // that these weights stay the same. Every rank calls it.
  void take_rate_of_first_rank(int index);

  const Host& host() const { return host_; }
  const std::string& name() const { return name_; }
  models::DecoderTrainer& mine() const { return mine_; }
  models::DecoderTrainer& whole() { return *whole_; }
  const parallel::RankSteps& steps() const { return steps_; }
  // One more step as it was timed, with its update: gradients and loss are those of the weights before it. Waits.
  void take_timed_step() const;
  compute::Backend& backend() const { return mine_.backend(); }
  const models::DecoderConfig& config() const { return mine_.config().model; }

 private:
  void check_start();
  void spread_norms();
  std::string check_updates();
  void take_unseen_labels();

  Host host_;
  std::string name_;
  models::DecoderTrainer& mine_;
  models::DecoderTrainerConfig config_;  // of the whole
  const parallel::RankSteps& steps_;
  std::function<void()> step_;
  std::optional<models::DecoderTrainer> whole_;
};

}  // namespace assay::verification
