#include "settings.hpp"

#include <string>

namespace context_parallel {

namespace {

// The backward of 16-bit attention on a GPU serves multiples of 128 keys where there are more keys than queries.
void require_chunks_for_cudnn(const assay::Case& c, const assay::models::DecoderConfig& model) {
  constexpr std::int64_t keys = 128;
  const bool is_wide = model.precision.activation == assay::compute::DType::f32;
  if (!model.shares_context() || is_wide || c.device_kind() != "cuda" || model.chunk_length() % keys == 0) return;
  const std::int64_t multiple = 2 * keys * model.context.ranks;
  throw assay::Error(
      ASSAY_UNSUPPORTED,
      "context_length " + std::to_string(model.context_length) + " makes chunks of " +
          std::to_string(model.chunk_length()) +
          " tokens, and 16-bit attention on a GPU serves chunks of multiples of 128; expected a multiple of " +
          std::to_string(multiple) + ", or precision = \"fp32\"");
}

assay::models::DecoderTrainerConfig with_own_chunks(const assay::Case& c) {
  assay::models::DecoderTrainerConfig config = assay::models::decoder_trainer_config(c);
  config.model.context = {.rank = c.rank(), .ranks = c.rank_count()};
  config.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  assay::models::validate_decoder(c, config.model);
  require_chunks_for_cudnn(c, config.model);
  config.data_rank = 0, config.data_ranks = 1;  // all ranks have parts of the same sequences
  return config;
}

}  // namespace

Settings::Settings(const assay::Case& c)
    : trainer(with_own_chunks(c)),
      graph(assay::workload::is_graph(c)),
      bucket_bytes(static_cast<std::size_t>(c.get<double>("bucket_mb") * 0x1p20)),
      collectives(c) {}

}  // namespace context_parallel
