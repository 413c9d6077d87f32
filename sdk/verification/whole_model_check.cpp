#include "assay/verification/whole_model_check.hpp"

#include <assay/comm/exchange.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/spread_constants.hpp>
#include <utility>

namespace assay::verification {

namespace op = compute::op;

using compute::Tensor;

WholeModelCheck::WholeModelCheck(const Host& host, std::string name, models::DecoderTrainer& mine,
                                 const models::DecoderTrainerConfig& whole, const parallel::RankSteps& steps)
    : host_(host), name_(std::move(name)), mine_(mine), config_(whole), steps_(steps) {
  config_.train_step = false;
  config_.tuning = compute::Tuning::first_choice;
}

void WholeModelCheck::check_start() {
  spoil_compute_copy(backend(), mine_.parameters());
  mine_.start();
  whole_->start();
  const auto same = [&](const Tensor& found, const Tensor& expected) {
    return hash_of(backend(), found) == hash_of(backend(), expected);
  };
  const train::ParameterSet& all = whole_->parameters();
  for (const Piece& piece : pieces())
    if (!same(piece.value, piece.of(all.value(piece.whole))) ||
        (piece.compute && !same(piece.compute, piece.of(all.compute(piece.whole)))))
      throw Error(ASSAY_WRONG_RESULT, "before the first step rank " + std::to_string(comm::ranks_of(host_).rank) +
                                          "'s part of " + all.all()[piece.whole].name +
                                          " is not that of the whole model");
}

// A norm whose weights are all 1 may be wrong without a trace.
void WholeModelCheck::spread_norms() {
  const train::ParameterSet& all = whole_->parameters();
  spread_constants(backend(), all);
  for (const Piece& piece : pieces())
    if (all.all()[piece.whole].init_std == 0)
      backend().run(op::Copy{.to = piece.value, .from = piece.of(all.value(piece.whole))});
  mine_.parameters().refresh_compute_copy(backend());
}

void WholeModelCheck::take_rate_of_first_rank(int index) {
  const Tensor rate_of_rank = mine_.optimizer().learning_rate();
  float rate = 0;
  backend().download(&rate, rate_of_rank);
  rate = comm::exchange(host_, name_ + ".rate." + std::to_string(index), rate)[0];
  backend().run(op::Fill{.x = rate_of_rank, .value = double{rate}});
}

std::string WholeModelCheck::check_updates() {
  begin_part(host_, "optimizer");
  mine_.start();
  return "each rank's part: " +
         check_updates_of_rank(mine_, steps_, step_, verified_steps, [&](int index) { after_step(index); });
}

// Steps of a visible size have learnt a small batch by heart: probabilities are then nearly those of its labels, and
// their difference, all that gradients are made of, is little but rounding.
void WholeModelCheck::take_unseen_labels() {
  const std::int64_t words = config().vocab_size;
  for (const models::DecoderTrainer* trainer : {&mine_, &whole()}) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(trainer->labels().elements()));
    backend().download(labels.data(), trainer->labels());
    for (std::int64_t& label : labels)
      if (label >= 0) label = (label + (words + 1) / 2) % words;  // others are ignored, and remain so
    backend().upload(trainer->labels(), labels.data());
  }
}

void WholeModelCheck::take_timed_step() const { steps_.repeat_and_wait(mine_, step_); }

Verified WholeModelCheck::verify(const Launch& launch, const std::function<void()>& step) {
  begin_part(host_, "data");
  step_ = step;
  const std::string finite = check_finite(mine_, mine_.model());
  const std::string parts = check_parts(host_, name_ + ".parts", mine_);
  begin_part(host_, "whole_model");
  const bool is_there = make_on_all_ranks(host_, name_ + ".whole", [&] {
    whole_.emplace(host_, config_);
    whole_->setup(launch);
    begin();
  });
  if (!is_there) {
    whole_.reset();  // what there is of it: the next question needs memory, too
    return {finite + parts + check_updates() + "gradients are not compared: there is no memory for the whole model",
            true};
  }
  check_start();
  spread_norms();
  begin_part(host_, "averages");
  const Verified first = check_gradients("at the start");
  const std::string updates = check_updates();
  const std::string after = "after " + std::to_string(verified_steps) + " steps";
  begin_part(host_, "same_weights");
  const std::string weights = take_weights(after);
  take_unseen_labels();
  begin_part(host_, "averages");
  const Verified later = check_gradients(after);
  const Verified own = check_own_model(host_, *whole_);
  return {finite + parts + first.text + updates + weights + later.text + own.text,
          first.in_part || later.in_part || own.in_part};
}

}  // namespace assay::verification
