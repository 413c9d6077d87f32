#include "worker/host_services.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace assay::host::worker {
namespace {

template <class T, class Out>
assay_status get(const assay_config* config, assay_str key, Out&& assign) {
  const auto found = config->params.find(view_of(key));
  if (found == config->params.end()) return ASSAY_INVALID_ARGUMENT;
  const T* value = std::get_if<T>(&found->second);
  if (!value) return ASSAY_INVALID_ARGUMENT;
  assign(*value);
  return ASSAY_OK;
}

}  // namespace

HostServices::HostServices(const plugin::OpenDevice& device, CaseObserver& observer, RankServices& ranks,
                           plugin::WorkloadSchema& schema)
    : device_(device),
      observer_(observer),
      memory_(device, observer, messages_),
      ranks_(ranks),
      schema_(schema),
      names_(
          schema, [this] { tables_have_grown(); },
          [this](assay_status, std::string text) { messages_.set(std::move(text)); }),
      case_metrics_(schema.metrics.size()) {
  ranks_.set_message_sink([this](assay_status, std::string text) { messages_.set(std::move(text)); });
  host_.struct_size = sizeof host_;
  host_.abi_major = ASSAY_ABI_MAJOR, host_.abi_minor = ASSAY_ABI_MINOR;
  host_.impl = this;
  host_.log = [](const assay_host* h, std::int32_t level, assay_str text) noexcept {
    from(h).messages_.log(level, view_of(text));
  };
  host_.set_message = [](const assay_host* h, assay_status, assay_str text) noexcept {
    from(h).messages_.set(std::string(view_of(text)));
  };
  host_.get_bool = [](const assay_config* c, assay_str key, std::int32_t* out) noexcept {
    return get<bool>(c, key, [&](bool v) { *out = v ? 1 : 0; });
  };
  host_.get_int = [](const assay_config* c, assay_str key, std::int64_t* out) noexcept {
    return get<std::int64_t>(c, key, [&](std::int64_t v) { *out = v; });
  };
  host_.get_float = [](const assay_config* c, assay_str key, double* out) noexcept {
    return get<double>(c, key, [&](double v) { *out = v; });
  };
  host_.get_string = [](const assay_config* c, assay_str key, assay_str* out) noexcept {
    return get<std::string>(c, key, [&](const std::string& v) { *out = {v.data(), v.size()}; });
  };
  host_.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
    if (!id) return nullptr;
    if (std::strcmp(id, ASSAY_EXT_MEMORY) == 0) return from(h).memory_.abi();
    if (std::strcmp(id, ASSAY_EXT_DEVICE) == 0) return &from(h).device_access_;
    if (std::strcmp(id, ASSAY_EXT_COMM) == 0) return from(h).ranks_.abi();
    if (std::strcmp(id, ASSAY_EXT_PROGRESS) == 0) return &from(h).progress_;
    if (std::strcmp(id, ASSAY_EXT_CAPTURE) == 0) return &from(h).capture_;
    if (std::strcmp(id, ASSAY_EXT_PARTS) == 0) return &from(h).parts_table_;
    if (std::strcmp(id, ASSAY_EXT_NAMES) == 0) return from(h).names_.abi();
    if (std::strcmp(id, ASSAY_EXT_MEMORY_PLAN) == 0) return from(h).memory_.plan_abi();
    return nullptr;
  };

  progress_ = {sizeof progress_, this, [](const assay_progress* p, std::int64_t done, std::int64_t total) noexcept {
                 CaseObserver& observer = from(p).observer_;
                 if (from(p).stage_ != ASSAY_STAGE_SETUP) return;
                 observer.stage(Stage::setup, total);
                 observer.step(done);
               }};
  parts_table_ = {sizeof parts_table_, this,
                  [](const assay_parts* p, assay_str name) noexcept { from(p).tell_part(view_of(name)); }};
  capture_.struct_size = sizeof capture_;
  capture_.impl = this;
  capture_.begin = [](const assay_capture* c) noexcept {
    return from(c).record([](measure::Recorder& recorder) { recorder.begin_capture(); });
  };
  capture_.end = [](const assay_capture* c) noexcept {
    return from(c).record([](measure::Recorder& recorder) { recorder.end_capture(); });
  };
  capture_.replayed = [](const assay_capture* c) noexcept {
    from(c).record([](measure::Recorder& recorder) { recorder.replayed(); });
  };
  device_access_ = {sizeof device_access_, &device.api(), device.handle()};
}

HostServices::~HostServices() { ranks_.set_message_sink({}); }

assay_launch HostServices::launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder) {
  stage_ = stage;
  memory_.enter(stage);
  recorder_ = recorder;
  if (recorder_) recorder_->grow(schema_.phases.size(), schema_.metrics.size());
  assay_launch launch{};
  launch.struct_size = sizeof launch;
  launch.impl = this;
  launch.stream = device_.stream();
  launch.device = device_.ordinal();
  launch.stage = stage;
  launch.iteration = iteration;
  launch.phase_begin = [](const assay_launch* l, std::uint32_t phase) noexcept {
    HostServices& self = from(l);
    self.observer_.phase(static_cast<std::int32_t>(phase));
    self.record([&](measure::Recorder& recorder) { recorder.phase_begin(phase); });
  };
  launch.phase_end = [](const assay_launch* l, std::uint32_t phase) noexcept {
    HostServices& self = from(l);
    self.record([&](measure::Recorder& recorder) { recorder.phase_end(phase); });
    self.observer_.phase(self.recorder_ ? self.recorder_->open_phase() : -1);
  };
  launch.metric = [](const assay_launch* l, std::uint32_t metric, double value) noexcept {
    HostServices& self = from(l);
    if (self.ignores_metrics_) return;
    self.record([&](measure::Recorder& recorder) { recorder.metric(metric, value); });
    if (metric < self.case_metrics_.size()) self.case_metrics_[metric] = value;
  };
  return launch;
}

void HostServices::tables_have_grown() {
  case_metrics_.resize(schema_.metrics.size());
  if (recorder_) recorder_->grow(schema_.phases.size(), schema_.metrics.size());
  if (!schema_.phases.empty())
    observer_.phase_named(static_cast<std::int32_t>(schema_.phases.size() - 1), schema_.phases.back());
}

template <class F>
assay_status HostServices::record(F&& f) noexcept {
  if (!recorder_) return ASSAY_UNSUPPORTED;
  if (mark_failure_) return ASSAY_DEVICE_ERROR;
  try {
    f(*recorder_);
    return ASSAY_OK;
  } catch (...) {
    mark_failure_ = std::current_exception();
    return ASSAY_DEVICE_ERROR;
  }
}

void HostServices::rethrow_mark_failure() {
  if (mark_failure_) std::rethrow_exception(std::exchange(mark_failure_, nullptr));
}

void HostServices::begin_part(std::string_view name) {
  parts_.begin(name);
  observer_.part(parts_.open_name());
}

void HostServices::tell_part(std::string_view name) {
  if (stage_ != ASSAY_STAGE_SETUP && stage_ != ASSAY_STAGE_VERIFY) return;
  if (!name.empty() && !PartTimes::is_name(name)) {
    messages_.warn(
        fmt::format("a part of the workload is named with {} bytes that are no name of a part: expected at most {} of "
                    "lower-case letters, digits and '_'",
                    name.size(), PartTimes::most_name_bytes));
    name = {};
  }
  begin_part(name);
}

}  // namespace assay::host::worker
