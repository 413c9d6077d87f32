// The README's table of presets is that of the plugin, with the parameters that the model really has.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "settings.hpp"

namespace encoder_decoder {
namespace {

std::int64_t parameter_count(const Size& preset) {
  assay::models::EncoderDecoderConfig config;
  config.d_model = preset.d_model, config.heads = preset.heads, config.d_ff = preset.d_ff;
  config.encoder_layers = config.decoder_layers = preset.layers;
  config.sequence_length = preset.sequence_length;
  assay::train::ParameterSet set(config.precision);
  assay::models::add_encoder_decoder_parameters(set, config);
  return set.parameter_count();
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

TEST(Presets, AreThoseOfTheReadme) {
  std::ifstream file(README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const Size& preset : sizes) {
    std::ostringstream row;
    row << "| " << preset.name << " | " << preset.d_model << " | " << preset.heads << " | " << preset.layers << " + "
        << preset.layers << " | " << preset.d_ff << " | " << preset.sequence_length << " | " << preset.batch_size
        << " | " << grouped(parameter_count(preset)) << " |\n";
    EXPECT_NE(readme.find(row.str()), std::string::npos) << "not in the README: " << row.str();
  }
}

TEST(Presets, TheFirstIsTheDefaultOf3527168Parameters) {
  EXPECT_STREQ(sizes[0].name, params[0].row.default_string);
  EXPECT_EQ(parameter_count(sizes[0]), 3'527'168);
}

}  // namespace
}  // namespace encoder_decoder
