#include "assay/models/split_rows.hpp"

#include <assay/plugin/error.hpp>
#include <string>

namespace assay::models {

SplitRows::SplitRows(const DecoderConfig& config)
    : all_{{0, config.rows()}},
      rank_(config.split.rank),
      parts_(config.split.sequence_parallel ? config.split.ranks : 1) {
  const std::int64_t chunks = config.split.communication_chunks, sequence = config.own_context();
  are_sequences_ = config.batch_size >= chunks && sequence % parts_ == 0;
  const std::int64_t unit = are_sequences_ ? sequence : parts_, units = config.rows() / unit;
  if (chunks < 1 || chunks > units)
    throw Error(ASSAY_UNSUPPORTED,
                "communication_chunks " + std::to_string(chunks) + " of " + std::to_string(config.rows()) + " rows" +
                    (parts_ > 1 ? ", of which a rank has " + std::to_string(config.rows() / parts_) : "") +
                    "; expected 1 to " + std::to_string(units));
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t first = i * units / chunks, end = (i + 1) * units / chunks;
    chunks_.push_back({first * unit, (end - first) * unit});
  }
}

compute::Tensor SplitRows::own(const compute::Tensor& all, const RowRange& rows) const {
  const std::int64_t count = rows.count / parts_;
  return all.slice(0, rows.first + (parts_ > 1 ? rank_ * count : 0), count);
}

}  // namespace assay::models
