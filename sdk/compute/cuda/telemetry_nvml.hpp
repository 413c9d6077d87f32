// What NVML reports of one GPU. Plain C++, without the CUDA runtime: a library that pretends to be NVML tests all of
// it.
#pragma once
#include <assay/telemetry.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "telemetry_nvml_api.hpp"

namespace assay::cuda {

// NVML, opened and initialised. The library stays loaded: the driver keeps its own threads.
class NvmlLibrary {
 public:
  explicit NvmlLibrary(const char* file);  // throws Error(ASSAY_UNSUPPORTED) with the remedy
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const nvml::Functions* operator->() const { return &functions_; }
  std::string words_for(nvml::Return status) const;

 private:
  nvml::Functions functions_{};
};

// What this process is to the GPU: one that has a context on it, and so is in the list of those that compute, or one
// that looks at it while processes that it has started compute.
enum class Presence { computes, looks };

// One thread at a time. What NVML refuses is left out of a sample, and named once in note().
class NvmlReader {
 public:
  // Throws Error(ASSAY_UNSUPPORTED) where there is no NVML, or where it does not know the GPU.
  explicit NvmlReader(const std::string& bus_address, Presence presence = Presence::computes,
                      const char* library = "libnvidia-ml.so.1");

  const std::string& note() const { return note_; }
  void limits(assay_telemetry_limits& out) const;
  void sample(assay_telemetry_moment moment, assay_telemetry_sample& out);

 private:
  struct Refusal {
    std::string what;
    nvml::Return status;
  };
  struct Reading {
    double percent, span_s;
  };
  template <class Function, class... Arguments>
  bool told(const char* what, Function* function, Arguments... arguments);
  void read_clocks_and_power(assay_telemetry_moment moment, assay_telemetry_sample& out);
  void read_utilisation(assay_telemetry_moment moment, assay_telemetry_sample& out);
  void read_processes(assay_telemetry_sample& out);
  // The first `count` of processes_: those of this process, and the others, where the list has ids of this container.
  void read_own_and_others(std::size_t count, assay_telemetry_sample& out);
  // Where none of them is known to be this process's: those that certainly are not.
  void count_strangers(std::size_t count, assay_telemetry_sample& out) const;
  // The mean of the driver's samples since the last call; nothing when there is no new one.
  std::optional<Reading> new_samples();
  void write_note();

  NvmlLibrary nvml_;
  const Presence presence_;
  nvml::Device device_ = nullptr;
  bool is_mig_ = false;
  std::vector<nvml::Sample> samples_;  // room for what the driver keeps; empty where it keeps none
  unsigned long long last_seen_us_ = 0;
  bool has_told_utilisation_ = false;  // since the window's begin
  std::vector<nvml::Process> processes_;
  std::vector<unsigned> ids_before_;  // on the GPU when the reader was made, before this process has started others
  bool is_probing_ = true;            // the constructor's sample finds out what is refused
  std::vector<Refusal> refusals_;
  std::string note_;
};

}  // namespace assay::cuda
