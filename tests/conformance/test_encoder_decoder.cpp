// The encoder-decoder as a whole, on the backend under test, against PyTorch's nn.Transformer
// (tests/data/encoder_decoder, made in float64 by scripts/make_encoder_decoder_reference.py): logits, loss, every
// gradient, and the weights after three AdamW steps. Then its paths against each other where they draw the same masks.
// Its dropout is in test_encoder_decoder_dropout.cpp.
#include <assay/verification/sampling.hpp>
#include <assay/workload/precision.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "encoder_decoder_run.hpp"

namespace assay::conformance {
namespace {

using models::EncoderDecoderConfig;

struct Variant {
  const char* name;
  bool fused, flash;
};
constexpr Variant variants[] = {{"fused_flash", true, true},
                                {"fused_naive", true, false},
                                {"unfused_flash", false, true},
                                {"unfused_naive", false, false}};

EncoderDecoderConfig as(const Variant& v, EncoderDecoderConfig c) {
  c.fused = v.fused, c.flash = v.flash;
  return c;
}

EncoderDecoderConfig reference_config(const Variant& v, const char* precision = "fp32") {
  EncoderDecoderConfig c = as(v, reference_shape());
  c.precision = workload::precision_policy(precision, backend().kind());
  return c;
}

double worst_error(const EncoderDecoderRun::Results& got, const std::string& prefix) {
  return test::worst_reference_error("encoder_decoder", prefix,
                                     [&](const std::string& name, const auto&) { return got.at(name); });
}

// cuDNN's attention serves no backward of 16-bit types at the sequence length of this shape.
bool refused(const EncoderDecoderConfig& c) {
  return is_cuda() && c.flash && compute::size_of(c.precision.activation) == 2 && c.sequence_length % 128 != 0;
}

class EncoderDecoder : public testing::TestWithParam<Variant> {};

TEST_P(EncoderDecoder, LogitsLossAndEveryGradientInFp32) {
  EncoderDecoderRun model(reference_config(GetParam()));
  model.load_reference();
  run([&] { model.forward_backward(); });
  const auto got = model.results();
  for (const char* what : {"logits", "loss", "grad."}) {
    const double error = worst_error(got, what);
    std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, what, error);
    EXPECT_LE(error, 1e-5) << what;
  }
}

TEST_P(EncoderDecoder, WeightsAfterThreeAdamWStepsInFp32) {
  EncoderDecoderRun model(reference_config(GetParam()));
  model.load_reference();
  for (int i = 0; i < 3; ++i) run([&] { model.step(); });
  const double error = worst_error(model.results(), "weight.");
  std::printf("  %-20s %-8s worst relative error %.2e\n", GetParam().name, "weights", error);
  EXPECT_LE(error, 1e-5);
}

// Errors add over the layers. tf32 and fp16 keep 10 bits of mantissa, bf16 keeps 7. A hidden state near 0 may fall on
// the other side of the ReLU and change its gradient by all of it, so that a gradient in bf16 is off by some percent
// (in PyTorch's autocast, too: up to 18% of a tensor at the reference's shape): it is compared in a larger model, where
// it averages out, with that model's own in fp32.
struct Coarse {
  const char* precision;
  double logits, loss, gradients;
};
constexpr Coarse coarse[] = {{"tf32", 5e-3, 2e-3, 6e-2}, {"bf16", 0.03, 0.01, 0.15}, {"fp16", 5e-3, 2e-3, 6e-2}};

TEST_P(EncoderDecoder, CoarserPrecisionsStayNear) {
  EncoderDecoderConfig larger = as(GetParam(), dense_shape());
  larger.dropout = 0.0F;
  larger.sequence_length = is_cuda() ? 128 : larger.sequence_length;  // see refused()
  EncoderDecoderRun exact(larger);
  run([&] { exact.forward_backward(); });
  for (const Coarse& c : coarse) {
    if (!is_cuda() && std::string_view(c.precision) != "bf16") continue;
    std::string logits = "not compared";
    if (const EncoderDecoderConfig small = reference_config(GetParam(), c.precision); !refused(small)) {
      EncoderDecoderRun model(small);
      model.load_reference();
      run([&] { model.forward_backward(); });
      const auto got = model.results();
      const double error = worst_error(got, "logits");
      logits = workload::number(error, "%.2e");
      EXPECT_LE(error, c.logits) << c.precision;
      EXPECT_LE(worst_error(got, "loss"), c.loss) << c.precision;
    }
    larger.precision = workload::precision_policy(c.precision, backend().kind());
    EncoderDecoderRun coarse_run(larger);
    run([&] { coarse_run.forward_backward(); });
    const double gradients = worst_difference(coarse_run.gradients(), exact.gradients());
    EXPECT_LE(gradients, c.gradients) << c.precision;
    std::printf("  %-20s %-5s worst relative error: logits %s, gradients %.2e\n", GetParam().name, c.precision,
                logits.c_str(), gradients);
  }
}

// In fp32 every path draws the same masks; and here gradients come into places of the arena that have held activations,
// other ones on each path.
TEST_P(EncoderDecoder, EveryPathComputesTheSameWithDropout) {
  EncoderDecoderRun one(as(GetParam(), dense_shape())), other(as({"", false, false}, dense_shape()));
  for (EncoderDecoderRun* r : {&one, &other})
    for (int i = 0; i < 2; ++i) run([&] { r->step(); });
  const double error = worst_difference(one.results(), other.results());
  std::printf("  %-20s worst difference from unfused_naive %.2e\n", GetParam().name, error);
  EXPECT_LE(error, 2e-5);
}

// What is captured and replayed is what is enqueued, masks too.
TEST_P(EncoderDecoder, AGraphDoesAsItsOperations) {
  EncoderDecoderRun one(as(GetParam(), dense_shape())), other(as(GetParam(), dense_shape()));
  backend().set_mode(Mode::prepare);
  one.step();
  backend().set_mode(Mode::execute);
  const Buffer workspace(backend().workspace_bytes());
  backend().set_workspace(workspace.data(), backend().workspace_bytes());
  one.step();
  const std::unique_ptr<compute::Graph> graph = backend().capture([&] { one.step(); });
  if (!graph) GTEST_SKIP() << "no graphs on " << backend().kind();
  EXPECT_GT(graph->node_count(), 50u);
  for (int i = 0; i < 2; ++i) graph->launch();
  backend().synchronize();
  for (int i = 0; i < 3; ++i) run([&] { other.step(); });
  EXPECT_EQ(one.results(), other.results());
}

// After the preparation a step finds all its primitives and its workspace there.
TEST_P(EncoderDecoder, AStepNeedsNothingThatItsPreparationDidNotFind) {
  EncoderDecoderRun model(as(GetParam(), dense_shape()));
  run([&] { model.step(); });
  const std::size_t primitives = backend().primitives().size();
  const std::size_t workspace_bytes = backend().workspace_bytes();
  run([&] { model.step(); });
  EXPECT_EQ(backend().primitives().size(), primitives);
  EXPECT_EQ(backend().workspace_bytes(), workspace_bytes);
}

TEST_P(EncoderDecoder, TrainingOnOneBatchLowersTheLoss) {
  int trained = 0;
  for (const char* name : workload::precision_names) {
    if (!is_cuda() && (std::string_view(name) == "tf32" || std::string_view(name) == "fp16")) continue;
    EncoderDecoderConfig c = reference_config(GetParam(), name);
    c.dropout = 0.1F;
    if (refused(c)) continue;
    ++trained;
    EncoderDecoderRun model(c);
    run([&] { model.step(); });
    const double first = model.loss();
    for (int i = 0; i < 20; ++i) run([&] { model.step(); });
    EXPECT_LT(model.loss(), 0.8 * first) << name;
  }
  EXPECT_GT(trained, 0) << "every precision was left out";
}

// Without a backward: the same logits and loss, and nothing of the gradients' arena is touched.
TEST_P(EncoderDecoder, ForwardAloneGivesTheSameLogits) {
  EncoderDecoderConfig c = reference_config(GetParam());
  c.backward = false;
  EncoderDecoderRun model(c);
  model.load_reference();
  run([&] { model.forward(); });
  EncoderDecoderRun::Results got;
  got["logits"] = EncoderDecoderRun::read(model.model().logits());
  got["loss"] = {model.loss()};
  EXPECT_LE(worst_error(got, "logits"), 1e-5);
  EXPECT_LE(worst_error(got, "loss"), 1e-5);
}

// Keeps, of each call, what it says is final.
class Recorder : public train::GradientListener {
 public:
  explicit Recorder(const train::ParameterSet& set) : set_(set) {}
  void gradients_ready(train::ParameterSet::Id end) override {
    if (!recording) return;
    ends.push_back(end);
    kept.push_back(bytes_before(end));
  }
  std::vector<std::byte> bytes_before(train::ParameterSet::Id end) const {
    const Tensor t = set_.gradients({0, set_.elements_before(end)});
    std::vector<std::byte> bytes(t.bytes());
    backend().download(bytes.data(), t);
    return bytes;
  }
  bool recording = false;
  std::vector<train::ParameterSet::Id> ends;
  std::vector<std::vector<std::byte>> kept;

 private:
  const train::ParameterSet& set_;
};

TEST_P(EncoderDecoder, WhatTheListenerHearsOfIsFinal) {
  for (const EncoderDecoderConfig& shape : {reference_shape(), dense_shape()}) {
    const EncoderDecoderRun model(as(GetParam(), shape));
    Recorder recorder(model.parameters());
    run([&] {
      model.forward_backward(&recorder);
      recorder.recording = true;  // the first time is the preparation
    });
    ASSERT_FALSE(recorder.ends.empty());
    EXPECT_EQ(recorder.ends.back(), model.parameters().all().size());
    for (std::size_t i = 0; i < recorder.ends.size(); ++i) {
      if (i > 0) {
        EXPECT_GT(recorder.ends[i], recorder.ends[i - 1]);
      }
      EXPECT_EQ(recorder.kept[i], recorder.bytes_before(recorder.ends[i])) << "call " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoder, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::conformance
