#include "matrix_product.hpp"

#include <algorithm>
#include <assay/comm/exact_data.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/shared_tuning.hpp>
#include <cmath>
#include <cstring>
#include <vector>

namespace node_check {

namespace op = assay::compute::op;

using assay::DeviceMemory;
using assay::compute::DType;
using assay::compute::Tensor;

namespace {

constexpr std::int64_t piece_elements = 1 << 22;  // of what is on the host at once

DType dtype_of(Precision precision) {
  return precision == Precision::bf16 ? DType::bf16 : precision == Precision::fp16 ? DType::f16 : DType::f32;
}

// f(rows of x, index of the first one), a few rows at a time.
template <class F>
void for_each_rows(const Tensor& x, const F& f) {
  const std::int64_t most = std::max<std::int64_t>(1, piece_elements / x.dim(1));
  for (std::int64_t first = 0; first < x.dim(0); first += most)
    f(x.slice(0, first, std::min(most, x.dim(0) - first)), first);
}

}  // namespace

MatrixProduct::MatrixProduct(const assay::Host& host, const Settings& settings)
    : host_(host),
      settings_(settings),
      dtype_(dtype_of(settings.precision)),
      exact_(settings.seed + static_cast<std::uint64_t>(settings.rank), settings.size) {}

assay::Work MatrixProduct::work() const {
  const auto n = static_cast<std::uint64_t>(settings_.size);
  return {.flops = 2 * n * n * n * static_cast<std::uint64_t>(settings_.repeats)};
}

void MatrixProduct::setup(const Launch& launch) {
  backend_ = std::make_unique<assay::compute::CountedBackend>(assay::workload::open_backend(host_, launch));
  if (settings_.precision == Precision::tf32) backend_->set_product_math(assay::compute::ProductMath::tf32);
  const std::int64_t n = settings_.size;
  const std::size_t bytes = Tensor(nullptr, dtype_, {n, n}).bytes();
  const std::size_t place = (bytes + 255) / 256 * 256;
  factors_memory_ = DeviceMemory(host_, ASSAY_MEMORY_DATA, 3 * place, "factors");
  const auto factor = [&](std::size_t i) { return Tensor(factors_memory_.data<char>() + i * place, dtype_, {n, n}); };
  a_ = factor(0), minus_a_ = factor(1), b_ = factor(2);
  c_ = Tensor(nullptr, DType::f32, {n, n});
  result_memory_ = DeviceMemory(host_, ASSAY_MEMORY_ACTIVATIONS, c_.bytes(), "result");
  c_.data = result_memory_.data();

  {
    // Ranks are compared with each other: they run one algorithm.
    const assay::workload::SharedTuning shared(host_, *backend_, "product");
    workspace_.prepare(host_, *backend_, [this] { enqueue_product(); });
  }
  products_ = 0;
  write(a_, exact_.a(), 1);
  write(minus_a_, exact_.a(), -1);
  write(b_, exact_.b(), 1);
  backend_->run(op::Fill{.x = c_, .value = 0});
  backend_->begin_steps();
}

void MatrixProduct::write(const Tensor& to, const IntegerMatrix& from, int sign) const {
  const std::size_t element = size_of(dtype_);
  std::vector<std::byte> host;
  for_each_rows(to, [&](const Tensor& rows, std::int64_t first) {
    host.resize(rows.bytes());
    std::byte* out = host.data();
    for (std::int64_t r = first; r < first + rows.dim(0); ++r)
      for (std::int64_t c = 0; c < to.dim(1); ++c, out += element) {
        const std::uint32_t bits = assay::comm::bits_of(dtype_, sign * from.at(r, c));
        std::memcpy(out, &bits, element);  // the low bytes come first
      }
    backend_->upload(rows, host.data());
  });
}

void MatrixProduct::enqueue_product() {
  backend_->run(op::Matmul{.a = products_++ % 2 == 0 ? a_ : minus_a_, .b = b_, .c = c_, .accumulate = true});
}

void MatrixProduct::run(const Launch& launch) {
  {
    const auto phase = launch.phase(product_phase);
    for (std::int64_t i = 0; i < settings_.repeats; ++i) enqueue_product();
  }
  if (settings_.fault != Fault::none && launch.iteration() == 0) spoil();
}

// Every product is in the sum, which cannot be spoiled: the operations count it, and verify has their number's parity.
assay::Account MatrixProduct::account(const Launch&) {
  return {.steps = backend_->steps(static_cast<std::uint64_t>(settings_.repeats))};
}

void MatrixProduct::spoil() const {
  const Tensor element = c_.slice(0, settings_.size / 2, 1).slice(1, settings_.size / 3, 1);
  float value = 0;
  backend_->download(&value, element);
  value = settings_.fault == Fault::not_a_number ? NAN : value + 1;
  backend_->upload(element, &value);
}

Findings MatrixProduct::compare() {
  std::vector<float> host;
  Findings all;
  for_each_rows(c_, [&](const Tensor& rows, std::int64_t first) {
    host.resize(static_cast<std::size_t>(rows.elements()));
    backend_->download(host.data(), rows);
    all.add(exact_.compare(host, first, static_cast<int>(products_ % 2)));
  });
  return all;
}

std::string MatrixProduct::verify(const Launch& launch) {
  exact_.prepare();
  // With one product more. What a product does wrong each time in the same way is in the result after every second one.
  Findings found = compare();
  enqueue_product();
  found.add(compare());
  const std::string size = std::to_string(settings_.size);
  return verdict_of_ranks(host_, launch, found,
                          "sum of " + std::to_string(products_) + " products of " + size + " x " + size + " in " +
                              precisions.name_of(settings_.precision) +
                              " with alternating signs, after the last two of them");
}

}  // namespace node_check
