#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "common/probe_parts.hpp"
#include "cuda_handles.hpp"
#include "device_context.hpp"
#include "probe_product.hpp"
#include "probes.hpp"
#include "telemetry_nvml.hpp"

namespace assay::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* nvml_file = "libnvidia-ml.so.1";

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// One figure that NVML gives, or nothing.
struct Source {
  const char* name;
  std::function<bool(double& value)> read;
};

std::vector<Source> sources(const NvmlLibrary& nvml, nvml::Device device) {
  const auto whole = [device](auto* function, auto... arguments) {
    return [=](double& value) {
      unsigned read = 0;
      if (!function || function(device, arguments..., &read) != nvml::success) return false;
      value = read;
      return true;
    };
  };
  return {{"power", whole(nvml->power)},
          {"sm_clock", whole(nvml->clock, nvml::clock_sm)},
          {"temperature", whole(nvml->temperature, nvml::temperature_gpu)},
          {"energy",
           [&nvml, device](double& value) {
             unsigned long long read = 0;
             if (!nvml->energy || nvml->energy(device, &read) != nvml::success) return false;
             value = static_cast<double>(read);
             return true;
           }},
          {"utilisation", [&nvml, device](double& value) {
             nvml::Utilisation read{};
             if (!nvml->utilisation || nvml->utilisation(device, &read) != nvml::success) return false;
             value = read.gpu_percent;
             return true;
           }}};
}

// The median time from one change of a value to the next while the GPU is loaded; 0 where it changed less than three
// times. The values of an idle GPU need not change.
double period_ms(const Source& source, double for_s) {
  std::vector<double> changes_ms;
  double before = 0, now = 0;
  if (!source.read(before)) return 0;
  const auto begin = Clock::now();
  double last_s = -1;
  while (seconds_since(begin) < for_s) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    if (!source.read(now) || now == before) continue;
    before = now;
    const double at_s = seconds_since(begin);
    if (last_s >= 0) changes_ms.push_back((at_s - last_s) * 1e3);
    last_s = at_s;
  }
  return changes_ms.size() < 2 ? 0 : compute::median(changes_ms);
}

// Runs the product over and over until it ends: a GPU at work.
class Load {
 public:
  explicit Load(const ProbeProduct& product) {
    int ordinal = 0;
    check(cudaGetDevice(&ordinal), "ask for the device of a probe");
    thread_ = std::jthread([this, &product, ordinal](const std::stop_token& stop) {
      try {
        check(cudaSetDevice(ordinal), "make the device current to a thread");
        while (!stop.stop_requested()) product.time_us(4);
      } catch (const Error& e) {
        failure_ = e.what();
      }
    });
  }
  // Throws what went wrong in it.
  void end() {
    thread_.request_stop();
    thread_.join();
    if (!failure_.empty()) throw Error(ASSAY_DEVICE_ERROR, failure_);
  }

 private:
  std::string failure_;
  std::jthread thread_;
};

// When a reading has first come to `wanted`, in ms from now; negative: not in time.
double until_ms(const Source& source, double wanted, double for_s) {
  const auto begin = Clock::now();
  double now = 0;
  while (seconds_since(begin) < for_s) {
    if (source.read(now) && now >= wanted) return seconds_since(begin) * 1e3;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return -1;
}

}  // namespace

void probe_telemetry(assay_device& device, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "telemetry");
  assay_device_info info{};
  info.struct_size = sizeof info;
  if (assay_device_v1.info(&device, &info) != ASSAY_OK) throw Error(ASSAY_DEVICE_ERROR, assay_device_v1.error_text());
  const NvmlLibrary nvml(nvml_file);
  nvml::Device handle = nullptr;
  if (const nvml::Return status = nvml->device_by_bus_address(info.bus_address, &handle); status != nvml::success)
    throw Error(ASSAY_UNSUPPORTED, "NVML: " + nvml.words_for(status));
  const std::vector<Source> all = sources(nvml, handle);
  for (const Source& source : all) {
    double value = 0;
    if (!source.read(value)) continue;
    std::vector<double> calls_us;
    for (int i = 0; i < 50; ++i) calls_us.push_back(compute::microseconds_of([&] { source.read(value); }));
    found.number(std::string(source.name) + "_call_us", compute::median(calls_us));
  }
  const ProbeProduct product(ProbeProduct::large_cube(), ProbeData::normal);
  product.time_us(1);                                    // its kernel is loaded
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the power of the idle GPU settles
  const Source& power = all.front();
  double idle = 0;
  const bool has_power = power.read(idle) && idle > 0;
  Load load(product);
  if (has_power)
    if (const double ms = until_ms(power, 1.5 * idle, 3); ms >= 0) found.number("power_delay_ms", ms);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (const Source& source : all)
    if (const double ms = period_ms(source, 2); ms > 0) found.number(std::string(source.name) + "_period_ms", ms);
  load.end();
}

}  // namespace assay::cuda
