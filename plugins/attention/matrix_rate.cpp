#include "matrix_rate.hpp"

#include <algorithm>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/peak.hpp>
#include <chrono>
#include <vector>

namespace attention {

namespace op = assay::compute::op;

using assay::compute::Backend;
using assay::compute::Mode;
using assay::compute::ProductMath;
using assay::compute::Tensor;
using Clock = std::chrono::steady_clock;

namespace {

// median_ms() stops after most_runs, after enough_ms with at least enough_runs, or after too_long_ms with fewer.
constexpr std::size_t enough_runs = 3, most_runs = 20;
constexpr double enough_ms = 100, too_long_ms = 1000;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Memory straight from the device.
class Scratch {
 public:
  Scratch(const assay_device_access& access, std::size_t bytes) : access_(access) {
    if (const assay_status s = access.api->allocate(access.device, bytes, &address_); s != ASSAY_OK)
      throw assay::Error(s, std::to_string(bytes) + " bytes for the matrices whose product gives the device's rate: " +
                                access.api->error_text());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { access_.api->release(access_.device, address_); }
  void* data() const { return address_; }

 private:
  const assay_device_access& access_;
  void* address_ = nullptr;
};

}  // namespace

double median_ms(Backend& backend, const std::function<void()>& enqueue) {
  std::vector<double> runs;
  backend.synchronize();
  const auto begin = Clock::now();
  const auto go_on = [&] { return ms_since(begin) < (runs.size() < enough_runs ? too_long_ms : enough_ms); };
  while (runs.empty() || (runs.size() < most_runs && go_on())) {
    const auto run_begin = Clock::now();
    enqueue();
    backend.synchronize();
    runs.push_back(ms_since(run_begin));
  }
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end());
  return *middle;
}

double measure_matrix_rate(const assay::Host& host, const assay::Launch& launch,
                           const assay::workload::PrecisionPolicy& precision) {
  const std::unique_ptr<Backend> backend = assay::workload::open_backend(host, launch);
  const auto& access = *host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  if (precision.product_math != ProductMath::exact) backend->set_product_math(precision.product_math);
  const bool on_cpu = std::string_view(backend->kind()) == "cpu";
  const std::int64_t n = !on_cpu                                  ? 8192
                         : assay::workload::peak_trial_is_brief() ? assay::workload::brief_trial_width
                                                                  : 2048;
  const std::size_t bytes = Tensor(nullptr, precision.activation, {n, n}).bytes();
  const Scratch memory(access, 3 * bytes);
  const auto matrix = [&](std::size_t i) {
    return Tensor(static_cast<char*>(memory.data()) + i * bytes, precision.activation, {n, n});
  };
  const auto product = [&] { backend->run(op::Matmul{.a = matrix(0), .b = matrix(1), .c = matrix(2)}); };

  backend->set_mode(Mode::prepare);
  product();
  backend->set_mode(Mode::execute);
  const Scratch workspace(access, std::max<std::size_t>(1, backend->workspace_bytes()));
  backend->set_workspace(workspace.data(), backend->workspace_bytes());
  for (const std::size_t i : {0, 1})
    backend->run(op::RandomNormal{.x = matrix(i), .seed = 1, .stream = i, .mean = 0, .std = 1});
  product();
  return 2e-9 * static_cast<double>(n * n * n) / median_ms(*backend, product);
}

}  // namespace attention
