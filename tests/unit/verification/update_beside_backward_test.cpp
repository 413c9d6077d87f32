// An update beside backward on a device of two lanes, whose side lane may run as early or as late as it likes: where it
// does all at once, right when it may begin, and where it does nothing until it must have done all, the weights are
// those of an update after backward, to the bit.
#include <assay/train/training_step.hpp>
#include <assay/train/update_beside_backward.hpp>

#include <cstddef>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

class EarlySide : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  static inline int updates_on_side = 0, operations_since = 0;  // of the main lane, after the first of these
  void begin_side() override { is_side_ = true; }
  void end_side() override { is_side_ = false; }
  void run_any(const compute::AnyOperation& operation) override {
    if (is_side_ && executes()) ++updates_on_side;
    if (!is_side_ && executes() && updates_on_side > 0) ++operations_since;
    real().run_any(operation);
  }

 protected:
  bool is_side() const { return is_side_; }

 private:
  bool is_side_ = false;
};

class LateSide final : public EarlySide {
 public:
  using EarlySide::EarlySide;
  void join_side() override {
    for (const compute::op::AdamW& each : waiting_) real().run(each);
    waiting_.clear();
  }
  void run_any(const compute::AnyOperation& operation) override {
    const auto* const update = compute::operation_cast<compute::op::AdamW>(operation);
    if (!is_side() || !executes()) return EarlySide::run_any(operation);
    ASSERT_NE(update, nullptr) << "nothing else belongs on the side lane";
    waiting_.push_back(*update);
  }

 private:
  std::vector<compute::op::AdamW> waiting_;
};

std::vector<std::byte> weights_of(const Trainer& trainer) {
  std::vector<std::byte> bytes(trainer.parameter_memory_bytes());
  trainer.backend().synchronize();
  trainer.backend().download(bytes.data(), compute::Tensor(trainer.parameter_memory(), compute::DType::u8,
                                                           {static_cast<std::int64_t>(bytes.size())}));
  return bytes;
}

// Values and compute copy after three steps.
std::vector<std::byte> trained(TrainerHost::Make make, const models::DecoderTrainerConfig& config, bool beside) {
  TrainerHost host(std::move(make));
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  EarlySide::updates_on_side = EarlySide::operations_since = 0;
  for (int step = 0; step < 3; ++step) {
    if (!beside) {
      training_step(trainer, UnmarkedLaunch());
      continue;
    }
    UpdateBesideBackward update(trainer, 1);
    forward_and_backward(trainer, UnmarkedLaunch(), &update);
    update.finish();
  }
  return weights_of(trainer);
}

struct Variant {
  const char* name;
  void (*change)(models::DecoderConfig&);
};
constexpr Variant variants[] = {
    {"fused", [](models::DecoderConfig&) {}},
    {"bf16", [](models::DecoderConfig& c) { c.precision = workload::precision_policy("bf16", "cpu"); }},
    {"fp8", [](models::DecoderConfig& c) { c.precision = workload::precision_policy("fp8", "cpu"); }},
    {"unfused", [](models::DecoderConfig& c) { c.fused = false; }},
    {"recomputed", [](models::DecoderConfig& c) { c.checkpointing = true; }},
    {"outputs_kept", [](models::DecoderConfig& c) { c.keep_outputs = true; }},
    {"tied", [](models::DecoderConfig& c) { c.tied_embeddings = c.qkv_bias = c.qk_norm = true; }},
    {"loss_in_chunks", [](models::DecoderConfig& c) { c.loss_chunks = 3; }},
    {"gaps", [](models::DecoderConfig& c) { c.d_model = 36, c.d_ff = 72; }},
    {"micro_batches", [](models::DecoderConfig& c) { c.accumulation_steps = 2; }}};

class UpdatesBeside : public testing::TestWithParam<Variant> {};

TEST_P(UpdatesBeside, AreThoseAfterBackwardHoweverTheSideLaneRuns) {
  models::DecoderTrainerConfig config = test::small_trainer();
  GetParam().change(config.model);
  const std::vector<std::byte> after = trained(test::broken<EarlySide>(), config, false);
  EXPECT_EQ(EarlySide::updates_on_side, 0);
  EXPECT_EQ(trained(test::broken<EarlySide>(), config, true), after) << "early";
  EXPECT_GE(EarlySide::updates_on_side, 3 * config.model.layers);
  EXPECT_GT(EarlySide::operations_since, 30);
  EXPECT_EQ(trained(test::broken<LateSide>(), config, true), after) << "late";
}

INSTANTIATE_TEST_SUITE_P(Paths, UpdatesBeside, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UpdateBesideBackward, IsATrainersStepWhereItIsAskedFor) {
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.d_model = 256, config.model.d_ff = 512;  // layers of more than min_stretch_elements
  const std::vector<std::byte> after = trained(test::broken<EarlySide>(), config, false);
  config.update_beside_backward = true;
  EXPECT_EQ(trained(test::broken<EarlySide>(), config, false), after);
  EXPECT_GT(EarlySide::updates_on_side, 3);
}

template <class F>
void expect_refusal(assay_status status, std::string_view words, F&& call) {
  try {
    call();
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), status);
    EXPECT_NE(std::string_view(e.what()).find(words), std::string_view::npos) << e.what();
  }
}

TEST(UpdateBesideBackward, IsRefusedWithALossScale) {
  TrainerHost host;
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.precision = workload::precision_policy("fp16", "cuda");
  config.update_beside_backward = true;
  expect_refusal(ASSAY_UNSUPPORTED, "a loss scale", [&] { models::DecoderTrainer(host.host(), config); });
}

TEST(UpdateBesideBackward, IsRefusedToMuon) {
  TrainerHost host;
  models::DecoderTrainerConfig config = test::small_trainer();
  config.optimizer.name = "muon";
  models::DecoderTrainer(host.host(), config);
  config.update_beside_backward = true;
  expect_refusal(ASSAY_UNSUPPORTED, "update = \"after_backward\"",
                 [&] { models::DecoderTrainer(host.host(), config); });
}

TEST(UpdateBesideBackward, IsRefusedToAModelThatUsesTheSideLane) {
  TrainerHost host;
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.side_lane = true;
  models::DecoderTrainer(host.host(), config);
  config.update_beside_backward = true;
  expect_refusal(ASSAY_INVALID_ARGUMENT, "without its own side lane",
                 [&] { models::DecoderTrainer(host.host(), config); });
}

TEST(UpdateBesideBackward, IsRefusedWhereTheOptimizerHasPartsOfTheParameters) {
  TrainerHost host;
  models::DecoderTrainer trainer(host.host(), test::small_trainer());
  trainer.optimizer().restrict_to({{0, Optimizer::alignment_elements}});
  expect_refusal(ASSAY_INVALID_ARGUMENT, "restrict_to", [&] { UpdateBesideBackward{trainer}; });
}

}  // namespace
}  // namespace assay::train
