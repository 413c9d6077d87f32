// A whole decoder whose experts are shared over ranks against one with all experts and all tokens: loss and gradients.
#include <gtest/gtest.h>

#include <assay/models/decoder.hpp>
#include <assay/parallel/expert_ranks.hpp>
#include <assay/parallel/gradient_average.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "gloo_ranks.hpp"

namespace assay::models {
namespace {

using compute::DType;
using compute::Tensor;
using test::CpuDevice;
using Floats = std::vector<float>;
using Tokens = std::vector<std::int64_t>;

DecoderConfig small_model() {
  DecoderConfig c;
  c.vocab_size = 61, c.d_model = 24, c.heads = 3, c.kv_heads = 1, c.d_ff = 32, c.layers = 3;
  c.batch_size = 2, c.context_length = 7;
  c.experts.count = 8, c.experts.per_token = 3, c.experts.d_ff = 20, c.experts.first_dense_layers = 1;
  c.experts.z_coefficient = 0.01;  // a mean over tokens; the other loss is none
  return c;
}

// A model with its memory, on one rank of some, or on one that has the experts and the tokens of all of them.
class Model {
 public:
  Model(const DecoderConfig& config, std::int64_t first_rank, std::int64_t ranks_here, const Tokens& ids,
        const Tokens& labels)
      : set_(config.precision),
        ids_(add_decoder_parameters(set_, config)),
        model_(config, set_, ids_),
        tokens_(device_.tensor(DType::i64, {config.step_rows()}, ids)),
        labels_(device_.tensor(DType::i64, {config.step_rows()}, labels)) {
    set_.bind(device_.take(set_.value_bytes()), nullptr, device_.take(set_.gradient_bytes()));
    model_.bind(set_.all_gradients().data, device_.take(model_.activation_bytes()));
    std::vector<ExpertParameters> with_experts;
    for (std::int64_t l = config.experts.first_dense_layers; l < config.layers; ++l)
      with_experts.push_back(ids_.layers[static_cast<std::size_t>(l)].experts);
    own_ = own_expert_ranges(config, set_, with_experts);
    set_.initialize(backend(), 5);
    ExpertsConfig of_a_rank = config.experts;
    of_a_rank.ranks *= ranks_here;
    draw_experts(backend(), set_, with_experts, of_a_rank, first_rank, ranks_here, 5);
    model_.initialize(backend());
  }
  compute::Backend& backend() { return device_.backend(); }
  DecoderModel& model() { return model_; }
  const train::ParameterSet& set() const { return set_; }
  const std::vector<train::ElementRange>& own() const { return own_; }
  template <class Before>
  void step(std::int64_t valid_rows, Before&& when_prepared) {
    const auto step = [&] { model_.whole_step(backend(), tokens_, labels_, valid_rows); };
    device_.prepare(step);
    when_prepared();
    step();
    backend().synchronize();
  }
  Floats values(const Tensor& t) { return device_.values(t); }
  float loss() { return values(model_.loss())[0]; }
  std::map<std::string, Floats> gradients() {
    std::map<std::string, Floats> all;
    for (std::size_t i = 0; i < set_.all().size(); ++i) all[set_.all()[i].name] = values(set_.gradient(i));
    return all;
  }

 private:
  CpuDevice device_;
  train::ParameterSet set_;
  DecoderParameters ids_;
  DecoderModel model_;
  Tensor tokens_, labels_;
  std::vector<train::ElementRange> own_;
};

void expect_near(const Floats& got, const float* expected, const std::string& what) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = double(got[i]) - double(expected[i]);
    difference += d * d, norm += double(expected[i]) * double(expected[i]);
  }
  EXPECT_GT(norm, 0) << what;
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << what;
}

void expect_what_one_rank_has(const DecoderConfig& of_a_rank, std::int32_t ranks) {
  DecoderConfig whole = of_a_rank;
  whole.batch_size *= ranks;
  std::mt19937 random(9);
  std::uniform_int_distribution<std::int64_t> draw(0, whole.vocab_size - 1);
  Tokens ids(static_cast<std::size_t>(whole.rows())), labels(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = draw(random), labels[i] = draw(random);
  labels[3] = -100;
  const std::int64_t valid = whole.rows() - 1;
  Model one(whole, 0, ranks, ids, labels);
  one.step(valid, [] {});
  const std::map<std::string, Floats> expected = one.gradients();
  const float expected_loss = one.loss();

  test::on_ranks(ranks, [&](comm::Communicator& c, const assay_comm&) {
    DecoderConfig config = of_a_rank;
    config.experts.rank = c.rank(), config.experts.ranks = ranks, config.experts.capacity_factor = ranks;
    const auto own = [&](const Tokens& all) {
      const auto n = static_cast<std::ptrdiff_t>(all.size()) / ranks;
      return Tokens(all.begin() + c.rank() * n, all.begin() + (c.rank() + 1) * n);
    };
    Model mine(config, c.rank(), 1, own(ids), own(labels));
    EXPECT_EQ(whole_parameters(config, mine.set().parameter_count()), one.set().parameter_count());
    parallel::ExpertRanks exchange({.rank = c.rank(),
                                    .ranks = ranks,
                                    .experts = config.experts.count,
                                    .rows = config.rows() * config.experts.per_token,
                                    .capacity = expert_capacity(config.rows(), config.experts.per_token, ranks, ranks),
                                    .layers = static_cast<std::size_t>(config.expert_layers())});
    mine.model().share_experts(exchange);
    mine.step(valid, [&] { exchange.use(&c); });
    parallel::GradientAverage sums(mine.set(), mine.own(), 1 << 12);
    sums.use(c);
    sums.begin_step();
    sums.listener()->gradients_ready(mine.set().all().size());
    sums.finish();
    Floats loss{mine.loss()};
    const Tensor loss_tensor(loss.data(), DType::f32, {1});
    c.wait(c.all_reduce(loss_tensor, loss_tensor, comm::Reduction::sum));
    EXPECT_NEAR(loss[0], expected_loss, 1e-5F);
    for (const auto& [name, got] : mine.gradients()) {
      const Floats& all = expected.at(name);
      const bool is_own = name.find(".experts.") != std::string::npos;
      ASSERT_EQ(all.size(), got.size() * static_cast<std::size_t>(is_own ? ranks : 1)) << name;
      expect_near(got, all.data() + (is_own ? static_cast<std::size_t>(c.rank()) * got.size() : 0),
                  "rank " + std::to_string(c.rank()) + ", " + name);
    }
  });
}

TEST(SharedExperts, TrainWhatOneRankDoes) {
  for (const std::int32_t ranks : {2, 4}) expect_what_one_rank_has(small_model(), ranks);
}

TEST(SharedExperts, InOtherForms) {
  DecoderConfig unfused = small_model();
  unfused.fused = false;
  unfused.experts.shared_d_ff = 16;
  expect_what_one_rank_has(unfused, 2);
  DecoderConfig with_biases = small_model();
  with_biases.experts.biases = true;
  with_biases.experts.unit = {.alpha = 1.702F, .limit = 1.0F, .offset = 1.0F};
  with_biases.keep_outputs = true;
  expect_what_one_rank_has(with_biases, 2);
}

}  // namespace
}  // namespace assay::models
