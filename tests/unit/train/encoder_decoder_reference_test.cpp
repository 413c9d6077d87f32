// The float64 encoder-decoder against PyTorch's nn.Transformer in float64, whose logits, loss and gradients lie in
// tests/data/encoder_decoder; and, with masks of dropout, which PyTorch draws otherwise, against differences of its own
// loss.
#include <assay/verification/encoder_decoder_reference.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "support/reference.hpp"

namespace assay::train {
namespace {

using assay::test::floats_of;
using verification::EncoderDecoderDecisions;
using verification::EncoderDecoderGradients;

models::EncoderDecoderConfig recorded_shape() {
  models::EncoderDecoderConfig c;
  c.vocab_size = 31, c.batch_size = 3, c.sequence_length = 7, c.d_model = 16, c.heads = 2;
  c.encoder_layers = c.decoder_layers = 2, c.d_ff = 24, c.dropout = 0;
  return c;
}

// The recorded weights and batch.
class Recorded {
 public:
  Recorded() : set_(config_.precision), ids_(models::add_encoder_decoder_parameters(set_, config_)) {
    const std::string folder = test::reference_folder("encoder_decoder");
    const SafetensorsReader stored(folder + "weights.safetensors"), inputs(folder + "inputs.safetensors");
    for (const auto& parameter : set_.all()) weights.push_back(floats_of(stored, parameter.name));
    const std::vector<std::int64_t> target = integers_of(inputs, "target");
    batch_ = integers_of(inputs, "source");
    for (const std::int64_t shift : {0, 1})
      for (std::int64_t s = 0; s < config_.batch_size; ++s) {
        const auto first = target.begin() + s * config_.sequence_length + shift;
        batch_.insert(batch_.end(), first, first + config_.target_length());
      }
  }
  EncoderDecoderGradients run(const EncoderDecoderDecisions& decisions = {}) const {
    return verification::encoder_decoder_gradients(config_, set_, ids_, weights, batch_, decisions);
  }
  const models::EncoderDecoderConfig& config() const { return config_; }
  const ParameterSet& set() const { return set_; }

  std::vector<std::vector<float>> weights;

 private:
  static std::vector<std::int64_t> integers_of(const SafetensorsReader& file, const std::string& name) {
    const auto bytes = file.read(name);
    std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  models::EncoderDecoderConfig config_ = recorded_shape();
  ParameterSet set_;
  models::EncoderDecoderParameters ids_;
  std::vector<std::int64_t> batch_;
};

TEST(EncoderDecoderReference, EqualsPyTorchInFloat64) {
  const Recorded recorded;
  const EncoderDecoderGradients got = recorded.run();
  const auto worst = [&](const std::string& prefix, const auto& values_of) {
    return test::worst_reference_error("encoder_decoder", prefix, values_of);
  };
  const double of_gradients = worst("grad.", [&](const std::string& name, const auto& dims) {
    for (std::size_t id = 0; id < recorded.set().all().size(); ++id)
      if ("grad." + recorded.set().all()[id].name == name) {
        EXPECT_EQ(recorded.set().all()[id].dims, dims) << name;
        return got.gradients[id];
      }
    ADD_FAILURE() << "no parameter has the gradient " << name;
    return std::vector<float>();
  });
  EXPECT_LE(of_gradients, 2e-7);  // both are rounded to fp32 once
  EXPECT_LE(worst("logits", [&](const auto&, const auto&) { return got.logits; }), 2e-7);
  EXPECT_LE(worst("loss", [&](const auto&, const auto&) { return std::vector<double>{got.loss}; }), 1e-7);
  EXPECT_EQ(got.farthest_state, 0);
}

// Three of four elements of every place pass, doubled.
EncoderDecoderDecisions some_masks(const models::EncoderDecoderConfig& c) {
  const std::int64_t source = c.source_rows(), target = c.target_rows(), s = c.sequence_length, t = s - 1;
  std::vector<std::int64_t> sizes;
  const auto block = [&](std::int64_t inner, std::int64_t rows) {
    sizes.push_back(inner);
    sizes.push_back(rows * c.d_model);
  };
  for (std::int64_t l = 0; l < c.encoder_layers; ++l)
    block(c.batch_size * c.heads * s * s, source), block(source * c.d_ff, source);
  for (std::int64_t l = 0; l < c.decoder_layers; ++l)
    block(c.batch_size * c.heads * t * t, target), block(c.batch_size * c.heads * t * s, target),
        block(target * c.d_ff, target);
  EncoderDecoderDecisions decisions;
  std::uint32_t state = 1;
  for (const std::int64_t size : sizes)
    for (auto& mask = decisions.masks.emplace_back(); mask.size() < static_cast<std::size_t>(size);) {
      state = 1664525 * state + 1013904223;
      mask.push_back(state >> 30 == 0 ? 0.0F : 2.0F);
    }
  return decisions;
}

// Each gradient, along itself: the derivative is its length. Sides of ReLUs are held, so that the loss is smooth.
TEST(EncoderDecoderReference, ItsGradientsWithDropoutAreThoseOfItsLoss) {
  Recorded recorded;
  EncoderDecoderDecisions decisions = some_masks(recorded.config());
  EXPECT_EQ(decisions.masks.size(), verification::dropout_places(recorded.config()));
  for (std::size_t block = 0; block < 4; ++block) decisions.states.emplace_back(1000, 1.0F);  // long enough: all pass
  const EncoderDecoderGradients at_start = recorded.run(decisions);
  EXPECT_NE(at_start.loss, recorded.run().loss);
  EXPECT_GT(at_start.farthest_state, 0.1);
  for (std::size_t id = 0; id < recorded.weights.size(); ++id) {
    const std::vector<float> start = recorded.weights[id], &gradient = at_start.gradients[id];
    double squares = 0;
    for (const float g : gradient) squares += double(g) * double(g);
    const double length = std::sqrt(squares);
    const double step = 1e-2 / std::max(length, 1.0);
    // What the weights' rounding to fp32 leaves of the step is what the loss is asked about.
    double expected = 0;
    double losses[2];
    for (const int side : {0, 1}) {
      for (std::size_t i = 0; i < start.size(); ++i) {
        recorded.weights[id][i] =
            start[i] + static_cast<float>(step * (side ? 1 : -1) * double(gradient[i]) / std::max(length, 1e-9));
        expected += (side ? 1 : -1) * (double(recorded.weights[id][i]) - double(start[i])) * double(gradient[i]);
      }
      losses[side] = recorded.run(decisions).loss;
      recorded.weights[id] = start;
    }
    // A central difference is off by the third derivative times the square of the step, 1e-4.
    EXPECT_NEAR(losses[1] - losses[0], expected, 2e-3 * std::abs(expected) + 1e-9) << recorded.set().all()[id].name;
  }
}

}  // namespace
}  // namespace assay::train
