// The encoder-decoder's dropout: at each place where nn.Transformer drops, the right share of elements and no other
// place's mask; the expectation kept; backward through the very masks of the forward.
//
// The masks are seen in what the model itself keeps for its backward, with weights chosen so that nothing else can make
// an element what a dropped one is.
#include <cmath>

#include <assay/workload/precision.hpp>
#include "encoder_decoder_run.hpp"

namespace assay::conformance {
namespace {

using models::EncoderDecoderConfig;

struct Variant {
  const char* name;
  bool fused, flash;
  const char* precision = "fp32";
};
constexpr Variant variants[] = {{"fused_flash", true, true},
                                {"fused_naive", true, false},
                                {"unfused_naive", false, false},
                                {"fused_flash_bf16", true, true, "bf16"}};

constexpr double p = 0.1;

EncoderDecoderConfig config_of(const Variant& v) {
  EncoderDecoderConfig c = dense_shape();
  c.fused = v.fused, c.flash = v.flash;
  c.precision = workload::precision_policy(v.precision, backend().kind());
  return c;
}

// An attention block: where its tensors are in the plan, what its parameters are called, and its lengths.
struct AttentionPlace {
  std::string buffer, parameters;
  std::int64_t queries, keys;
  bool causal;
};
std::vector<AttentionPlace> attention_places(const EncoderDecoderConfig& c) {
  std::vector<AttentionPlace> places;
  const std::int64_t s = c.sequence_length, t = c.target_length();
  for (int l = 0; l < c.encoder_layers; ++l) {
    const std::string layer = "encoder.layers." + std::to_string(l);
    places.push_back({layer + ".self", "core." + layer + ".self_attn.", s, s, false});
  }
  for (int l = 0; l < c.decoder_layers; ++l) {
    const std::string layer = "decoder.layers." + std::to_string(l);
    places.push_back({layer + ".self", "core." + layer + ".self_attn.", t, t, true});
    places.push_back({layer + ".cross", "core." + layer + ".multihead_attn.", t, s, false});
  }
  return places;
}
std::vector<std::string> layers(const EncoderDecoderConfig& c) {
  std::vector<std::string> names;
  for (int l = 0; l < c.encoder_layers; ++l) names.push_back("encoder.layers." + std::to_string(l));
  for (int l = 0; l < c.decoder_layers; ++l) names.push_back("decoder.layers." + std::to_string(l));
  return names;
}

// `dropped` of `count` elements, each with probability p: five standard deviations.
void expect_share(const std::string& place, double dropped, double count) {
  const double sigma = std::sqrt(p * (1 - p) / count);
  EXPECT_NEAR(dropped / count, p, 5 * sigma) << place << ": " << dropped << " of " << count;
}

std::vector<bool> zeros(const Values& values) {
  std::vector<bool> mask;
  for (const double v : values) mask.push_back(v == 0);
  return mask;
}
double count(const std::vector<bool>& mask) {
  double n = 0;
  for (const bool m : mask) n += m ? 1 : 0;
  return n;
}

class EncoderDecoderDropout : public testing::TestWithParam<Variant> {};

// The hidden state is dropout(relu(0 x + 1)): 0 where dropped, else 1 / (1 - p).
TEST_P(EncoderDecoderDropout, OfTheHiddenStates) {
  const EncoderDecoderConfig c = config_of(GetParam());
  const EncoderDecoderRun model(c);
  for (const std::string& layer : layers(c)) {
    model.set("core." + layer + ".linear1.weight", 0);
    model.set("core." + layer + ".linear1.bias", 1);
  }
  run([&] { model.forward(); });
  std::vector<std::vector<bool>> masks;
  for (const std::string& layer : layers(c)) {
    const Values hidden = model.saved(layer + ".feed_forward.hidden");
    masks.push_back(zeros(hidden));
    expect_share(layer + " hidden", count(masks.back()), static_cast<double>(hidden.size()));
    for (const double h : hidden) EXPECT_TRUE(h == 0 || std::abs(h - 1 / (1 - p)) < 4e-3) << h;
  }
  // Places are independent: both drop an element in p^2 of the cases.
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      double both = 0;
      const std::size_t n = std::min(masks[i].size(), masks[j].size());
      for (std::size_t k = 0; k < n; ++k) both += masks[i][k] && masks[j][k] ? 1 : 0;
      EXPECT_NEAR(both / double(n), p * p, 5 * std::sqrt(p * p * (1 - p * p) / double(n))) << i << " and " << j;
    }
  // Another step, other masks; the same step, the same.
  const std::string first = layers(c)[0] + ".feed_forward.hidden";
  model.set_step(1);
  run([&] { model.forward(); });
  EXPECT_NE(zeros(model.saved(first)), masks[0]);
  model.set_step(0);
  run([&] { model.forward(); });
  EXPECT_EQ(zeros(model.saved(first)), masks[0]);
}

// With weights of 0 a branch is its bias, 1000 or so: a sum is small exactly where it was dropped.
TEST_P(EncoderDecoderDropout, OfTheBlocksResults) {
  const EncoderDecoderConfig c = config_of(GetParam());
  const EncoderDecoderRun model(c);
  std::vector<std::string> sums;
  for (const AttentionPlace& place : attention_places(c)) {
    model.set(place.parameters + "out_proj.weight", 0);
    model.set(place.parameters + "out_proj.bias", 1024);
    sums.push_back(place.buffer + ".sum");
  }
  for (const std::string& layer : layers(c)) {
    model.set("core." + layer + ".linear2.weight", 0);
    model.set("core." + layer + ".linear2.bias", 1024);
    sums.push_back(layer + ".feed_forward.sum");
  }
  run([&] { model.forward(); });
  for (const std::string& name : sums) {
    const Values sum = model.saved(name);
    double dropped = 0, total = 0;
    for (const double s : sum) {
      EXPECT_TRUE(std::abs(s) < 100 || std::abs(s - 1024 / (1 - p)) < 100) << name << " " << s;
      dropped += std::abs(s) < 100 ? 1 : 0;
      total += s;
    }
    expect_share(name, dropped, static_cast<double>(sum.size()));
    // The expectation is that of no dropout: 1024, and the residual's of about 0.
    const double sigma = 1024 * std::sqrt(p / (1 - p) / static_cast<double>(sum.size()));
    EXPECT_NEAR(total / static_cast<double>(sum.size()), 1024, 5 * sigma + 0.5) << name;
  }
}

// Queries, keys and values of weights 0: scores are 0, all keys weigh the same, and values are their bias, 1. What a
// query gets is then the share of its keys that were kept, over 1 - p.
TEST_P(EncoderDecoderDropout, OfTheAttentionsWeights) {
  const EncoderDecoderConfig c = config_of(GetParam());
  const EncoderDecoderRun model(c);
  for (const AttentionPlace& place : attention_places(c)) {
    model.set(place.parameters + "in_proj_weight", 0);
    model.set(place.parameters + "in_proj_bias", 1);
  }
  run([&] { model.forward(); });
  for (const AttentionPlace& place : attention_places(c)) {
    const Values out = model.saved(place.buffer + ".attention");  // [B, Tq, H, D], the same for all of D
    const std::int64_t depth = c.head_dim();
    double dropped = 0, weights = 0;
    for (std::size_t i = 0; i < out.size(); i += static_cast<std::size_t>(depth)) {
      const std::int64_t query = static_cast<std::int64_t>(i) / c.d_model % place.queries;
      const double keys = static_cast<double>(place.causal ? query + 1 : place.keys);
      dropped += keys * (1 - out[i] * (1 - p));
      weights += keys;
      for (std::int64_t d = 1; d < depth; ++d) EXPECT_NEAR(out[i + static_cast<std::size_t>(d)], out[i], 1e-2);
    }
    expect_share(place.buffer, dropped, weights);
  }
}

// Directional derivatives of the loss at fixed masks, by central differences along the gradient itself.
TEST_P(EncoderDecoderDropout, TheGradientIsThatOfTheMaskedLoss) {
  if (std::string_view(GetParam().precision) != "fp32") GTEST_SKIP() << "differences need fp32";
  const EncoderDecoderRun model(config_of(GetParam()));
  run([&] { model.forward_backward(); });
  const train::ParameterSet& set = model.parameters();
  const Values gradient = EncoderDecoderRun::read(set.all_gradients());
  const Values start = EncoderDecoderRun::read(set.all_values());
  // Group by group: in a sum over all, the embeddings would hide the rest.
  for (std::size_t id = 0; id < set.all().size(); ++id) {
    const train::Parameter& parameter = set.all()[id];
    const auto begin = static_cast<std::size_t>(parameter.offset);
    const auto end = begin + static_cast<std::size_t>(parameter.elements());
    double square = 0;
    for (std::size_t i = begin; i < end; ++i) square += gradient[i] * gradient[i];
    const double norm = std::sqrt(square);
    ASSERT_GT(norm, 0) << parameter.name;
    const double h = 0.002 / std::max(norm, 0.05);  // small against kinks, large against the loss's rounding
    const auto loss_at = [&](double distance) {
      std::vector<float> moved;
      for (std::size_t i = begin; i < end; ++i)
        moved.push_back(static_cast<float>(start[i] + distance * gradient[i] / norm));
      backend().upload(set.value(id), moved.data());
      run([&] { model.forward(); });
      return model.loss();
    };
    const double measured = (loss_at(h) - loss_at(-h)) / (2 * h);
    loss_at(0);
    EXPECT_NEAR(measured, norm, 0.03 * norm + 1e-4) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoderDropout, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EncoderDecoderSteps, DropoutWithoutAStepNumberIsRefused) {
  const EncoderDecoderConfig c = dense_shape();
  train::ParameterSet set(c.precision);
  const auto ids = models::add_encoder_decoder_parameters(set, c);
  const models::EncoderDecoderModel model(c, set, ids);
  const DeviceTensor batch(DType::i64, {c.batch_elements()});
  std::string text;
  EXPECT_EQ(status_of([&] { model.forward(backend(), batch); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("set_dropout_step"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::conformance
