// One workload on one device, called as the host calls it while it runs a case, by whoever wants to see what it does.
#pragma once
#include <optional>
#include <string>

#include "measure/recorder.hpp"
#include "plugin/plugin_library.hpp"
#include "plugin/schema.hpp"
#include "validate/counting_host.hpp"
#include "worker/case_spec.hpp"
#include "worker/device_timeline.hpp"
#include "worker/host_services.hpp"
#include "worker/observer.hpp"
#include "worker/rank_services.hpp"

namespace assay::host::validate {

// What is validated: a workload of a plugin, with the parameters of one case.
struct Subject {
  std::filesystem::path file;
  plugin::WorkloadSchema schema;
  std::uint32_t abi_minor = ASSAY_ABI_MINOR;
  worker::CaseSpec spec;  // with its device, or none
};

struct Outcome {
  assay_status status = ASSAY_OK;
  std::string text;
  bool is_ok() const { return status == ASSAY_OK; }
  // "invalid argument: n is 3", "ASSAY_INTERNAL, without a text".
  std::string in_words() const;
};

// The plugin and its device, opened in this process, and the services of one case.
class Stage {
 public:
  Stage(const Subject& subject);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  const Subject& subject() const { return subject_; }
  const assay_workload& workload() const { return *workload_; }
  CountingHost& host() { return *host_; }
  worker::HostServices& services() { return *services_; }
  measure::Recorder& recorder() { return *recorder_; }
  // Services as if nothing had happened; the plugin and the device stay open. No object of the plugin is alive.
  void begin_anew();
  void init();    // once
  void deinit();  // once
  void synchronize();
  Outcome outcome(assay_status status);  // with the text that the call has left

 private:
  const Subject& subject_;
  plugin::WorkloadSchema schema_;  // to which a workload with open tables may add
  worker::CaseObserver observer_;
  worker::RankServices ranks_;
  std::shared_ptr<const plugin::PluginLibrary> library_;
  const assay_workload* workload_;
  std::optional<plugin::OpenDevice> device_;
  std::optional<worker::HostServices> services_;
  std::optional<CountingHost> host_;
  std::optional<worker::DeviceTimeline> timeline_;
  std::optional<measure::Recorder> recorder_;
};

// One object, from create on. Whoever has made it calls destroy(), or leaves that to the end.
class Life {
 public:
  explicit Life(Stage& stage) : stage_(stage) {}
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() { destroy(); }

  // `params`: in place of the case's.
  Outcome create(const std::map<std::string, Value>* params = nullptr);
  bool is_there() const { return object_ != nullptr; }
  assay_workload_self* object() const { return object_; }
  Outcome setup();
  Outcome step(assay_stage stage);  // waits for the device after it
  Outcome finish();
  Outcome verify();
  Outcome work(assay_work& out);
  void destroy();

 private:
  Stage& stage_;
  assay_config config_;
  assay_workload_self* object_ = nullptr;
  std::uint64_t steps_ = 0;
};

}  // namespace assay::host::validate
