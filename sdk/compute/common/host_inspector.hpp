// An inspector for any device: it downloads, and computes on the host.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/compute/inspector.hpp>

namespace assay::compute {

class HostInspector final : public Inspector {
 public:
  explicit HostInspector(Backend& backend) : backend_(backend) {}

  std::vector<double> read(const Tensor& t) override;
  std::vector<double> read(const Tensor& t, const std::vector<RowSegment>& segments) override;
  std::vector<float> read(const Tensor& t, const std::vector<ElementSpan>& spans) override;
  std::uint64_t hash(const Tensor& t) override;
  MatrixSums sum_matrix(const Tensor& t, const LineWeights& over_columns, const LineWeights& over_rows) override;
  std::vector<WeightedSum> sum_spans(const Tensor& t, const std::vector<WeightedSpan>& spans,
                                     const std::vector<float>& weights) override;
  std::vector<double> product(const std::vector<double>& x, std::int64_t rows, const Tensor& w) override;
  BlockSums difference_from_product(const Tensor& found, float factor, const std::vector<double>& a,
                                    const std::vector<double>& b, std::int64_t rows) override;
  std::unique_ptr<KeptTensor> keep(const Tensor& t, std::int64_t most_on_host) override;
  BlockSums difference(const KeptTensor& found, const Tensor& expected) override;

 private:
  Backend& backend_;
};

// HostInspector::keep makes this of all elements, or of those of `spans`.
class KeptOnHost final : public KeptTensor {
 public:
  KeptOnHost(std::vector<float> values, std::vector<ElementSpan> spans)
      : values_(std::move(values)), spans_(std::move(spans)) {}
  std::int64_t elements() const override { return static_cast<std::int64_t>(values_.size()); }
  const std::vector<float>& values() const { return values_; }
  const std::vector<ElementSpan>& spans() const { return spans_; }

 private:
  std::vector<float> values_;
  std::vector<ElementSpan> spans_;
};

// Returns the sums of `found` against `expected`, which are as long.
BlockSums block_sums(const std::vector<float>& found, const std::vector<float>& expected);
// Returns how far the first element of a row, all dimensions but the last flattened, is from the tensor's first.
std::int64_t offset_of_row(const Tensor& t, std::int64_t row);
// Returns the rows' parts that hold the elements of `spans`, in a tensor of any strides.
std::vector<RowSegment> segments_of(const Tensor& t, const std::vector<ElementSpan>& spans);

}  // namespace assay::compute
