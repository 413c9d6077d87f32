// The rows of a decoder whose products are split over ranks, in chunks: a chunk's collective runs beside the products
// of the next one.
#pragma once
#include <assay/compute/tensor.hpp>

#include <assay/models/decoder_config.hpp>
#include <cstdint>
#include <vector>

namespace assay::models {

struct RowRange {
  std::int64_t first = 0, count = 0;
};

// Chunks are equal but for one unit: a sequence where there are as many of these as chunks, else a row, with
// sequence_parallel as many rows as ranks. With sequence_parallel the r-th rank has the r-th part of every chunk, so
// that a chunk is gathered, or summed to parts, in one place.
class SplitRows {
 public:
  SplitRows() = default;
  // UNSUPPORTED for more chunks than there are units.
  explicit SplitRows(const DecoderConfig& config);

  const std::vector<RowRange>& chunks() const { return chunks_; }
  // What one operation on this rank's rows may cover: without sequence_parallel all of them.
  const std::vector<RowRange>& own_ranges() const { return parts_ > 1 ? chunks_ : all_; }
  bool are_sequences() const { return are_sequences_; }

  static compute::Tensor of(const compute::Tensor& all, const RowRange& rows) {
    return all.slice(0, rows.first, rows.count);
  }
  // This rank's of them.
  compute::Tensor own(const compute::Tensor& all, const RowRange& rows) const;
  // The same in a tensor that has this rank's rows alone.
  compute::Tensor kept(const compute::Tensor& own, const RowRange& rows) const {
    return own.slice(0, rows.first / parts_, rows.count / parts_);
  }

 private:
  std::vector<RowRange> chunks_, all_;
  std::int64_t rank_ = 0, parts_ = 1;
  bool are_sequences_ = true;
};

}  // namespace assay::models
