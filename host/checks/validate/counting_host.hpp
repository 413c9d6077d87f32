// The services of a case as a plugin gets them in `assay run`, with someone in between who counts, and may refuse.
#pragma once
#include <assay/abi.h>
#include <assay/device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plugin/device_library.hpp"
#include "worker/host_services.hpp"

namespace assay::host::validate {

struct Counts {
  std::size_t allocations = 0, synchronisations = 0, logs = 0;
};

// One at a time: what a device's table calls has no argument for an object.
class CountingHost {
 public:
  CountingHost(worker::HostServices& services, const plugin::OpenDevice& device);
  CountingHost(const CountingHost&) = delete;
  CountingHost& operator=(const CountingHost&) = delete;
  ~CountingHost();

  const assay_host* abi() const { return &host_; }
  // For a call to come. `recorder` as in HostServices::launch.
  assay_launch launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder);

  const Counts& counts() const { return counts_; }
  void offer_nothing() { offers_ = false; }
  // Refuses this one of all that is asked for, counted from 0.
  void refuse(std::size_t allocation) { refused_ = allocation; }
  // Called before the n-th mark of a phase that comes from here on.
  void at_mark(std::size_t n, std::function<void()> act) { marks_until_act_ = n, act_ = std::move(act); }

  struct Block {
    void* address;
    std::size_t bytes;
  };
  std::vector<Block> blocks() const;  // that the plugin has now

 private:
  static CountingHost& from(const assay_host* host) { return *static_cast<CountingHost*>(host->impl); }
  static CountingHost& from(const assay_memory* memory) { return *static_cast<CountingHost*>(memory->impl); }
  static CountingHost* current_;
  void before_mark();

  worker::HostServices& services_;
  const assay_host* inner_;
  const assay_memory* inner_memory_;
  assay_host host_;
  assay_memory memory_;
  assay_device_api device_api_;
  assay_device_access device_;
  const plugin::OpenDevice& open_device_;
  Counts counts_;
  bool offers_ = true;
  std::size_t refused_ = SIZE_MAX, marks_until_act_ = SIZE_MAX;
  std::function<void()> act_;
  std::map<void*, std::size_t> blocks_;
  decltype(assay_launch::phase_begin) inner_phase_begin_ = nullptr;
  decltype(assay_launch::phase_end) inner_phase_end_ = nullptr;
};

}  // namespace assay::host::validate
