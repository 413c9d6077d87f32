// What the host offers a plugin while one case runs: assay_host, its extensions, and the launch context.
#pragma once
#include <assay/abi.h>

#include "measure/recorder.hpp"
#include "plugin/device_library.hpp"
#include "worker/case_memory.hpp"
#include "worker/observer.hpp"
#include "worker/part_times.hpp"
#include "worker/plugin_messages.hpp"
#include "worker/rank_services.hpp"
#include "worker/told_names.hpp"

#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The opaque type of the border: the resolved parameters of one case.
struct assay_config {
  std::map<std::string, assay::host::Value, std::less<>> params;
};

namespace assay::host::worker {

// Not movable: plugins hold its address.
class HostServices {
 public:
  // `schema`: the workload's, which gets the phases and metrics that a workload with open tables names; it outlives
  // this object.
  HostServices(const plugin::OpenDevice& device, CaseObserver& observer, RankServices& ranks,
               plugin::WorkloadSchema& schema);
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;
  ~HostServices();

  const assay_host* abi() const { return &host_; }
  // A launch for the coming call. `recorder` null outside the measuring loop: marks and per-step metrics are ignored.
  assay_launch launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder);
  PluginMessages& messages() { return messages_; }
  CaseMemory& memory() { return memory_; }

  // A device that failed inside a phase mark cannot throw through the plugin: the loop asks after each call.
  void rethrow_mark_failure();

  // What the host does itself is a part, too. "": none.
  void begin_part(std::string_view name);
  std::string open_part() const { return parts_.open_name(); }
  record::Named<double> take_part_times() { return parts_.take(); }

  // While true, metrics that the workload reports are not kept.
  void ignore_metrics(bool ignore) { ignores_metrics_ = ignore; }

  const std::vector<std::optional<double>>& case_metrics() const { return case_metrics_; }

 private:
  static HostServices& from(const assay_host* host) { return *static_cast<HostServices*>(host->impl); }
  static HostServices& from(const assay_capture* capture) { return *static_cast<HostServices*>(capture->impl); }
  static HostServices& from(const assay_progress* progress) { return *static_cast<HostServices*>(progress->impl); }
  static HostServices& from(const assay_parts* parts) { return *static_cast<HostServices*>(parts->impl); }
  static HostServices& from(const assay_launch* launch) { return *static_cast<HostServices*>(launch->impl); }
  template <class F>
  assay_status record(F&& f) noexcept;
  void tell_part(std::string_view name);
  void tables_have_grown();

  const plugin::OpenDevice& device_;
  CaseObserver& observer_;
  PluginMessages messages_;
  CaseMemory memory_;
  RankServices& ranks_;
  assay_host host_{};
  assay_device_access device_access_{};
  assay_progress progress_{};
  assay_capture capture_{};
  assay_parts parts_table_{};
  PartTimes parts_;
  plugin::WorkloadSchema& schema_;
  ToldNames names_;
  std::vector<std::optional<double>> case_metrics_;
  bool ignores_metrics_ = false;
  measure::Recorder* recorder_ = nullptr;
  std::exception_ptr mark_failure_;
  assay_stage stage_ = ASSAY_STAGE_SETUP;
};

}  // namespace assay::host::worker
