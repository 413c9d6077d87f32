#include "cuda_inspector.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cuda_error.hpp"
#include "kernels/inspect.hpp"

namespace assay::cuda {

using compute::BlockSums;
using compute::ElementSpan;
using compute::KeptTensor;
using compute::LineWeights;
using compute::MatrixSums;
using compute::RowSegment;
using compute::Tensor;
using compute::WeightedSpan;
using compute::WeightedSum;

namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t least_room = std::size_t{4} << 20;
// What stays free on the device where copies of tensors are kept there: the verification has more to do.
constexpr std::size_t left_free = std::size_t{4} << 30;
// A block of threads gathers so many elements at a time.
constexpr std::int64_t longest_segment = 4096;

std::size_t count_of(std::int64_t n) { return static_cast<std::size_t>(n); }

DeviceMemory device_memory(std::size_t bytes) {
  void* address = nullptr;
  if (cudaMalloc(&address, bytes) == cudaSuccess) return DeviceMemory(address);
  (void)cudaGetLastError();
  return nullptr;
}

Inspected inspected(const Tensor& t) {
  Inspected all{.x = t.data, .type = t.dtype};
  for (int d = 0; d < t.rank; ++d) {
    all.dims[4 - t.rank + d] = t.dim(d);
    all.steps[4 - t.rank + d] = t.step(d);
  }
  return all;
}

void add_segment(std::vector<GatheredSegment>& all, std::int64_t offset, std::int64_t step, std::int64_t count,
                 std::int64_t& to) {
  for (std::int64_t done = 0; done < count; done += longest_segment) {
    const std::int64_t n = std::min(longest_segment, count - done);
    all.push_back({offset + done * step, n, to});
    to += n;
  }
}

// On the device until it is moved to the host.
class KeptOnDevice final : public KeptTensor {
 public:
  KeptOnDevice(CudaInspector& inspector, DeviceMemory memory, const Tensor& like, std::int64_t most_on_host)
      : inspector_(inspector),
        memory_(std::move(memory)),
        tensor_(memory_.get(), like.dtype, {like.elements()}),
        most_on_host_(most_on_host) {}
  std::int64_t elements() const override { return on_host_ ? on_host_->elements() : tensor_.elements(); }
  bool move_to_host() override {
    if (on_host_) return false;
    std::vector<ElementSpan> spans = compute::spread_spans(tensor_.elements(), most_on_host_);
    std::vector<float> values = inspector_.read(tensor_, spans);  // waits until it has them
    on_host_.emplace(std::move(values), std::move(spans));
    memory_.reset();
    return true;
  }
  const Tensor& tensor() const { return tensor_; }
  const compute::KeptOnHost* on_host() const { return on_host_ ? &*on_host_ : nullptr; }

 private:
  CudaInspector& inspector_;
  DeviceMemory memory_;
  Tensor tensor_;
  std::int64_t most_on_host_;
  std::optional<compute::KeptOnHost> on_host_;
};

}  // namespace

// Hands out the inspector's memory piece by piece, and moves numbers there and back.
class CudaInspector::Room {
 public:
  Room(CudaInspector& inspector) : stream_(inspector.stream_), next_(static_cast<char*>(inspector.memory_.get())) {}

  template <class T>
  T* take(std::size_t count) {
    T* const at = reinterpret_cast<T*>(next_);
    next_ += round_up(count * sizeof(T), alignment);
    return at;
  }
  template <class T>
  T* zeros(std::size_t count) {
    T* const at = take<T>(count);
    check(cudaMemsetAsync(at, 0, count * sizeof(T), stream_), "clear memory for a verification");
    return at;
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    T* const at = take<T>(values.size());
    check(cudaMemcpyAsync(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream_),
          "upload for a verification");
    return at;
  }
  template <class T>
  std::vector<T> get(const T* from, std::size_t count) {
    std::vector<T> values(count);
    check(cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream_),
          "download for a verification");
    check(cudaStreamSynchronize(stream_), "download for a verification");
    return values;
  }

 private:
  cudaStream_t stream_;
  char* next_;
};

bool CudaInspector::make_room(std::size_t bytes) {
  bytes = std::max(bytes + 16 * alignment, least_room);
  if (bytes <= bytes_) return true;
  memory_.reset();  // after what still reads there: cudaFree waits
  bytes_ = 0;
  memory_ = device_memory(bytes);
  if (memory_) bytes_ = bytes;
  return memory_ != nullptr;
}

std::vector<double> CudaInspector::read(const Tensor& t) {
  if (t.elements() == 0) return {};
  if (t.contiguous()) return read(t.flat(), std::vector<RowSegment>{{0, 0, t.elements()}});
  return read(t, compute::segments_of(t, {{0, t.elements()}}));
}

std::vector<double> CudaInspector::read(const Tensor& t, const std::vector<RowSegment>& segments) {
  std::vector<GatheredSegment> gathered;
  std::int64_t elements = 0;
  const std::int64_t step = t.step(-1);
  for (const RowSegment& s : segments)
    add_segment(gathered, compute::offset_of_row(t, s.row) + s.first * step, step, s.count, elements);
  if (elements == 0) return {};
  if (!make_room(count_of(elements) * sizeof(double) + gathered.size() * sizeof(GatheredSegment)))
    return on_host_.read(t, segments);
  Room room(*this);
  const GatheredSegment* const on_device = room.put(gathered);
  auto* const out = room.take<double>(count_of(elements));
  gather(inspected(t), step, on_device, static_cast<std::int64_t>(gathered.size()), out, stream_);
  return room.get(out, count_of(elements));
}

std::vector<float> CudaInspector::read(const Tensor& t, const std::vector<ElementSpan>& spans) {
  std::vector<GatheredSegment> gathered;
  std::int64_t elements = 0;
  for (const ElementSpan& span : spans) add_segment(gathered, span.first, 1, span.count, elements);
  if (elements == 0) return {};
  if (!make_room(count_of(elements) * sizeof(float) + gathered.size() * sizeof(GatheredSegment)))
    return on_host_.read(t, spans);
  Room room(*this);
  const GatheredSegment* const on_device = room.put(gathered);
  auto* const out = room.take<float>(count_of(elements));
  gather(inspected(t.flat()), 1, on_device, static_cast<std::int64_t>(gathered.size()), out, stream_);
  return room.get(out, count_of(elements));
}

std::uint64_t CudaInspector::hash(const Tensor& t) {
  if (t.elements() == 0) return 0;
  if (!make_room(sizeof(unsigned long long))) return on_host_.hash(t);
  Room room(*this);
  auto* const sum = room.zeros<unsigned long long>(1);
  cuda::hash(t.data, static_cast<std::int64_t>(t.bytes()), sum, stream_);
  return room.get(sum, 1).front();
}

MatrixSums CudaInspector::sum_matrix(const Tensor& t, const LineWeights& over_columns, const LineWeights& over_rows) {
  if (t.step(1) != 1 && t.step(0) == 1) {
    MatrixSums turned = sum_matrix(t.transposed(0, 1), over_rows, over_columns);
    std::swap(turned.of_rows, turned.of_columns);
    return turned;
  }
  const std::size_t rows = count_of(t.dim(0)), columns = count_of(t.dim(1));
  if (!make_room(4 * (rows + columns) * sizeof(double) + 8 * alignment))
    return on_host_.sum_matrix(t, over_columns, over_rows);
  Room room(*this);
  MatrixSums sums;
  const auto sums_of = [&](const LineWeights& weights, std::size_t lines, const auto& enqueue) {
    if (weights.values.empty()) return compute::LineSums();
    const double* const w = room.put(weights.values);
    const double* const w2 = room.put(weights.squares);
    auto* const values = room.zeros<double>(lines);
    auto* const squares = room.zeros<double>(lines);
    if (columns > 0) enqueue(inspected(t), w, w2, values, squares, stream_);
    compute::LineSums found;
    found.values = room.get(values, lines);
    found.squares = room.get(squares, lines);
    return found;
  };
  sums.of_rows = sums_of(over_columns, rows, sum_rows);
  sums.of_columns = sums_of(over_rows, columns, sum_columns);
  return sums;
}

std::vector<WeightedSum> CudaInspector::sum_spans(const Tensor& t, const std::vector<WeightedSpan>& spans,
                                                  const std::vector<float>& weights) {
  if (spans.empty()) return {};
  if (!make_room(spans.size() * (sizeof(WeightedSpan) + sizeof(WeightedSum)) + weights.size() * sizeof(float)))
    return on_host_.sum_spans(t, spans, weights);
  Room room(*this);
  const WeightedSpan* const on_device = room.put(spans);
  const float* const factors = room.put(weights);
  auto* const sums = room.zeros<WeightedSum>(spans.size());
  cuda::sum_spans(inspected(t.flat()), on_device, static_cast<std::int64_t>(spans.size()), factors,
                  static_cast<std::int64_t>(weights.size()), sums, stream_);
  return room.get(sums, spans.size());
}

std::vector<double> CudaInspector::product(const std::vector<double>& x, std::int64_t rows, const Tensor& w) {
  const std::size_t results = count_of(rows * w.dim(0));
  if (results == 0) return {};
  if (!make_room((x.size() + results) * sizeof(double))) return on_host_.product(x, rows, w);
  Room room(*this);
  const double* const on_device = room.put(x);
  auto* const y = room.zeros<double>(results);
  cuda::product(on_device, rows, inspected(w), y, stream_);
  return room.get(y, results);
}

BlockSums CudaInspector::difference_from_product(const Tensor& found, float factor, const std::vector<double>& a,
                                                 const std::vector<double>& b, std::int64_t rows) {
  BlockSums sums;
  sums.elements = found.elements();
  const std::size_t blocks = count_of((sums.elements + BlockSums::block_elements - 1) / BlockSums::block_elements);
  if (blocks == 0) return sums;
  if (!make_room((a.size() + b.size()) * sizeof(double) + blocks * sizeof(BlockSums::Block)))
    return on_host_.difference_from_product(found, factor, a, b, rows);
  Room room(*this);
  const double* const left = room.put(a);
  const double* const right = room.put(b);
  auto* const on_device = room.take<BlockSums::Block>(blocks);
  cuda::difference_from_product(inspected(found), factor, left, right, rows, on_device, stream_);
  sums.blocks = room.get(on_device, blocks);
  return sums;
}

std::unique_ptr<KeptTensor> CudaInspector::keep(const Tensor& t, std::int64_t most_on_host) {
  std::size_t free_bytes = 0, all_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "ask for free memory");
  if (t.elements() > 0 && free_bytes >= t.bytes() + left_free)
    if (DeviceMemory memory = device_memory(t.bytes())) {
      check(cudaMemcpyAsync(memory.get(), t.data, t.bytes(), cudaMemcpyDeviceToDevice, stream_),
            "keep a tensor for a verification");
      check(cudaStreamSynchronize(stream_), "keep a tensor for a verification");
      return std::make_unique<KeptOnDevice>(*this, std::move(memory), t, most_on_host);
    }
  std::vector<ElementSpan> spans = compute::spread_spans(t.elements(), most_on_host);
  std::vector<float> values = read(t, spans);
  return std::make_unique<compute::KeptOnHost>(std::move(values), std::move(spans));
}

BlockSums CudaInspector::difference(const KeptTensor& found, const Tensor& expected) {
  const auto* const on_device = dynamic_cast<const KeptOnDevice*>(&found);
  if (const auto* const on_host = on_device ? on_device->on_host() : dynamic_cast<const compute::KeptOnHost*>(&found)) {
    if (expected.contiguous()) return compute::block_sums(on_host->values(), read(expected, on_host->spans()));
    const std::vector<double> wide = read(expected, compute::segments_of(expected, on_host->spans()));
    return compute::block_sums(on_host->values(), {wide.begin(), wide.end()});
  }
  if (!on_device) throw Error(ASSAY_INTERNAL, "the GPU's inspector is given a tensor that another one has kept");
  const Tensor& kept = on_device->tensor();
  if (kept.elements() != expected.elements())
    throw Error(ASSAY_INTERNAL,
                std::to_string(kept.elements()) + " elements are held against " + std::to_string(expected.elements()));
  BlockSums sums;
  sums.elements = kept.elements();
  const std::size_t blocks = count_of((sums.elements + BlockSums::block_elements - 1) / BlockSums::block_elements);
  if (!make_room(blocks * sizeof(BlockSums::Block)))
    throw Error(ASSAY_OUT_OF_MEMORY, "no device memory for the differences of a tensor");
  Room room(*this);
  auto* const of_blocks = room.take<BlockSums::Block>(blocks);
  cuda::difference(inspected(kept), inspected(expected), sums.elements, of_blocks, stream_);
  sums.blocks = room.get(of_blocks, blocks);
  return sums;
}

void CudaInspector::release_memory() {
  memory_.reset();  // cudaFree waits for what still reads there
  bytes_ = 0;
}

}  // namespace assay::cuda
