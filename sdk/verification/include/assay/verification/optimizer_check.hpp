// Does an update of the optimizer follow its formula? Checks samples of every parameter against float64: weights,
// moments and the copy in the activations' format. An optimizer is element-wise, so samples show as much as the whole;
// Muon's matrices are not, and some are checked whole (muon_check.hpp).
//
//   OptimizerCheck check(trainer, optimizer);  // after start()
//   ... a step: forward, backward, update; the gradients stay in their arena ...
//   check.after_step();                        // throws WRONG_RESULT
//   check.set_visible_rate();                  // optional: the next steps' updates show in every format
//   ... another step ...
//   check.after_step();
//   text += check.text();
//
// The first updates of a training are not enough: moments are nearly empty in them, and later effects of an optimizer
// do not show. check_late_updates() puts the state of an advanced training in their place.
#pragma once
#include <assay/compute/inspector.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/train/trainer.hpp>
#include <assay/verification/loss_scale_check.hpp>
#include <assay/verification/muon_check.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::verification {

class OptimizerCheck {
 public:
  // Keeps the state before the next step. The optimizer may be another than the trainer's, with the same parameters; if
  // it is restricted to ranges, only these are checked. Throws WRONG_RESULT if the state after start() is not that of
  // step 0 with the configured learning rate. Checks about `most` elements of the arena, and at least some of each
  // parameter. Blocks.
  static constexpr std::int64_t most_elements = std::int64_t{1} << 21;
  explicit OptimizerCheck(const train::Trainer& trainer, std::int64_t most = most_elements)
      : OptimizerCheck(trainer, trainer.optimizer(), most) {}
  OptimizerCheck(const train::Trainer& trainer, const train::Optimizer& optimizer, std::int64_t most = most_elements);

  // After one step, whose gradients are still in the arena. Blocks.
  void after_step();
  // Changes the learning rate in device memory, until the next reset(): with the configured one a 16-bit weight may not
  // move at all, and decay is less than rounding. The first call, after a step, chooses it by the gradients; later
  // ones, after another start(), set the same. text() states in how many parameters weights have moved.
  void set_visible_rate();
  // Whether the loss scale has skipped the last step.
  bool has_skipped() const { return has_skipped_; }

  // What the next update finds in place of the present state: the state before update number `step` of a training. Its
  // gradients are as large as those in the arena were at the first call, which must follow a step. Moments are drawn on
  // the device; an element has the same moments on every rank that updates it.
  enum class Shows {
    update,  // the rate stays: bias corrections and moments show
    decay    // the rate is such that weights lose a quarter by their decay, if there is one, and moments add little
  };
  void set_late(std::int64_t step, Shows shows);
  // Of an active loss scaler, likewise.
  void set_scaler(double scale, std::int64_t good_steps);

  std::string text() const;  // "optimizer: 2 updates of ... within ..."
  double worst_roundings() const { return worst_roundings_; }
  std::int64_t checked_elements() const;

 private:
  struct Piece {  // of one parameter and of one range
    train::ParameterSet::Id parameter;
    train::ElementRange arena;
    std::size_t begin;  // of its elements among those of all pieces, one behind the other
    bool is_matrix;     // of Muon's
    std::size_t count() const { return static_cast<std::size_t>(arena.elements()); }
  };
  struct Findings {  // of one thread
    double worst_roundings = 0;
    std::vector<train::ParameterSet::Id> moved;
  };
  struct State {  // of all pieces' elements; empty without such a moment
    std::vector<float> values, first, second;
    std::int64_t step = 0;
    ScalerState scaler;
  };
  struct Rule;
  struct Squares {  // sums over the checked elements of a parameter
    double weights = 0, gradients = 0, elements = 0;
    bool tell() const;  // whether there are weights and gradients to compare
  };

  void choose_pieces(std::int64_t most);
  // Of each parameter what lies in one range of the optimizer's: `look(id, range of the arena)`.
  void for_each_part(const std::function<void(train::ParameterSet::Id, const train::ElementRange&)>& look) const;
  std::vector<Squares> squares() const;
  std::vector<double> sizes_of_gradients() const;
  State read() const;
  void keep(State state);
  std::vector<float> with_gaps(std::vector<float> read) const;
  float rate(const compute::Tensor& of) const;
  std::vector<float> read_gradients() const;
  std::vector<float> read(const compute::Tensor& t, const std::vector<compute::ElementSpan>& spans) const;
  void for_each_piece(const std::function<void(const Piece&, Findings&)>& look);
  bool is_same(const Piece& piece, const State& now) const;
  void compare(const Piece& piece, const State& now, const Rule& rule, const std::vector<float>& gradients,
               Findings& findings) const;
  void check_copies(const std::vector<float>& values);
  double choose_visible_rate() const;
  bool shows(double before, double after, double magnitude) const;
  void judge(double error, const Piece& piece, const char* what, double found, double expected,
             Findings& findings) const;

  const train::Trainer& trainer_;
  const train::Optimizer& optimizer_;
  compute::Backend& backend_;
  const train::ParameterSet& set_;
  std::vector<Piece> pieces_;
  std::vector<compute::ElementSpan> arena_spans_, packed_spans_;  // by piece
  std::vector<compute::ElementSpan> second_spans_;                // of the second moment, by piece that is no matrix
  std::optional<MuonCheck> matrices_;
  std::int64_t elements_ = 0;  // that the optimizer updates
  State before_;
  std::vector<bool> moved_;  // by parameter: a weight should have moved by more than it may be off
  std::int64_t number_ = 0;  // of the update that is looked at
  int updates_ = 0, skipped_ = 0;
  bool has_skipped_ = false;
  double worst_roundings_ = 0;
  double visible_rate_ = 0;             // 0: not yet chosen
  std::vector<double> gradient_sizes_;  // by parameter, root mean square; empty: not yet looked at
};

// Updates of an advanced training: one at a step where bias corrections are large, one some thousands of steps on and
// one a million, where weights decay visibly. With loss scaling the scale must grow when its time has come, and a step
// that overflows must then change nothing. `take_step` takes a timed step, and waits; call it after a step that `check`
// has checked, at a visible rate. With several ranks that train one model every one calls it. Returns a text on the
// result, or throws WRONG_RESULT; start() restores the state. Blocks.
std::string check_late_updates(const train::Trainer& trainer, OptimizerCheck& check,
                               const std::function<void()>& take_step);

// All of the above. First two updates by `step`, which enqueues the timed step on this rank (what `run` does), so that
// a missing part shows: from the start, at a loss scale at which its gradients are finite, and the second one at a
// visible rate. Then late ones. Restores the state at the end. Returns the text. Blocks.
std::string check_updates(train::Trainer& trainer, const std::function<void()>& step);

}  // namespace assay::verification
