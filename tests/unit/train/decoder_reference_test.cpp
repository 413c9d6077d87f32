// The float64 decoder against PyTorch's float64 one, whose loss and gradients lie in tests/data/decoder,
// decoder_grouped, decoder_qk_norm, decoder_windows, decoder_documents and those of families.
#include <assay/verification/decoder_reference.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/decoder_reference.hpp"

namespace assay::train {
namespace {

using assay::test::floats_of;

std::vector<std::int64_t> integers_of(const SafetensorsReader& file, const std::string& name) {
  const auto bytes = file.read(name);
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

verification::DecoderGradients gradients_of(const char* reference, const models::DecoderConfig& config,
                                            const ParameterSet& set) {
  const std::string folder = assay::test::reference_folder(reference);
  const SafetensorsReader stored(folder + "weights.safetensors");
  const SafetensorsReader inputs(folder + "inputs.safetensors");
  std::vector<std::vector<float>> weights;
  for (const auto& parameter : set.all()) weights.push_back(floats_of(stored, parameter.name));

  return verification::decoder_gradients(config, set, weights, integers_of(inputs, "input_ids"),
                                         integers_of(inputs, "labels"));
}

void expect_equal_to_pytorch(const char* reference, const models::DecoderConfig& config) {
  const std::string folder = assay::test::reference_folder(reference);
  ParameterSet set(config.precision);
  models::add_decoder_parameters(set, config);
  const verification::DecoderGradients got = gradients_of(reference, config, set);

  const double loss = static_cast<double>(floats_of(SafetensorsReader(folder + "expected.safetensors"), "loss")[0]);
  EXPECT_NEAR(got.loss, loss, 1e-6 * loss);
  const double worst =
      assay::test::worst_reference_error(reference, "grad.", [&](const std::string& name, const auto& dims) {
        for (std::size_t id = 0; id < set.all().size(); ++id)
          if ("grad." + set.all()[id].name == name) {
            EXPECT_EQ(set.all()[id].dims, dims) << name;
            return got.gradients[id];
          }
        ADD_FAILURE() << "no parameter has the gradient " << name;
        return std::vector<float>();
      });
  EXPECT_LE(worst, 2e-7);  // both are stored in fp32
}

models::DecoderConfig stored_shape() {
  models::DecoderConfig config;
  config.d_model = 48, config.d_ff = 112, config.layers = 2, config.heads = 3;
  config.vocab_size = 97, config.batch_size = 2, config.context_length = 21;
  return config;
}

TEST(DecoderReference, EqualsPyTorchInFloat64) { expect_equal_to_pytorch("decoder", stored_shape()); }

// As trained weights may make them: neither sign's exponential is a number then.
TEST(DecoderReference, TakesScoresWhoseExponentialsAreNoNumbers) {
  models::DecoderConfig config = stored_shape();
  config.query_pre_attn_scalar = 1e-12;
  ParameterSet set(config.precision);
  models::add_decoder_parameters(set, config);
  const verification::DecoderGradients got = gradients_of("decoder", config, set);
  EXPECT_TRUE(std::isfinite(got.loss));
  for (const auto& gradient : got.gradients)
    EXPECT_TRUE(std::all_of(gradient.begin(), gradient.end(), [](float g) { return std::isfinite(g); }));
}

TEST(DecoderReference, EqualsPyTorchOfGroupedQueriesBiasesAndTiedEmbeddings) {
  models::DecoderConfig config = stored_shape();
  config.heads = 6, config.kv_heads = 2;
  config.qkv_bias = config.tied_embeddings = true;
  config.rope_theta = 1e6, config.norm_eps = 1e-6;
  expect_equal_to_pytorch("decoder_grouped", config);
}

TEST(DecoderReference, EqualsPyTorchOfPublishedFamilies) {
  for (const char* const family : assay::test::decoder_families) {
    SCOPED_TRACE(family);
    expect_equal_to_pytorch(family, assay::test::family_config(family));
  }
}

TEST(DecoderReference, EqualsPyTorchOfNormsOfQueriesAndKeys) {
  models::DecoderConfig config = stored_shape();
  config.d_model = 24, config.d_ff = 40, config.heads = 4, config.kv_heads = 2, config.head_dim = 10;
  config.qk_norm = config.tied_embeddings = true;
  config.rope_theta = 1e6, config.norm_eps = 1e-6;
  expect_equal_to_pytorch("decoder_qk_norm", config);
}

TEST(DecoderReference, EqualsPyTorchOfWindowsSinksCapsBiasesAndDocuments) {
  models::DecoderConfig config = stored_shape();
  config.d_model = 32, config.d_ff = 40, config.layers = 3, config.heads = 4, config.kv_heads = 2;
  config.vocab_size = 61;
  config.qkv_bias = config.output_bias = true;
  config.sliding_window = 6, config.full_attention_every = 3;
  config.attention_sinks = true, config.attention_soft_cap = 1.5;
  expect_equal_to_pytorch("decoder_windows", config);
  // PyTorch had each document by itself, with its own positions.
  config.documents = {1, 9, 3, 8};
  expect_equal_to_pytorch("decoder_documents", config);
}

}  // namespace
}  // namespace assay::train
