#include "probes.hpp"

#include <array>
#include <cstring>

#include "common/probe_parts.hpp"
#include "cuda_handles.hpp"
#include "device_context.hpp"

namespace assay::cuda {
namespace {

compute::StatusGuard probe_guard = nullptr;

constexpr std::array<compute::NamedProbe, 7> probes{{{"events", probe_events},
                                                     {"graphs", probe_graphs},
                                                     {"telemetry", probe_telemetry},
                                                     {"copies", probe_copies},
                                                     {"products", probe_products},
                                                     {"fp8", probe_fp8},
                                                     {"attention", probe_attention}}};

constexpr assay_probe probe{
    sizeof(assay_probe),
    compute::text_of_names<probes>.data(),
    [](assay_device* device, const char* name, const assay_probe_sink* sink) noexcept {
      return compute::guarded(probe_guard, [&] {
        need_context(*device);
        compute::run_probe(probes, *device, name, sink);
      });
    },
};

// GB/s of what is copied, the best of some copies.
double rate_of_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const Stream& stream) {
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault);
  float least_ms = 0;
  for (int i = 0; i < 10; ++i) {
    check(cudaEventRecord(begin.get(), stream.get()), "time a copy");
    check(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "copy for a probe");
    check(cudaEventRecord(end.get(), stream.get()), "time a copy");
    check(cudaStreamSynchronize(stream.get()), "wait for a copy");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time of a copy");
    if (i == 0 || ms < least_ms) least_ms = ms;
  }
  return static_cast<double>(bytes) / (static_cast<double>(least_ms) * 1e6);
}

}  // namespace

const void* probe_extension(const char* id, compute::StatusGuard guard) noexcept {
  probe_guard = guard;
  return std::strcmp(id, ASSAY_EXT_PROBE) == 0 ? &probe : nullptr;
}

void probe_copies(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "rate");
  const Stream stream = make_stream(priority_of_steps);
  constexpr std::size_t within = std::size_t{1} << 30, across = std::size_t{256} << 20;
  const DeviceMemory one = probe_memory(within), other = probe_memory(within);
  check(cudaMemsetAsync(one.get(), 0x3c, within, stream.get()), "fill memory for a probe");
  void* host = nullptr;
  check(cudaMallocHost(&host, across), "allocate pinned memory for a probe");
  const PinnedMemory pinned(host);
  std::memset(host, 0x3c, across);
  // What is copied within is read and written.
  found.number("copy_gbytes_per_s", 2 * rate_of_copy(other.get(), one.get(), within, cudaMemcpyDeviceToDevice, stream));
  found.number("to_device_gbytes_per_s", rate_of_copy(one.get(), host, across, cudaMemcpyHostToDevice, stream));
  found.number("to_host_gbytes_per_s", rate_of_copy(host, one.get(), across, cudaMemcpyDeviceToHost, stream));
}

}  // namespace assay::cuda
