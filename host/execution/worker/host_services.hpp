// What the host offers a plugin while one case runs: assay_host, its extensions, and the launch context.
#pragma once
#include <assay/abi.h>

#include "measure/recorder.hpp"
#include "plugin/device_library.hpp"
#include "profile/memory_snapshot.hpp"
#include "worker/observer.hpp"
#include "worker/part_times.hpp"
#include "worker/rank_services.hpp"
#include "worker/told_names.hpp"

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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
  ~HostServices();  // releases device memory that the plugin left behind

  const assay_host* abi() const { return &host_; }
  // A launch for the coming call. `recorder` null outside the measuring loop: marks and per-step metrics are ignored.
  assay_launch launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder);
  // The text set for the status that a call has just returned; cleared by the reading.
  std::string take_message();
  // What the workload has warned of in its log, each text once.
  std::vector<std::string> warnings() const;

  // A device that failed inside a phase mark cannot throw through the plugin: the loop asks after each call.
  void rethrow_mark_failure();

  // Of a device whose memory is this process's: a verification is refused what would bring it to the limit at which
  // the host ends the worker, and can say what it leaves unchecked.
  void set_memory_limit(std::uint64_t bytes) { memory_limit_bytes_ = bytes; }

  // From here on: what is taken and released, and what the plugin says of its arenas (assay.memory_plan/1).
  void begin_memory_history() { memory_history_.emplace(); }
  // The history so far, and no more of it: what follows is not part of the steps that were measured.
  std::optional<profile::MemoryHistory> take_memory_history() { return std::exchange(memory_history_, std::nullopt); }

  // What the host does itself is a part, too. "": none.
  void begin_part(std::string_view name);
  std::string open_part() const { return parts_.open_name(); }
  record::Named<double> take_part_times() { return parts_.take(); }

  // While true, metrics that the workload reports are not kept.
  void ignore_metrics(bool ignore) { ignores_metrics_ = ignore; }

  measure::MemoryLedger& ledger() { return ledger_; }
  const std::vector<std::optional<double>>& case_metrics() const { return case_metrics_; }
  std::int64_t allocations_while_measuring() const { return allocations_while_measuring_; }
  std::size_t blocks_left() const;

 private:
  struct Block {
    std::size_t bytes;
    assay_memory_kind kind;
  };
  static HostServices& from(const assay_host* host) { return *static_cast<HostServices*>(host->impl); }
  static HostServices& from(const assay_capture* capture) { return *static_cast<HostServices*>(capture->impl); }
  static HostServices& from(const assay_memory* memory) { return *static_cast<HostServices*>(memory->impl); }
  static HostServices& from(const assay_memory_plan* plan) { return *static_cast<HostServices*>(plan->impl); }
  static HostServices& from(const assay_progress* progress) { return *static_cast<HostServices*>(progress->impl); }
  static HostServices& from(const assay_parts* parts) { return *static_cast<HostServices*>(parts->impl); }
  static HostServices& from(const assay_launch* launch) { return *static_cast<HostServices*>(launch->impl); }
  template <class F>
  assay_status record(F&& f) noexcept;
  assay_status allocate(assay_memory_kind kind, std::size_t bytes, std::string_view label, void** out);
  void release(void* address);
  void plan_buffer(void* arena, profile::PlannedBuffer buffer);
  void set_message(assay_status status, std::string text);
  void name_moment(std::string_view name);
  void tell_part(std::string_view name);
  void tables_have_grown();
  void keep_warning(std::string text);  // under the lock
  std::string held_by_kind() const;
  bool is_beyond_limit(std::size_t bytes) const;

  const plugin::OpenDevice& device_;
  CaseObserver& observer_;
  RankServices& ranks_;
  measure::MemoryLedger ledger_;
  std::optional<std::uint64_t> memory_limit_bytes_;
  assay_host host_{};
  assay_memory memory_{};
  assay_memory_plan memory_plan_{};
  assay_device_access device_access_{};
  assay_progress progress_{};
  assay_capture capture_{};
  assay_parts parts_table_{};
  PartTimes parts_;
  plugin::WorkloadSchema& schema_;
  ToldNames names_;
  mutable std::mutex mutex_;  // log, messages and blocks: some calls are [any-thread]
  std::string message_;
  std::vector<std::string> warnings_;
  std::size_t moments_named_ = 0;  // by the plugin
  std::map<void*, Block> blocks_;
  std::optional<profile::MemoryHistory> memory_history_;  // nothing: not asked for
  std::vector<std::optional<double>> case_metrics_;
  bool ignores_metrics_ = false;
  measure::Recorder* recorder_ = nullptr;
  std::exception_ptr mark_failure_;
  assay_stage stage_ = ASSAY_STAGE_SETUP;
  std::int64_t allocations_while_measuring_ = 0;
};

}  // namespace assay::host::worker
