// Is an update of the optimizer what its formula says? On samples of every parameter: weights, moments and the copy in
// the activations' format, against float64. An optimizer is element-wise, so that samples tell as much as the whole.
//
//   OptimizerCheck check(trainer, optimizer);  // after start()
//   ... a step: forward, backward, update; the gradients stay in their arena ...
//   check.after_step();                        // throws WRONG_RESULT
//   check.set_visible_rate();                  // optional: the next steps' updates show in every format
//   ... another step ...
//   check.after_step();
//   text += check.text();
#pragma once
#include <assay/train/optimizer.hpp>
#include <assay/train/trainer.hpp>
#include <functional>
#include <string>
#include <vector>

namespace assay::verification {

class OptimizerCheck {
 public:
  // Keeps the state before the next step. The optimizer may be another than the trainer's, of the same parameters;
  // where it is restricted to ranges, these alone are looked at. Throws WRONG_RESULT where the state after start() is
  // not that of step 0 with the configured learning rate. Blocks.
  explicit OptimizerCheck(const train::Trainer& trainer) : OptimizerCheck(trainer, trainer.optimizer()) {}
  OptimizerCheck(const train::Trainer& trainer, const train::Optimizer& optimizer);

  // After one step, whose gradients are still in the arena. Blocks.
  void after_step();
  // Changes the learning rate in device memory, until the next reset(): with the configured one a 16-bit weight may not
  // move at all, and decay is less than rounding. The first call, to be made after a step, chooses it by the gradients;
  // later ones, after another start(), set the same. text() says of how many parameters weights have moved.
  void set_visible_rate();

  std::string text() const;  // "optimizer: 2 updates of ... within ..."

 private:
  struct Piece {  // of one parameter and of one range
    train::ParameterSet::Id parameter;
    train::ElementRange arena, packed;
  };
  struct State {  // by piece
    std::vector<std::vector<float>> values, first, second;
    std::int64_t step = 0;
  };
  struct Rule;

  void choose_pieces();
  State read() const;
  float rate() const;
  std::vector<float> download(const compute::Tensor& arena, const train::ElementRange& range) const;
  void compare(const Piece& piece, std::size_t index, const State& now, const Rule& rule,
               const std::vector<float>& gradients);
  void check_copies(const Piece& piece, const std::vector<float>& values);
  double choose_visible_rate() const;
  bool shows(double before, double after, double magnitude) const;
  void judge(double error, const Piece& piece, const char* what, double found, double expected);

  const train::Trainer& trainer_;
  const train::Optimizer& optimizer_;
  compute::Backend& backend_;
  const train::ParameterSet& set_;
  std::vector<Piece> pieces_;
  std::int64_t elements_ = 0;  // that the optimizer updates
  State before_;
  std::vector<bool> moved_;  // by parameter: a weight should have moved by more than it may be off
  int updates_ = 0, skipped_ = 0;
  double worst_roundings_ = 0;
  double visible_rate_ = 0;  // 0: not yet chosen
};

// All of the above: two updates by `step`, which enqueues a whole step on this rank, the one that is timed (what `run`
// does), so that a part that it leaves out is found, from the start at a loss scale at
// which its gradients are finite, the second one at a visible rate. Returns the text. Blocks.
std::string check_updates(train::Trainer& trainer, const std::function<void()>& step);

}  // namespace assay::verification
