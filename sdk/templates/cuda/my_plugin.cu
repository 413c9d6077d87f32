// my_plugin: y += a x over one vector, by its own kernel on the stream of the case.
#include <assay/plugin.hpp>

#include <cmath>
#include <vector>

namespace {

constexpr int threads = 256;

// Another value for each place nearby: a kernel that mixes places up is found.
__host__ __device__ float value_of_x(std::int64_t i) { return static_cast<float>(1 + i % 1009); }

__global__ void fill(float* x, float* y, std::int64_t n, unsigned long long* steps) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value_of_x(i), y[i] = 0;
  if (i == 0) *steps = 0;
}

// The thread of the last element counts the step: a kernel that was not launched counts none.
__global__ void axpy(float a, const float* x, float* y, std::int64_t n, unsigned long long* steps) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
  if (i == n - 1) ++*steps;
}

// For every call of the CUDA runtime: its error is the case's, with the name of what failed.
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw assay::Error(error == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY : ASSAY_DEVICE_ERROR,
                     std::string(what) + ": " + cudaGetErrorString(error));
}

struct MyPlugin {
  static constexpr auto id = "my_plugin", summary = "y += a x over one vector", item_unit = "elements";
  static constexpr auto params = assay::table(
      assay::Param::integer("n", 1 << 20).at_least(1).at_most(1 << 28).unit("elements").help("length of the vectors"),
      assay::Param::real("a", 0.5).help("factor"));
  static constexpr auto axpy_phase = assay::phase("axpy");
  static constexpr auto phases = assay::table(axpy_phase);
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CUDA;

  explicit MyPlugin(const assay::Case& c) : host(c.host()), n(c.get<std::int64_t>("n")), a(c.get<float>("a")) {}

  // Once, before the warm-up. The case's GPU is current on this thread; memory from the host is in the record, by kind.
  void setup(const assay::Launch& launch) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "y");
    steps = assay::DeviceMemory(host, ASSAY_MEMORY_WORKSPACE, sizeof(unsigned long long), "steps");
    begin(launch);
    check(cudaStreamSynchronize(stream_of(launch)), "fill");
  }

  // One step: it only enqueues, on the stream that it is given. The host waits, and reads the time from the GPU's
  // clock.
  void run(const assay::LaunchOf<MyPlugin>& launch) {
    const auto phase = launch.phase(axpy_phase);
    step(launch);
  }

  // After the last measured step. The host compares it with the steps that it has timed.
  assay::Account account(const assay::Launch& launch) {
    unsigned long long counted = 0;
    check(cudaMemcpyAsync(&counted, steps.data(), sizeof counted, cudaMemcpyDeviceToHost, stream_of(launch)), "copy");
    check(cudaStreamSynchronize(stream_of(launch)), "copy of the number of steps");
    return {.steps = counted};
  }

  // After that: two more, from y = 0. What is wrong has no times: throw WRONG_RESULT, or return what was
  // checked.
  std::string verify(const assay::Launch& launch) {
    begin(launch), step(launch), step(launch);
    std::vector<float> ys(static_cast<std::size_t>(n));
    check(cudaMemcpyAsync(ys.data(), y.data(), y.bytes(), cudaMemcpyDeviceToHost, stream_of(launch)), "copy of y");
    check(cudaStreamSynchronize(stream_of(launch)), "copy of y");
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = 2 * double{a} * double{value_of_x(i)};
      const double found = double{ys[static_cast<std::size_t>(i)]};
      if (!(std::abs(found - expected) <= 1e-6 * std::abs(expected)))  // a NaN is wrong, too
        throw assay::Error(ASSAY_WRONG_RESULT, "y[" + std::to_string(i) + "] is " + std::to_string(found) +
                                                   ", expected " + std::to_string(expected));
    }
    return "two steps from 0 make every y[i] 2 a x[i]";
  }

  // Of one step: a multiply and an add for each element; reads x, reads y, writes y, of 4 bytes each.
  assay::Work work() const {
    const auto count = static_cast<std::uint64_t>(n);
    return {.flops = 2 * count, .bytes = 12 * count, .items = count, .arithmetic = ASSAY_ARITHMETIC_FP32};
  }

 private:
  static cudaStream_t stream_of(const assay::Launch& launch) { return static_cast<cudaStream_t>(launch.stream()); }
  void begin(const assay::Launch& launch) {
    fill<<<blocks(), threads, 0, stream_of(launch)>>>(x.data<float>(), y.data<float>(), n,
                                                      steps.data<unsigned long long>());
    check(cudaGetLastError(), "fill");
  }
  void step(const assay::Launch& launch) {
    axpy<<<blocks(), threads, 0, stream_of(launch)>>>(a, x.data<float>(), y.data<float>(), n,
                                                      steps.data<unsigned long long>());
    check(cudaGetLastError(), "axpy");
  }
  unsigned blocks() const { return static_cast<unsigned>((n + threads - 1) / threads); }

  assay::Host host;
  std::int64_t n;
  float a;
  assay::DeviceMemory x, y, steps;
};

}  // namespace

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", MyPlugin)
