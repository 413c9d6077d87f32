#pragma once

namespace assay::models {

struct DecoderConfig;

// Throws INVALID_ARGUMENT where rounding decides what attention makes of scores, or of queries and keys that are
// normed.
void validate_scores(const DecoderConfig& config);

}  // namespace assay::models
