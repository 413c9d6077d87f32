// The workload of a case: its plugin's library, its object, and the calls of its table.
#pragma once
#include <assay/abi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "measure/recorder.hpp"
#include "plugin/device_library.hpp"
#include "plugin/plugin_library.hpp"
#include "plugin/schema.hpp"
#include "record/status.hpp"
#include "worker/case_spec.hpp"
#include "worker/host_services.hpp"

namespace assay::host::worker {

// Ends a case: what its record says.
struct CaseFailure {
  record::Status status;
  std::string reason;
  bool of_another_rank = false;
};

// What `create` is given; valid as long as both.
assay_case case_of(const CaseSpec& spec, const assay_config& config);

// Calls return when the plugin does; a status that is not ASSAY_OK becomes a CaseFailure with the plugin's text. One
// thread.
class WorkloadObject {
 public:
  // Opens the library. Throws PluginError, and CaseFailure where the workload does not run on the device of the case.
  explicit WorkloadObject(const CaseSpec& spec);

  // An open workload adds phases and metrics to it while it runs.
  plugin::WorkloadSchema& schema() { return schema_; }
  const plugin::WorkloadSchema& schema() const { return schema_; }
  const assay_workload& table() const { return *table_; }
  std::uint32_t abi_minor() const { return library_->entry().abi_minor; }
  assay_workload_self* self() const { return self_; }
  // A plugin that was promised that no step follows `finish` may release there what a step needs.
  bool takes_steps_after_finish() const;

  // What the calls below need; both outlive them.
  void connect(HostServices& services, const plugin::OpenDevice& device);
  void init_and_create();
  assay_work work();  // zero where the workload declares none
  // One step, which is not awaited.
  void run_step(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder);
  // A stage's function, then the device's end of it.
  void setup(measure::Recorder* recorder);
  void finish();
  // The verdict of the workload; its text is the message that the services have taken.
  record::Verification verify();
  void check(const char* function, assay_status status);
  void wait_for_device() const;
  // Makes another object, which is set up, stands in the place of the case's own while `what` runs, and is destroyed.
  void with_new_object(measure::Recorder* recorder, const std::function<void()>& what);
  void destroy();
  void deinit();

 private:
  using StageFunction = assay_status (*)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  void refuse_device() const;
  void make_object();
  void call(const char* name, StageFunction function, assay_stage stage, measure::Recorder* recorder);

  const CaseSpec& spec_;
  std::shared_ptr<const plugin::PluginLibrary> library_;
  const assay_workload* table_ = nullptr;
  plugin::WorkloadSchema schema_;
  assay_config config_;
  HostServices* services_ = nullptr;
  const plugin::OpenDevice* device_ = nullptr;
  assay_workload_self* self_ = nullptr;
  bool initialized_ = false;
};

}  // namespace assay::host::worker
