// An update in the products that make gradients leaves the weights that an update after backward leaves, to the bit.
#include <assay/train/training_step.hpp>

#include <cstddef>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

// How many products have updated, and how many elements the optimizer has updated after them.
class Counting final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  static inline int products = 0;
  static inline std::int64_t elements_after = 0;
  void run_any(const compute::AnyOperation& operation) override {
    if (executes()) {
      if (const auto* const product = compute::operation_cast<compute::op::GroupedWeightGradient>(operation))
        products += product->update.any() ? 1 : 0;
      if (const auto* const update = compute::operation_cast<compute::op::AdamW>(operation))
        elements_after += update->parameter.elements();
    }
    real().run_any(operation);
  }
};

std::vector<std::byte> bytes_of(const Trainer& trainer, const compute::Tensor& flat) {
  std::vector<std::byte> bytes(flat.bytes());
  trainer.backend().synchronize();
  trainer.backend().download(bytes.data(), flat);
  return bytes;
}

struct Trained {
  std::vector<std::byte> values, copy, first, second, last_gradients;
  bool operator==(const Trained&) const = default;
};

enum class How { after_backward, in_products, dropped };

// After four steps, of which the last one shows its gradients.
Trained trained(models::DecoderTrainerConfig config, How how) {
  config.update_in_products = how != How::after_backward;
  config.drops_expert_gradients = how == How::dropped;
  TrainerHost host(test::broken<Counting>());
  models::DecoderTrainer trainer(host.host(), config);
  trainer.setup(host.launch());
  const ParameterSet& set = trainer.parameters();
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
    EXPECT_EQ(set.gradient(id).data != nullptr, !set.drops_gradient(id)) << set.all()[id].name;
  Counting::products = 0, Counting::elements_after = 0;
  for (int step = 0; step < 3; ++step) training_step(trainer, UnmarkedLaunch());
  trainer.show_gradients();
  training_step(trainer, UnmarkedLaunch());
  EXPECT_EQ(trainer.account().steps, 4U);
  Trained result{bytes_of(trainer, set.all_values()),
                 set.compute_copy() ? bytes_of(trainer, set.compute_copy()) : std::vector<std::byte>(),
                 bytes_of(trainer, trainer.optimizer().moment(0)),
                 bytes_of(trainer, trainer.optimizer().moment(1)),
                 {}};
  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const std::vector<std::byte> gradient = bytes_of(trainer, set.gradient(id).flat());
    result.last_gradients.insert(result.last_gradients.end(), gradient.begin(), gradient.end());
  }
  return result;
}

models::DecoderTrainerConfig small_experts() {
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.experts.count = 4, config.model.experts.per_token = 2, config.model.experts.d_ff = 24;
  return config;
}

struct OfExperts {
  const char* name;
  void (*change)(models::DecoderConfig&);
};
constexpr OfExperts kinds_of_experts[] = {
    {"fused", [](models::DecoderConfig&) {}},
    {"bf16", [](models::DecoderConfig& c) { c.precision = workload::precision_policy("bf16", "cpu"); }},
    {"bf16_pure", [](models::DecoderConfig& c) { c.precision = workload::precision_policy("bf16_pure", "cpu"); }},
    {"unfused", [](models::DecoderConfig& c) { c.fused = false; }},
    {"biases", [](models::DecoderConfig& c) { c.experts.biases = true; }},
    {"gaps", [](models::DecoderConfig& c) { c.d_model = 36, c.experts.d_ff = 20; }},
    {"shared", [](models::DecoderConfig& c) { c.experts.shared_d_ff = 16, c.experts.first_dense_layers = 1; }},
    {"micro_batches", [](models::DecoderConfig& c) { c.accumulation_steps = 2; }}};

class UpdatesInProducts : public testing::TestWithParam<OfExperts> {};

TEST_P(UpdatesInProducts, AreThoseAfterBackward) {
  models::DecoderTrainerConfig config = small_experts();
  GetParam().change(config.model);
  const Trained after = trained(config, How::after_backward);
  EXPECT_EQ(Counting::products, 0);
  const std::int64_t all = Counting::elements_after;
  EXPECT_TRUE(trained(config, How::in_products) == after);
  EXPECT_EQ(Counting::products, 4 * 2 * config.model.expert_layers());
  EXPECT_LT(Counting::elements_after, all);
  if (config.model.accumulation_steps > 1) return;  // which adds gradients up
  EXPECT_TRUE(trained(config, How::dropped) == after);
  EXPECT_EQ(Counting::products, 4 * 2 * config.model.expert_layers());
}

INSTANTIATE_TEST_SUITE_P(Paths, UpdatesInProducts, testing::ValuesIn(kinds_of_experts),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UpdateInProducts, IsRefusedToOtherOptimizersAndALossScale) {
  TrainerHost host;
  for (const char* const optimizer : {"sgd", "muon"}) {
    models::DecoderTrainerConfig config = small_experts();
    config.update_in_products = true;
    config.optimizer.name = optimizer;
    EXPECT_THROW(models::DecoderTrainer(host.host(), config), Error) << optimizer;
  }
  models::DecoderTrainerConfig config = small_experts();
  config.update_in_products = true;
  config.model.precision = workload::precision_policy("fp16", "cuda");
  EXPECT_THROW(models::DecoderTrainer(host.host(), config), Error);
}

}  // namespace
}  // namespace assay::train
