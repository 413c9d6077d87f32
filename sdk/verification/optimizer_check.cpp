#include "assay/verification/optimizer_check.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <assay/compute/host_threads.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "roundings.hpp"

namespace assay::verification {

namespace op = compute::op;

using compute::DType;
using compute::Tensor;

namespace {

// Elements that are looked at of each parameter at least.
constexpr std::int64_t run = 256;
constexpr std::int64_t least_of_parameter = 4 * run;

// What an update may be off by, in roundings of fp32 to the size of what is added up. Two to three are found.
constexpr double allowed_roundings = 8;
constexpr double least_normal = 0x1p-126;  // below it a device may flush to zero

// How far `found` is from `expected` beyond the rounding of its format, in roundings of fp32 of `magnitude`.
double roundings(double found, double expected, double magnitude, DType dtype) {
  const double beyond = std::abs(found - expected) - half_unit(dtype, expected);
  if (!(beyond > 0)) return std::isnan(beyond) ? beyond : 0;
  return beyond / (fp32_rounding * (magnitude + std::abs(expected)) + least_normal);
}

}  // namespace

// What one step does to an element, as torch.optim.AdamW and SGD say it.
struct OptimizerCheck::Rule {
  const train::OptimizerConfig& config;
  double rate, unscale;
  std::int64_t step;  // counted from 1
  bool is_sgd = config.name == "sgd";
  double correction1 = 1 - std::pow(double{config.beta1}, static_cast<double>(step));
  double correction2 = 1 - std::pow(double{config.beta2}, static_cast<double>(step));

  struct Element {
    double value = 0, first = 0, second = 0;
  };
  struct Update {
    Element now, magnitude;  // magnitude: of the terms, before they cancel
  };

  Update operator()(const Element& old, double gradient) const {
    return is_sgd ? sgd(old, gradient * unscale) : adamw(old, gradient * unscale);
  }

  // Of Muon's matrices the momentum alone is element-wise.
  Update momentum_of_matrix(const Element& old, double gradient) const {
    const double kept = config.muon.momentum, g = gradient * unscale;
    Update u;
    u.now.first = kept * old.first + (1 - kept) * g;
    u.magnitude.first = std::abs(old.first) + std::abs(g);
    return u;
  }

  Update adamw(const Element& old, double g) const {
    const double beta1 = config.beta1, beta2 = config.beta2;
    Update u;
    u.now.first = beta1 * old.first + (1 - beta1) * g;
    u.now.second = beta2 * old.second + (1 - beta2) * g * g;
    u.magnitude.first = std::abs(old.first) + std::abs(g);
    u.magnitude.second = u.now.second;
    const double root = std::sqrt(u.now.second / correction2) + double{config.eps};
    const double factor = rate / correction1 / root;
    u.now.value = old.value * (1 - rate * double{config.weight_decay}) - factor * u.now.first;
    u.magnitude.value = std::abs(old.value) + factor * u.magnitude.first;
    return u;
  }

  Update sgd(const Element& old, double gradient) const {
    const double decay = old.value * double{config.weight_decay};
    const double g = gradient + decay;
    const double momentum = config.momentum != 0 && step > 1 ? double{config.momentum} * old.first : 0;
    Update u;
    u.now.first = momentum + g;
    u.magnitude.first = std::abs(momentum) + std::abs(gradient) + std::abs(decay);
    u.now.value = old.value - rate * u.now.first;
    u.magnitude.value = std::abs(old.value) + rate * u.magnitude.first;
    return u;
  }
};

OptimizerCheck::OptimizerCheck(const train::Trainer& trainer, const train::Optimizer& optimizer, std::int64_t most)
    : trainer_(trainer),
      optimizer_(optimizer),
      backend_(trainer.backend()),
      set_(trainer.parameters()),
      moved_(set_.all().size()) {
  if (!trainer_.has_update())
    throw Error(ASSAY_UNSUPPORTED, "the trainer has no optimizer to check: its configuration says train_step = false");
  if (optimizer_.muon()) matrices_.emplace(trainer_, optimizer_);
  choose_pieces(most);
  backend_.synchronize();
  keep(read());
  const auto configured = static_cast<float>(optimizer_.config().lr);
  if (before_.step != 0 || rate(optimizer_.learning_rate()) != configured)
    throw Error(ASSAY_WRONG_RESULT, "before the first update the optimizer is at step " + std::to_string(before_.step) +
                                        " with learning rate " +
                                        workload::number(double{rate(optimizer_.learning_rate())}, "%.9g") +
                                        ", expected step 0 and " + workload::number(double{configured}, "%.9g"));
  if (const compute::Tensor of_matrices = optimizer_.matrix_learning_rate()) {
    const auto of_config = static_cast<float>(optimizer_.config().muon.lr);
    if (const float found = rate(of_matrices); found != of_config)
      throw Error(ASSAY_WRONG_RESULT, "before the first update the learning rate of matrices is " +
                                          workload::number(double{found}, "%.9g") + ", expected " +
                                          workload::number(double{of_config}, "%.9g"));
  }
  check_copies(before_.values);
}

// What the next update begins with.
void OptimizerCheck::keep(State state) {
  before_ = std::move(state);
  if (matrices_) matrices_->keep();
}

// Before the first update too: what a step reads is the weight, rounded to the activations' format.
void OptimizerCheck::check_copies(const std::vector<float>& values) {
  const std::vector<float> copies = read(set_.compute_copy(), arena_spans_);
  if (copies.empty()) return;
  for_each_piece([&](const Piece& piece, Findings& findings) {
    for (std::size_t i = piece.begin; i < piece.begin + piece.count(); ++i)
      judge(roundings(double{copies[i]}, double{values[i]}, 0, set_.policy().activation), piece, "a weight's copy",
            double{copies[i]}, double{values[i]}, findings);
  });
}

// Over all processors; what is found is put together.
void OptimizerCheck::for_each_piece(const std::function<void(const Piece&, Findings&)>& look) {
  constexpr std::int64_t pieces_of_a_thread = 64;
  std::mutex adding;
  compute::in_parts(static_cast<std::int64_t>(pieces_.size()), pieces_of_a_thread,
                    [&](std::int64_t begin, std::int64_t end) {
                      Findings findings;
                      for (std::int64_t i = begin; i < end; ++i) look(pieces_[static_cast<std::size_t>(i)], findings);
                      const std::scoped_lock lock(adding);
                      worst_roundings_ = compute::worse(worst_roundings_, findings.worst_roundings);
                      for (const train::ParameterSet::Id id : findings.moved) moved_[id] = true;
                    });
}

void OptimizerCheck::for_each_part(
    const std::function<void(train::ParameterSet::Id, const train::ElementRange&)>& look) const {
  for (train::ParameterSet::Id id = 0; id < set_.all().size(); ++id) {
    const train::Parameter& p = set_.all()[id];
    for (const train::ElementRange& owned : optimizer_.ranges()) {
      const train::ElementRange part{std::max(owned.begin, p.offset), std::min(owned.end, p.offset + p.elements())};
      if (part.begin < part.end) look(id, part);
    }
  }
}

void OptimizerCheck::choose_pieces(std::int64_t most_of_arena) {
  const double share = static_cast<double>(most_of_arena) / static_cast<double>(set_.arena_elements());
  for_each_part([&](train::ParameterSet::Id id, const train::ElementRange& part) {
    const auto of_parameter = static_cast<double>(set_.all()[id].elements());
    const auto most = std::max(least_of_parameter, static_cast<std::int64_t>(share * of_parameter));
    elements_ += part.elements();
    for (const compute::ElementSpan& piece : compute::spread_spans(part.elements(), most, run)) {
      const train::ElementRange arena{part.begin + piece.first, part.begin + piece.first + piece.count};
      const train::ElementRange packed = optimizer_.packed(arena);
      const bool is_matrix = matrices_ && !train::matrices_of(set_.all()[id]).empty();
      pieces_.push_back({id, arena, static_cast<std::size_t>(checked_elements()), is_matrix});
      arena_spans_.push_back({arena.begin, arena.elements()});
      packed_spans_.push_back({packed.begin, packed.elements()});
      if (!is_matrix) second_spans_.push_back({optimizer_.packed(arena, 1).begin, packed.elements()});
    }
  });
}

std::vector<float> OptimizerCheck::read(const Tensor& t, const std::vector<compute::ElementSpan>& spans) const {
  return t ? compute::inspector_of(backend_)->read(t, spans) : std::vector<float>();
}

// Of the pieces, in their order, wherever a gradient lies.
std::vector<float> OptimizerCheck::read_gradients() const {
  if (set_.dropped_gradients().empty()) return read(set_.all_gradients(), arena_spans_);
  std::vector<float> all;
  for (std::size_t i = 0; i < pieces_.size();) {
    const train::ParameterSet::Id id = pieces_[i].parameter;
    std::vector<compute::ElementSpan> spans;
    for (; i < pieces_.size() && pieces_[i].parameter == id; ++i)
      spans.push_back({arena_spans_[i].first - set_.all()[id].offset, arena_spans_[i].count});
    const std::vector<float> of_parameter = read(set_.gradient(id).flat(), spans);
    all.insert(all.end(), of_parameter.begin(), of_parameter.end());
  }
  return all;
}

OptimizerCheck::State OptimizerCheck::read() const {
  State state;
  backend_.download(&state.step, optimizer_.step_number());
  state.scaler = scaler_state(trainer_);
  state.values = read(set_.all_values(), arena_spans_);
  state.first = read(optimizer_.moment(0), packed_spans_);
  state.second = with_gaps(read(optimizer_.moment(1), second_spans_));
  return state;
}

// What was read of the pieces that are no matrices, each in its place among those of all.
std::vector<float> OptimizerCheck::with_gaps(std::vector<float> read) const {
  if (read.empty() || !matrices_) return read;
  std::vector<float> all;
  auto from = read.begin();
  for (const Piece& piece : pieces_) {
    const auto count = static_cast<std::ptrdiff_t>(piece.count());
    if (piece.is_matrix)
      all.insert(all.end(), piece.count(), 0.0F);
    else
      all.insert(all.end(), from, from + count), from += count;
  }
  return all;
}

float OptimizerCheck::rate(const Tensor& of) const {
  float rate = 0;
  backend_.download(&rate, of);
  return rate;
}

void OptimizerCheck::after_step() {
  backend_.synchronize();
  State now = read();
  const std::vector<float> gradients = read_gradients();
  const bool all_finite = std::all_of(gradients.begin(), gradients.end(), [](float g) { return std::isfinite(g); });
  ++updates_;
  // With loss scaling a step whose gradients are not finite changes nothing. Samples may not have the one that is not.
  float nonfinite = 0;
  if (trainer_.scaler().active()) backend_.download(&nonfinite, trainer_.scaler().tensors().nonfinite);
  const bool skips = has_skipped_ = trainer_.scaler().active() && (nonfinite > 0 || !all_finite);
  if (skips) ++skipped_;
  const std::int64_t expected_step = skips ? before_.step : before_.step + 1;
  if (now.step != expected_step)
    throw Error(ASSAY_WRONG_RESULT, "after an update the optimizer is at step " + std::to_string(now.step) +
                                        ", expected " + std::to_string(expected_step));
  number_ = before_.step + 1;
  if (const ScalerState expected = before_.scaler.after_step(skips);
      trainer_.scaler().active() && now.scaler != expected)
    throw Error(ASSAY_WRONG_RESULT, std::string("after a step ") +
                                        (skips ? "whose gradients overflow" : "whose gradients are finite") +
                                        " the loss scaler has " + now.scaler.text() + ", expected " + expected.text());
  const Rule rule{optimizer_.config(), double{rate(optimizer_.learning_rate())},
                  1 / trainer_.scaler().scale_of_gradients(backend_), now.step};
  if (skips) {
    for (const Piece& piece : pieces_)
      if (!is_same(piece, now))
        throw Error(ASSAY_WRONG_RESULT, "a step that the loss scale skips has changed " +
                                            set_.all()[piece.parameter].name + " or its moments");
    if (matrices_) matrices_->require_same();
  } else {
    check_copies(now.values);
    for_each_piece([&](const Piece& piece, Findings& findings) { compare(piece, now, rule, gradients, findings); });
    if (matrices_) matrices_->compare(double{rate(optimizer_.matrix_learning_rate())}, rule.unscale, now.step);
  }
  keep(std::move(now));
}

bool OptimizerCheck::is_same(const Piece& piece, const State& now) const {
  const auto same = [&](const std::vector<float>& x, const std::vector<float>& y) {
    const auto first = static_cast<std::ptrdiff_t>(piece.begin),
               last = first + static_cast<std::ptrdiff_t>(piece.count());
    return x.empty() || std::equal(x.begin() + first, x.begin() + last, y.begin() + first);
  };
  return same(now.values, before_.values) && same(now.first, before_.first) && same(now.second, before_.second);
}

void OptimizerCheck::compare(const Piece& piece, const State& now, const Rule& rule,
                             const std::vector<float>& gradients, Findings& findings) const {
  const workload::PrecisionPolicy& policy = set_.policy();
  bool has_moved = false;
  for (std::size_t i = piece.begin; i < piece.begin + piece.count(); ++i) {
    const Rule::Element old{double{before_.values[i]}, before_.first.empty() ? 0 : double{before_.first[i]},
                            before_.second.empty() ? 0 : double{before_.second[i]}};
    const Rule::Update expected =
        piece.is_matrix ? rule.momentum_of_matrix(old, double{gradients[i]}) : rule(old, double{gradients[i]});
    const auto check = [&](const char* what, double found, double should_be, double magnitude, DType dtype) {
      judge(roundings(found, should_be, magnitude, dtype), piece, what, found, should_be, findings);
    };
    const Rule::Element &right = expected.now, &magnitude = expected.magnitude;
    if (!now.first.empty()) check("a first moment", double{now.first[i]}, right.first, magnitude.first, policy.state);
    if (piece.is_matrix) continue;
    has_moved = has_moved || shows(old.value, right.value, magnitude.value);
    check("a weight", double{now.values[i]}, right.value, magnitude.value, policy.parameter);
    if (!now.second.empty())
      check("a second moment", double{now.second[i]}, right.second, magnitude.second, policy.state);
  }
  if (has_moved) findings.moved.push_back(piece.parameter);
}

// Whether a weight that had stayed where it was would be found: an update of half of this would be, too.
bool OptimizerCheck::shows(double before, double after, double magnitude) const {
  const double allowed =
      half_unit(set_.policy().parameter, after) + allowed_roundings * fp32_rounding * (magnitude + std::abs(after));
  return std::abs(after - before) > 2 * allowed;
}

void OptimizerCheck::judge(double error, const Piece& piece, const char* what, double found, double expected,
                           Findings& findings) const {
  findings.worst_roundings = compute::worse(findings.worst_roundings, error);
  if (error <= allowed_roundings) return;
  throw Error(ASSAY_WRONG_RESULT, "after update " + std::to_string(number_) + " " + what + " of " +
                                      set_.all()[piece.parameter].name + " is " + workload::number(found, "%.9g") +
                                      ", in float64 " + workload::number(expected, "%.9g") + ": " +
                                      workload::number(error) + " roundings of fp32 apart (tolerance " +
                                      workload::number(allowed_roundings) + ")");
}

// AdamW moves every element by about the rate. SGD moves it by the gradient, whose size differs by orders of magnitude
// from model to model, and from the large weights of norms to those of matrices. So the rate moves the typical weight
// of every parameter by a part of itself, unless it would move those of another by more than they are: a later step
// would find no numbers.
double OptimizerCheck::choose_visible_rate() const {
  constexpr double adamw_rate = 0x1p-7, sgd_share = 0x1p-5, most_share = 1;
  if (optimizer_.config().name != "sgd") return adamw_rate;
  double needed = 0, most = std::numeric_limits<double>::infinity();
  for (const Squares& one : squares()) {
    if (!one.tell()) continue;
    const double all = std::sqrt(one.weights / one.gradients);
    needed = std::max(needed, sgd_share * all);
    most = std::min(most, most_share * all);
  }
  return needed > 0 ? std::min(needed, most) : adamw_rate;
}

bool OptimizerCheck::Squares::tell() const { return std::isfinite(gradients) && gradients > 0 && weights > 0; }

std::vector<OptimizerCheck::Squares> OptimizerCheck::squares() const {
  std::vector<Squares> of(set_.all().size());
  const double unscale = 1 / trainer_.scaler().scale_of_gradients(backend_);
  const std::vector<float> gradients = read_gradients();
  for (const Piece& piece : pieces_) {
    Squares& one = of[piece.parameter];
    for (std::size_t i = piece.begin; i < piece.begin + piece.count(); ++i) {
      one.weights += double{before_.values[i]} * double{before_.values[i]};
      one.gradients += double{gradients[i]} * double{gradients[i]} * unscale * unscale;
    }
    one.elements += static_cast<double>(piece.count());
  }
  return of;
}

void OptimizerCheck::set_visible_rate() {
  if (visible_rate_ == 0) visible_rate_ = choose_visible_rate();
  backend_.run(op::Fill{.x = optimizer_.learning_rate(), .value = visible_rate_});
  // The weights of a matrix that is made orthogonal are about one over the root of its longer side.
  if (const Tensor of_matrices = optimizer_.matrix_learning_rate())
    backend_.run(op::Fill{.x = of_matrices, .value = 0x1p-4});
}

std::int64_t OptimizerCheck::checked_elements() const {
  return pieces_.empty() ? 0 : static_cast<std::int64_t>(pieces_.back().begin + pieces_.back().count());
}

std::string OptimizerCheck::text() const {
  const std::int64_t checked = checked_elements();
  std::set<train::ParameterSet::Id> parameters, no_matrices;
  for (const Piece& piece : pieces_) {
    parameters.insert(piece.parameter);
    if (!piece.is_matrix) no_matrices.insert(piece.parameter);
  }
  std::string text =
      "optimizer: " + std::to_string(updates_) + (updates_ == 1 ? " update" : " updates") + " of " +
      std::to_string(checked) + " of " + std::to_string(elements_) + " elements of " +
      std::to_string(parameters.size()) + " parameters within " + workload::number(worst_roundings_, "%.2g") +
      " roundings of float64 (tolerance " + workload::number(allowed_roundings) + "), weights of " +
      std::to_string(std::count(moved_.begin(), moved_.end(), true)) + " of " +
      (matrices_ ? "the " + std::to_string(no_matrices.size()) + " that are no matrices" : std::string("them")) +
      " moved by more than that";
  if (skipped_ > 0) text += ", " + std::to_string(skipped_) + " of them skipped";
  return text + "; " + (matrices_ ? matrices_->text() : "");
}

std::string check_updates(train::Trainer& trainer, const std::function<void()>& step) {
  const std::string skipped = check_skipped_step(trainer, step);
  const double loss_scale = find_finite_gradients(trainer, step);
  spoil_compute_copy(trainer.backend(), trainer.parameters());
  trainer.start(loss_scale);
  OptimizerCheck check(trainer);
  const auto take_step = [&] {
    spoil_gradients(trainer.backend(), trainer.parameters());
    step();
  };
  for (int i = 0; i < 2; ++i) {
    take_step();
    check.after_step();
    check.set_visible_rate();
  }
  const std::string text = skipped + check.text() + check_late_updates(trainer, check, take_step);
  trainer.start(loss_scale);
  return text;
}

}  // namespace assay::verification
