#include "validate/life.hpp"

#include <fmt/format.h>

#include <array>

namespace assay::host::validate {

std::string Outcome::in_words() const {
  static constexpr std::array<const char*, 9> names{"ASSAY_OK",
                                                    "ASSAY_INVALID_ARGUMENT",
                                                    "ASSAY_UNSUPPORTED",
                                                    "ASSAY_OUT_OF_MEMORY",
                                                    "ASSAY_DEVICE_ERROR",
                                                    "ASSAY_WRONG_RESULT",
                                                    "ASSAY_INTERNAL",
                                                    "ASSAY_COMM_ERROR",
                                                    "ASSAY_VERIFIED_IN_PART"};
  const auto index = static_cast<std::size_t>(status);
  const std::string name = index < names.size() ? names[index] : fmt::format("status {}, which there is not", status);
  return text.empty() ? name + ", without a text" : fmt::format("{}: {}", name, text);
}

Stage::Stage(const Subject& subject) : subject_(subject), ranks_(subject.spec, observer_) {
  if (!subject.spec.device_file.empty())
    device_.emplace(plugin::DeviceLibrary::open(subject.spec.device_file), subject.spec.device_ordinal);
  library_ = plugin::PluginLibrary::open(subject.file);
  workload_ = &library_->workload(subject.schema.id);
  begin_anew();
}

Stage::~Stage() = default;

void Stage::begin_anew() {
  recorder_.reset(), timeline_.reset(), host_.reset(), services_.reset();
  schema_ = subject_.schema;
  services_.emplace(*device_, observer_, ranks_, schema_);
  host_.emplace(*services_, *device_);
  timeline_.emplace(*device_, observer_);
  recorder_.emplace(*timeline_, subject_.schema.phases.size(), subject_.schema.metrics.size());
}

void Stage::init() {
  if (library_->entry().init)
    if (const assay_status status = library_->entry().init(host_->abi()); status != ASSAY_OK)
      throw plugin::PluginError(fmt::format("init: {}", outcome(status).in_words()));
}
void Stage::deinit() {
  if (library_->entry().deinit) library_->entry().deinit();
}

void Stage::synchronize() {
  device_->check(device_->api().stream_synchronize(device_->handle(), device_->stream()), "waiting for the device");
}

Outcome Stage::outcome(assay_status status) { return {status, services_->messages().take()}; }

Outcome Life::create(const std::map<std::string, Value>* params) {
  const worker::CaseSpec& spec = stage_.subject().spec;
  config_.params.clear();
  const std::map<std::string, Value>& values = params ? *params : spec.values.params;
  config_.params.insert(values.begin(), values.end());
  assay_case c{};
  c.struct_size = sizeof c;
  c.config = &config_;
  c.seed = spec.values.run.seed;
  c.rank = 0, c.rank_count = 1;
  c.device_kind = spec.device_kind.c_str();
  c.prepare = 1;
  return stage_.outcome(stage_.workload().create(stage_.host().abi(), &c, &object_));
}

Outcome Life::setup() {
  const assay_launch launch = stage_.host().launch(ASSAY_STAGE_SETUP, 0, &stage_.recorder());
  const Outcome outcome = stage_.outcome(stage_.workload().setup(object_, &launch));
  stage_.services().rethrow_mark_failure();
  stage_.synchronize();
  return outcome;
}

Outcome Life::step(assay_stage stage) {
  measure::Recorder& recorder = stage_.recorder();
  const assay_launch launch = stage_.host().launch(stage, steps_++, &recorder);
  recorder.prepare(1, true);
  recorder.begin_step();
  const Outcome outcome = stage_.outcome(stage_.workload().run(object_, &launch));
  recorder.end_step();
  stage_.services().rethrow_mark_failure();
  stage_.synchronize();
  recorder.flush();
  return outcome;
}

Outcome Life::finish() {
  if (!stage_.workload().finish) return {};
  const assay_launch launch = stage_.host().launch(ASSAY_STAGE_FINISH, 0, nullptr);
  const Outcome outcome = stage_.outcome(stage_.workload().finish(object_, &launch));
  stage_.synchronize();
  return outcome;
}

Outcome Life::verify() {
  const assay_launch launch = stage_.host().launch(ASSAY_STAGE_VERIFY, 0, nullptr);
  return stage_.outcome(stage_.workload().verify(object_, &launch));
}

Outcome Life::work(assay_work& out) {
  out = {};
  out.struct_size = sizeof out;
  return stage_.outcome(stage_.workload().work(object_, &out));
}

void Life::destroy() {
  if (object_) stage_.workload().destroy(object_);
  object_ = nullptr;
}

}  // namespace assay::host::validate
