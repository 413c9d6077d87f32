// The state of a training that has come far, and what the next updates make of it.
#include <assay/workload/text.hpp>
#include <cmath>

#include "assay/verification/optimizer_check.hpp"

namespace assay::verification {

namespace op = compute::op;

using compute::Tensor;

namespace {

// At the first one AdamW's second moment has a thirtieth of what it will have, and its correction is large; at the
// second one that correction still shows; at the last one there is none left. An odd one, one that is a multiple of
// many numbers, and one that is of none: what is done in some steps alone is done in one of them, or left out.
constexpr std::int64_t early = 37, later = 3'000, last = 1'000'003;

constexpr double decayed_share = 0.25;  // of a weight, in one update: it shows in every format

}  // namespace

// Where a gradient is zero, that of an embedding whose tokens do not occur, the size of the others.
std::vector<double> OptimizerCheck::sizes_of_gradients() const {
  constexpr double otherwise = 1e-3;
  const std::vector<Squares> of = squares();
  double squares = 0, elements = 0;
  for (const Squares& one : of)
    if (one.tell()) squares += one.gradients, elements += one.elements;
  const double mean = elements > 0 ? std::sqrt(squares / elements) : otherwise;
  std::vector<double> sizes;
  for (const Squares& one : of) sizes.push_back(one.tell() ? std::sqrt(one.gradients / one.elements) : mean);
  return sizes;
}

// By the sums that moments are: over t steps the first one has come to (1 - beta1^t) of the mean of gradients, and the
// second one to (1 - beta2^t) of that of their squares. The mean of gradients is less than one of them.
void OptimizerCheck::set_late(std::int64_t step, Shows shows) {
  constexpr double mean_share = 0.5, spread = 0.125;  // numbers are drawn within 5.8 deviations: squares are positive
  constexpr std::uint64_t seed = 0x1a7e;
  if (gradient_sizes_.empty()) gradient_sizes_ = sizes_of_gradients();
  const train::OptimizerConfig& config = optimizer_.config();
  const bool decays = shows == Shows::decay && config.weight_decay > 0;
  const double rate = decayed_share / double{config.weight_decay};
  const auto taken = static_cast<double>(step - 1);
  const bool is_sgd = config.name == "sgd";
  const double first_share = is_sgd ? 1 : 1 - std::pow(double{config.beta1}, taken);
  const double second_share = is_sgd ? 1 : 1 - std::pow(double{config.beta2}, taken);
  for_each_part([&](train::ParameterSet::Id id, const train::ElementRange& part) {
    const double size = gradient_sizes_[id];
    // So large that an update at this rate moves no weight by more than about 1/64.
    const double root = decays ? 64 * rate * size : size;
    const bool is_matrix = matrices_ && !train::matrices_of(set_.all()[id]).empty();
    const auto draw = [&](std::size_t index, double mean, double deviation) {
      const Tensor moment = optimizer_.moment(index);
      if (!moment || (is_matrix && index == 1)) return;
      const train::ElementRange packed = optimizer_.packed(part, index);
      backend_.run(op::RandomNormal{.x = moment.slice(0, packed.begin, packed.elements()),
                                    .seed = seed + index,
                                    .stream = static_cast<std::uint64_t>(part.begin),
                                    .mean = static_cast<float>(mean),
                                    .std = static_cast<float>(deviation)});
    };
    draw(0, 0, mean_share * first_share * size);
    draw(1, second_share * root * root, spread * second_share * root * root);
  });
  const std::int64_t before = step - 1;
  backend_.upload(optimizer_.step_number(), &before);
  if (decays) backend_.run(op::Fill{.x = optimizer_.learning_rate(), .value = rate});
  backend_.synchronize();
  keep(read());
}

void OptimizerCheck::set_scaler(double scale, std::int64_t good_steps) {
  const train::LossScaler& scaler = trainer_.scaler();
  backend_.run(op::Fill{.x = scaler.tensors().scale, .value = scale});
  backend_.upload(scaler.good_steps(), &good_steps);
  backend_.synchronize();
  before_.scaler = scaler_state(trainer_);
}

std::string check_late_updates(const train::Trainer& trainer, OptimizerCheck& check,
                               const std::function<void()>& take_step) {
  constexpr double overflowing = 0x1p60;
  constexpr int tries = 20;
  const bool scales = trainer.scaler().active();
  const double start_scale = trainer.scaler().scale_of_gradients(trainer.backend());
  const auto take = [&](std::int64_t step, OptimizerCheck::Shows shows, std::int64_t good_steps) {
    double scale = start_scale;
    // The weights have moved: gradients may be larger than at the scale that was found for the first ones.
    for (int i = 0; i < tries; ++i, scale /= 4) {
      check.set_late(step, shows);
      if (scales) check.set_scaler(scale, good_steps);
      take_step();
      check.after_step();
      if (!check.has_skipped()) return;
    }
    throw Error(ASSAY_WRONG_RESULT, "at update " + std::to_string(step) +
                                        " gradients overflow at every loss scale down to " + workload::number(scale));
  };
  std::string text = "updates " + std::to_string(early) + ", " + std::to_string(later) + " and " +
                     std::to_string(last) + " likewise, of " + std::to_string(check.checked_elements()) + " elements";
  take(early, OptimizerCheck::Shows::update, ScalerState::growth_interval - 2);
  take(later, OptimizerCheck::Shows::update, ScalerState::growth_interval - 1);
  if (scales) {
    check.set_late(last, OptimizerCheck::Shows::update);
    check.set_scaler(overflowing, 1);
    take_step();
    check.after_step();
    if (!check.has_skipped())
      throw Error(ASSAY_WRONG_RESULT, "no gradient overflows at a loss scale of " + workload::number(overflowing));
    text += ", the loss scale grows after " + std::to_string(ScalerState::growth_interval) +
            " steps, and one that overflows later changes nothing";
  }
  take(last, OptimizerCheck::Shows::decay, 0);
  return text + ", the worst " + workload::number(check.worst_roundings(), "%.2g") + " roundings; ";
}

}  // namespace assay::verification
