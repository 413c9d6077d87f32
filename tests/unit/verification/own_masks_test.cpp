// The audit of attention whose dropout has masks that the host does not know. Here the CPU's are taken for such.
#include <assay/compute/audited_backend.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/open_backend.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::AttentionShape;
using compute::DType;
using compute::Tensor;
using test::TrainerHost;

enum class Masks { sound, none, many_more, other_in_backward, unscaled };

class OwnMasks final : public test::BrokenBackend {
 public:
  OwnMasks(std::unique_ptr<compute::Backend> real, Masks masks) : BrokenBackend(std::move(real)), masks_(masks) {}
  const char* kind() const override { return "cuda"; }
  void run_any(const compute::AnyOperation& any) override {
    compute::visit_operation(
        any,
        [&](op::AttentionForward op) {
          if (masks_ == Masks::none) op.shape.dropout = {};
          if (masks_ == Masks::many_more) op.shape.dropout.probability = 0.7F;
          real().run(op);
          if (masks_ == Masks::unscaled && executes())
            real().run(op::Scale{.x = op.out, .factor = 0.5F, .out = op.out});
        },
        [&](op::AttentionBackward op) {
          if (masks_ == Masks::other_in_backward) ++op.shape.dropout.seed;
          real().run(op);
        },
        [&](const auto& op) { real().run(op); });
  }

 private:
  Masks masks_;
};

struct MaskedSizes {
  std::int64_t batch, queries, keys, heads, depth;
  std::int64_t other_value_depth = 0;  // 0: as `depth`

  std::int64_t value_depth() const { return other_value_depth > 0 ? other_value_depth : depth; }
};

// What the audit says of both directions; "wrong: ..." where it throws.
std::string audited(Masks masks, const MaskedSizes& s, bool causal, float probability = 0.1F) {
  const TrainerHost host(test::broken<OwnMasks>(masks));
  const auto backend = workload::open_backend(host.host(), host.launch());
  std::vector<DeviceMemory> memory;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto take = [&](std::size_t bytes) {
    return memory.emplace_back(host.host(), ASSAY_MEMORY_DATA, bytes, "").data();
  };
  const auto tensor = [&](std::int64_t tokens, std::int64_t width, bool drawn) {
    const std::int64_t count = s.batch * tokens * s.heads * width;
    const Tensor t(take(static_cast<std::size_t>(count) * 2), DType::bf16, {s.batch, tokens, s.heads, width});
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& x : values) x = drawn ? normal(random) : 0;
    workload::upload_f32(*backend, t, values);
    return t;
  };
  const std::int64_t values = s.value_depth();
  const Tensor q = tensor(s.queries, s.depth, true), k = tensor(s.keys, s.depth, true);
  const Tensor v = tensor(s.keys, values, true), dout = tensor(s.queries, values, true);
  const Tensor out = tensor(s.queries, values, false), dq = tensor(s.queries, s.depth, false);
  const Tensor dk = tensor(s.keys, s.depth, false), dv = tensor(s.keys, values, false);
  const Tensor lse(take(static_cast<std::size_t>(s.batch * s.heads * s.queries) * 4), DType::f32,
                   {s.batch, s.heads, s.queries});
  const Tensor step(take(8), DType::i64, {1});
  const std::int64_t first = 1;
  backend->upload(step, &first);
  const AttentionShape shape{1 / std::sqrt(static_cast<float>(s.depth)), causal, {probability, 17, 3, step}};
  const auto both = [&](compute::Backend& by) {
    by.run(op::AttentionForward{.q = q, .k = k, .v = v, .out = out, .lse = lse, .shape = shape});
    by.run(op::AttentionBackward{
        .q = q, .k = k, .v = v, .out = out, .lse = lse, .dout = dout, .dq = dq, .dk = dk, .dv = dv, .shape = shape});
  };
  backend->set_mode(compute::Mode::prepare);
  both(*backend);
  backend->set_mode(compute::Mode::execute);
  backend->set_workspace(take(backend->workspace_bytes() + 256), backend->workspace_bytes());
  compute::AuditedBackend audit(*backend);
  const std::string wrong = test::wrong_result_of([&] { both(audit); });
  if (!wrong.empty()) return "wrong: " + wrong;
  EXPECT_TRUE(audit.verified().in_part) << "the backward's elements are held against nothing: " << audit.text();
  return audit.text();
}

constexpr MaskedSizes many{4, 96, 96, 4, 32};

TEST(OwnMasks, ThatAreSoundAreFoundSo) {
  for (const MaskedSizes& s : {many, MaskedSizes{2, 7, 7, 2, 8}, MaskedSizes{1, 300, 200, 3, 64},
                               MaskedSizes{8, 1, 1, 8, 16}, MaskedSizes{2, 96, 96, 2, 24, 16}})
    for (const bool causal : {true, false})
      for (const float probability : {0.01F, 0.1F, 0.5F}) {
        const std::string text = audited(Masks::sound, s, causal, probability);
        EXPECT_EQ(text.rfind("2 of 2 operations held against float64", 0), 0U)
            << s.queries << (causal ? " causal " : " ") << probability << ": " << text;
      }
}

TEST(OwnMasks, ThatDropNothingAreFound) {
  EXPECT_NE(audited(Masks::none, many, false).find("the logarithm of the spread of out"), std::string::npos);
  EXPECT_NE(audited(Masks::none, many, true).find("the logarithm of the spread of out"), std::string::npos);
  // Of which some rows alone are looked at, the first of each head without a choice of keys.
  EXPECT_NE(audited(Masks::none, {4, 256, 256, 8, 64}, true).find("the logarithm of the spread of out"),
            std::string::npos);
}

TEST(OwnMasks, ThatDropMoreAreFound) {
  EXPECT_NE(audited(Masks::many_more, many, false).find("the logarithm of the spread of out"), std::string::npos);
}

TEST(OwnMasks, WhoseResultIsNotScaledAreFound) {
  EXPECT_EQ(audited(Masks::unscaled, many, false).rfind("wrong: ", 0), 0U);
}

TEST(OwnMasks, ThatAreOthersInTheBackwardAreFound) {
  for (const bool causal : {true, false})
    EXPECT_NE(audited(Masks::other_in_backward, many, causal).find("the sum of v dv"), std::string::npos);
}

}  // namespace
}  // namespace assay::train
