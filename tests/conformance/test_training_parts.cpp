// What training on several ranks rests on, on the backend under test: a backward reports in time which gradients are
// final, and an optimizer in pieces does what it does in one.
#include <algorithm>
#include <assay/models/decoder.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/workload/precision.hpp>
#include <cstddef>

#include "harness.hpp"

namespace assay::conformance {
namespace {

using models::DecoderConfig;
using train::ElementRange;
using train::GradientListener;
using train::ParameterSet;

struct Variant {
  const char* name;
  bool fused, checkpointing, side_lane;
  std::int64_t d_model = 64;  // of 36, the arena has gaps between its groups
  bool tied = false;          // and grouped queries with biases
  std::int64_t loss_chunks = 1;
};
constexpr Variant variants[] = {{"fused", true, false, false},
                                {"unfused", false, false, false},
                                {"recomputed", true, true, false},
                                {"unfused_recomputed", false, true, false},
                                {"side_lane", true, false, true},
                                {"side_lane_recomputed", true, true, true},
                                {"gaps", true, false, false, 36},
                                {"unfused_gaps", false, false, false, 36},
                                {"tied", true, false, false, 64, true},
                                {"tied_side_lane", true, false, true, 64, true},
                                {"loss_in_chunks", true, false, false, 64, false, 3},
                                {"tied_loss_in_chunks", true, true, true, 64, true, 3}};

DecoderConfig config_of(const Variant& v) {
  DecoderConfig c;
  c.vocab_size = 128, c.batch_size = 2, c.context_length = 16;
  c.d_model = v.d_model, c.d_ff = 2 * v.d_model, c.layers = 3, c.heads = 2;
  c.fused = v.fused, c.checkpointing = v.checkpointing, c.side_lane = v.side_lane;
  c.tied_embeddings = c.qkv_bias = c.qk_norm = v.tied;
  if (v.tied) c.kv_heads = 1;
  c.loss_chunks = v.loss_chunks;
  return c;
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(t.bytes());
  backend().download(bytes.data(), t);
  return bytes;
}

// Keeps, of each call, what it says is final.
class Recorder : public GradientListener {
 public:
  explicit Recorder(const ParameterSet& set) : set_(set) {}
  void gradients_ready(ParameterSet::Id end) override {
    if (!recording) return;
    ends.push_back(end);
    kept.push_back(bytes_of(set_.gradients({0, set_.elements_before(end)})));
  }
  bool recording = false;
  std::vector<ParameterSet::Id> ends;
  std::vector<std::vector<std::byte>> kept;

 private:
  const ParameterSet& set_;
};

class GradientsReady : public testing::TestWithParam<Variant> {};

TEST_P(GradientsReady, WhatTheListenerHearsOfIsFinal) {
  const DecoderConfig config = config_of(GetParam());
  ParameterSet set(config.precision);
  const models::DecoderParameters ids = models::add_decoder_parameters(set, config);
  set.pad_to(4096);
  models::DecoderModel model(config, set, ids);
  const Buffer values(set.value_bytes()), gradients(set.gradient_bytes()), activations(model.activation_bytes());
  set.bind(values.data(), nullptr, gradients.data());
  model.bind(gradients.data(), activations.data());
  const DeviceTensor inputs(DType::i64, {config.rows()}, random_ids(config.rows(), 1, 0, config.vocab_size));
  const DeviceTensor labels(DType::i64, {config.rows()}, random_ids(config.rows(), 2, 0, config.vocab_size));
  set.initialize(backend(), 1);
  model.initialize(backend());
  Recorder recorder(set);
  run([&] {
    const Tensor label_tensor = labels;
    model.forward(backend(), inputs, &label_tensor, config.rows());
    model.backward(backend(), inputs, labels, config.rows(), &recorder);
    recorder.recording = true;  // the first time is the preparation
  });

  const std::vector<std::byte> final_gradients = bytes_of(set.all_gradients());
  ASSERT_FALSE(recorder.ends.empty());
  EXPECT_EQ(recorder.ends.back(), set.all().size());
  EXPECT_GE(recorder.ends.size(), static_cast<std::size_t>(config.layers) + 1);
  for (std::size_t i = 0; i < recorder.ends.size(); ++i) {
    EXPECT_TRUE(i == 0 || recorder.ends[i] > recorder.ends[i - 1]);
    const std::vector<std::byte>& kept = recorder.kept[i];
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), final_gradients.begin())) << "until " << recorder.ends[i];
  }
  // Activations have lain in the arena; not in its padding, which optimizers walk over.
  const std::int64_t tail = set.tail_elements();
  ASSERT_GT(tail, 0);
  for (const std::byte b : bytes_of(set.gradients({set.arena_elements() - tail, set.arena_elements()})))
    EXPECT_EQ(b, std::byte{0});
}

INSTANTIATE_TEST_SUITE_P(Paths, GradientsReady, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- the optimizer in pieces ---------------------------------------------------------------------------------------

class OptimizerPieces : public testing::TestWithParam<const char*> {};

// Two steps with their own gradients, by an optimizer that is given its ranges; all weights, and the copy.
std::vector<std::byte> weights_after(const char* name, const workload::PrecisionPolicy& policy,
                                     const std::vector<ElementRange>& ranges, std::size_t* state_bytes) {
  ParameterSet set(policy);
  set.add({{"a", {60, 64}, 0, 0, 0.5F}});
  set.add({{"b", {1000}, 0, 1.0F, 0}});
  set.pad_to(512);
  train::Optimizer optimizer({.name = name, .lr = 0.05, .momentum = 0.9F}, set);
  if (!ranges.empty()) optimizer.restrict_to(ranges);
  *state_bytes = optimizer.moment_bytes();
  const Buffer values(set.value_bytes()), copy(set.copy_bytes() + 256), gradients(set.gradient_bytes());
  const Buffer state(optimizer.state_bytes());
  const train::LossScaler scaler(policy);
  set.bind(values.data(), copy.data(), gradients.data());
  optimizer.bind(state.data());
  set.initialize(backend(), 7);
  optimizer.reset(backend());
  for (std::uint64_t step = 0; step < 2; ++step) {
    backend().run(op::RandomNormal{.x = set.all_gradients(), .seed = 9, .stream = step, .mean = 0, .std = 1});
    run([&] { optimizer.step(backend(), scaler); });
  }
  std::vector<std::byte> all = bytes_of(set.all_values());
  if (policy.compute_copy()) {
    const std::vector<std::byte> copied = bytes_of(set.compute_copy());
    all.insert(all.end(), copied.begin(), copied.end());
  }
  return all;
}

TEST_P(OptimizerPieces, DoAsTheWholeToTheBit) {
  for (const char* precision : {"fp32", "bf16", "bf16_pure"}) {
    const workload::PrecisionPolicy policy = workload::precision_policy(precision, backend().kind());
    std::size_t whole_state = 0, pieces_state = 0, half_state = 0;
    const auto whole = weights_after(GetParam(), policy, {}, &whole_state);
    const auto pieces = weights_after(GetParam(), policy, {{0, 64}, {64, 3904}, {3904, 5120}}, &pieces_state);
    EXPECT_EQ(whole, pieces) << precision;
    EXPECT_EQ(whole_state, pieces_state);
    // A rank's share: its part of each of two buckets. The rest stays as it was.
    const auto half = weights_after(GetParam(), policy, {{512, 1024}, {3072, 5120}}, &half_state);
    EXPECT_EQ(2 * half_state, whole_state);
    const std::size_t width = compute::size_of(policy.parameter);
    const auto same = [&](std::size_t begin, std::size_t end) {
      return std::equal(whole.begin() + static_cast<std::ptrdiff_t>(begin * width),
                        whole.begin() + static_cast<std::ptrdiff_t>(end * width),
                        half.begin() + static_cast<std::ptrdiff_t>(begin * width));
    };
    EXPECT_TRUE(same(512, 1024)) << precision;
    EXPECT_TRUE(same(3072, 4840)) << precision;
    EXPECT_FALSE(same(0, 512)) << precision;
    EXPECT_FALSE(same(1024, 3072)) << precision;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerPieces, testing::Values("adamw", "sgd"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace assay::conformance
