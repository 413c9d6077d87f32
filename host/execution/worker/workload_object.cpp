#include "worker/workload_object.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "worker/host_services.hpp"
#include "worker/plugin_status.hpp"

namespace assay::host::worker {
namespace {

constexpr std::uint32_t first_minor_with_steps_after_finish = 3;

}  // namespace

WorkloadObject::WorkloadObject(const CaseSpec& spec)
    : spec_(spec),
      library_(plugin::PluginLibrary::open(spec.plugin_file)),
      table_(&library_->workload(spec.workload)),
      schema_(plugin::copy_schema(*table_, abi_minor())) {
  refuse_device();
}

void WorkloadObject::refuse_device() const {
  const bool runs = schema_.runs_on(spec_.device_kind) || table_->device_flags == ASSAY_ANY_DEVICE;
  if (!runs)
    throw CaseFailure{record::Status::unsupported,
                      fmt::format("workload '{}' does not run on device '{}'", schema_.id, spec_.device_kind)};
  if (schema_.steps_elsewhere && spec_.plan().cold_cache && spec_.device_kind != "cpu")
    throw CaseFailure{
        record::Status::unsupported,
        fmt::format(
            "[measure] cold_cache = true: the steps of '{}' run in other processes. Emptying the caches from this one "
            "would make the GPU switch processes in each step: leave out cold_cache, and let the program empty them",
            schema_.id)};
}

bool WorkloadObject::takes_steps_after_finish() const { return abi_minor() >= first_minor_with_steps_after_finish; }

void WorkloadObject::connect(HostServices& services, const plugin::OpenDevice& device) {
  services_ = &services, device_ = &device;
}

void WorkloadObject::init_and_create() {
  config_.params.insert(spec_.values.params.begin(), spec_.values.params.end());
  if (library_->entry().init) check("init", library_->entry().init(services_->abi()));
  initialized_ = true;
  make_object();
}

assay_case case_of(const CaseSpec& spec, const assay_config& config) {
  assay_case c{};
  c.struct_size = sizeof c;
  c.config = &config;
  c.seed = spec.values.run.seed;
  c.rank = spec.ranks.rank, c.rank_count = spec.ranks.count;
  c.device_kind = spec.device_kind.c_str();
  c.prepare = spec.values.measure.prepare ? 1 : 0;
  return c;
}

void WorkloadObject::make_object() {
  const assay_case c = case_of(spec_, config_);
  check("create", table_->create(services_->abi(), &c, &self_));
  if (!self_) throw CaseFailure{record::Status::failed, "create returned ASSAY_OK and no object"};
}

assay_work WorkloadObject::work() {
  assay_work work{};
  work.struct_size = sizeof work;
  if (table_->work) check("work", table_->work(self_, &work));
  return work;
}

void WorkloadObject::run_step(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder) {
  const assay_launch launch = services_->launch(stage, iteration, recorder);
  const assay_status status = table_->run(self_, &launch);
  if (status != ASSAY_OK) check("run", status);
}

void WorkloadObject::setup(measure::Recorder* recorder) { call("setup", table_->setup, ASSAY_STAGE_SETUP, recorder); }

void WorkloadObject::finish() { call("finish", table_->finish, ASSAY_STAGE_FINISH, nullptr); }

record::Verification WorkloadObject::verify() {
  const assay_launch launch = services_->launch(ASSAY_STAGE_VERIFY, 0, nullptr);
  const assay_status status = table_->verify(self_, &launch);
  const std::optional<record::Verification> verdict = verification_after(status);
  if (!verdict) check("verify", status);
  return verdict.value();
}

void WorkloadObject::call(const char* name, StageFunction function, assay_stage stage, measure::Recorder* recorder) {
  const assay_launch launch = services_->launch(stage, 0, recorder);
  check(name, function(self_, &launch));
  services_->rethrow_mark_failure();
  wait_for_device();
}

void WorkloadObject::check(const char* function, assay_status status) {
  if (status == ASSAY_OK) return;
  std::string text = services_->messages().take();
  if (text.empty()) text = "no text was given";
  const std::string kind = kind_of_failure(status);
  throw CaseFailure{status_after(status), fmt::format("{}: {}{}{}", function, kind, kind.empty() ? "" : ": ", text),
                    status == ASSAY_COMM_ERROR};
}

void WorkloadObject::wait_for_device() const {
  if (device_->is_observed()) return;
  device_->check(device_->api().stream_synchronize(device_->handle(), device_->stream()), "waiting for the device");
}

void WorkloadObject::with_new_object(measure::Recorder* recorder, const std::function<void()>& what) {
  struct Restored {
    WorkloadObject& object;
    assay_workload_self* own;
    ~Restored() {
      object.destroy();
      object.self_ = own;
    }
  };
  const Restored restored{*this, std::exchange(self_, nullptr)};
  make_object();
  setup(recorder);
  what();
}

void WorkloadObject::destroy() {
  if (self_) table_->destroy(self_);
  self_ = nullptr;
}

void WorkloadObject::deinit() {
  if (initialized_ && library_->entry().deinit) library_->entry().deinit();
}

}  // namespace assay::host::worker
