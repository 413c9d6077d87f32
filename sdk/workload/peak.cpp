#include "assay/workload/peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>

#include "assay/workload/open_backend.hpp"
#include "assay/workload/shared_tuning.hpp"

namespace assay::workload {

namespace op = compute::op;

namespace {

using compute::Backend;
using compute::Mode;
using compute::Tensor;
using Clock = std::chrono::steady_clock;

constexpr int fewest_runs = 3, most_runs = 20;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Memory straight from the device, which no account of the case has.
class PeakMemory {
 public:
  PeakMemory(const assay_device_access& access, std::size_t bytes) : access_(access) {
    if (const assay_status s = access.api->allocate(access.device, std::max<std::size_t>(bytes, 1), &address_);
        s != ASSAY_OK)
      throw Error(s, std::to_string(bytes) + " bytes to measure the device's peak: " + access.api->error_text());
  }
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;
  ~PeakMemory() { access_.api->release(access_.device, address_); }
  char* data() const { return static_cast<char*>(address_); }

 private:
  const assay_device_access& access_;
  void* address_ = nullptr;
};

double shortest_s(Backend& backend, double enough_s, const std::function<void()>& enqueue) {
  enqueue();
  backend.synchronize();
  double shortest = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (int run = 0; run < most_runs && (run < fewest_runs || seconds_since(begin) < enough_s); ++run) {
    const auto run_begin = Clock::now();
    enqueue();
    backend.synchronize();
    shortest = std::min(shortest, seconds_since(run_begin));
  }
  return shortest;
}

// What a trial is made of.
struct Trial {
  std::int64_t width;        // of square matrices
  std::size_t copied_bytes;  // beyond caches, unless it is brief
  double enough_s;
};

Trial trial_on(std::string_view kind) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (kind != "cpu") return {8192, 256 * mib, 0.04};
  if (peak_trial_is_brief()) return {brief_trial_width, mib, 0.002};
  return {768, 32 * mib, 0.04};
}

}  // namespace

bool peak_trial_is_brief() {
  const char* const wanted = std::getenv("ASSAY_PEAK_TRIAL");
  if (!wanted || !*wanted) return false;
  if (std::string_view(wanted) != "brief")
    throw Error(ASSAY_INVALID_ARGUMENT,
                "ASSAY_PEAK_TRIAL is \"" + std::string(wanted) + "\"; expected brief, or leave it unset");
  return true;
}

Peak measure_peak(const Host& host, const Launch& launch, const PrecisionPolicy& precision) {
  const std::unique_ptr<Backend> backend = open_backend(host, launch);
  const auto& access = *host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  if (precision.product_math != compute::ProductMath::exact) backend->set_product_math(precision.product_math);
  const Trial trial = trial_on(backend->kind());
  const std::int64_t n = trial.width;
  const std::size_t copied_bytes = trial.copied_bytes;
  const std::size_t matrix_bytes = Tensor(nullptr, precision.activation, {n, n}).bytes();
  const bool eight_bits = precision.eight_bit_products;
  const std::size_t scale_bytes = Tensor(nullptr, compute::DType::f32, {n}).bytes();
  const PeakMemory memory(access, std::max(4 * matrix_bytes + 2 * scale_bytes, 2 * copied_bytes));
  const auto matrix = [&](std::size_t i) {
    return Tensor(memory.data() + i * matrix_bytes, precision.activation, {n, n});
  };
  const auto in_eight_bits = [&](std::size_t i) {
    return Tensor(memory.data() + (3 * 2 + i) * matrix_bytes / 2, compute::DType::f8_e4m3, {n, n});
  };
  const auto scales = [&](std::size_t i) {
    return Tensor(memory.data() + 4 * matrix_bytes + i * scale_bytes, compute::DType::f32, {n});
  };
  const auto product = [&] {
    if (eight_bits)
      backend->run(op::Matmul{.a = in_eight_bits(0),
                              .b = in_eight_bits(1),
                              .c = matrix(2),
                              .transpose_b = true,
                              .a_scale = scales(0),
                              .b_scale = scales(1),
                              .fast_accumulation = true});
    else
      backend->run(op::Matmul{.a = matrix(0), .b = matrix(1), .c = matrix(2)});
  };
  {
    const SharedTuning shared(host, *backend, "peak");
    backend->set_mode(Mode::prepare);
    product();
    backend->set_mode(Mode::execute);
  }
  const PeakMemory workspace(access, backend->workspace_bytes());
  backend->set_workspace(workspace.data(), backend->workspace_bytes());
  for (const std::size_t i : {0, 1})
    backend->run(op::RandomNormal{.x = matrix(i), .seed = 1, .stream = i, .mean = 0, .std = 1});
  if (eight_bits)
    for (const std::size_t i : {0, 1})
      backend->run(op::QuantizeRows{.x = matrix(i), .y = in_eight_bits(i), .inverse_scale = scales(i)});
  Peak peak;
  peak.flops_per_s = 2.0 * static_cast<double>(n * n * n) / shortest_s(*backend, trial.enough_s, product);
  const auto count = static_cast<std::int64_t>(copied_bytes / sizeof(float));
  const Tensor from(memory.data(), compute::DType::f32, {count});
  const Tensor to(memory.data() + copied_bytes, compute::DType::f32, {count});
  backend->run(op::Fill{.x = from, .value = 1.0});
  peak.bytes_per_s = 2.0 * static_cast<double>(copied_bytes) /
                     shortest_s(*backend, trial.enough_s, [&] { backend->run(op::Copy{.to = to, .from = from}); });
  peak.text = "the best of a few products " + std::to_string(n) + " wide, and of copies of " +
              std::to_string(copied_bytes >> 20) + " MiB";
  return peak;
}

}  // namespace assay::workload
