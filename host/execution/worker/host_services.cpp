#include "worker/host_services.hpp"

#include <assay/memory_account.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/process_tree.hpp"

namespace assay::host::worker {
namespace {

static_assert(memory_kind_count == ASSAY_MEMORY_KIND_COUNT, "common/memory_kinds.hpp has the kinds of assay/abi.h");

std::string_view view(assay_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }

template <class T, class Out>
assay_status get(const assay_config* config, assay_str key, Out&& assign) {
  const auto found = config->params.find(view(key));
  if (found == config->params.end()) return ASSAY_INVALID_ARGUMENT;
  const T* value = std::get_if<T>(&found->second);
  if (!value) return ASSAY_INVALID_ARGUMENT;
  assign(*value);
  return ASSAY_OK;
}

// A plugin may say too much; a record holds so much of it, and a terminal can show that.
constexpr std::size_t most_message_bytes = 4000, most_moments = 1000, most_moment_name_bytes = 100;

std::string cut_to(std::string text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not within a character
  text.resize(end);
  return text + "...";
}

// Null for a device that takes no memory by itself, or does not say so.
const assay_memory_account* device_account(const plugin::OpenDevice& device) {
  const auto* account = static_cast<const assay_memory_account*>(device.api().get_extension(ASSAY_EXT_MEMORY_ACCOUNT));
  return account && ASSAY_HAS(account, assay_memory_account, tell) ? account : nullptr;
}

double in_mib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace

HostServices::HostServices(const plugin::OpenDevice& device, CaseObserver& observer, RankServices& ranks,
                           plugin::WorkloadSchema& schema)
    : device_(device),
      observer_(observer),
      ranks_(ranks),
      schema_(schema),
      names_(
          schema, [this] { tables_have_grown(); },
          [this](assay_status status, std::string text) { set_message(status, std::move(text)); }),
      case_metrics_(schema.metrics.size()) {
  ranks_.set_message_sink([this](assay_status status, std::string text) { set_message(status, std::move(text)); });
  host_.struct_size = sizeof host_;
  host_.abi_major = ASSAY_ABI_MAJOR, host_.abi_minor = ASSAY_ABI_MINOR;
  host_.impl = this;
  host_.log = [](const assay_host* h, std::int32_t level, assay_str text) noexcept {
    static constexpr const char* levels[] = {"debug", "info", "warning", "error"};
    const std::lock_guard lock(from(h).mutex_);
    if (level == 2) from(h).keep_warning(std::string(view(text)));
    std::fprintf(stderr, "[plugin %s] %.*s\n", levels[level < 0 || level > 3 ? 1 : level], static_cast<int>(text.size),
                 text.data ? text.data : "");
  };
  host_.set_message = [](const assay_host* h, assay_status status, assay_str text) noexcept {
    from(h).set_message(status, std::string(view(text)));
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
    if (std::strcmp(id, ASSAY_EXT_MEMORY) == 0) return &from(h).memory_;
    if (std::strcmp(id, ASSAY_EXT_DEVICE) == 0) return &from(h).device_access_;
    if (std::strcmp(id, ASSAY_EXT_COMM) == 0) return from(h).ranks_.abi();
    if (std::strcmp(id, ASSAY_EXT_PROGRESS) == 0) return &from(h).progress_;
    if (std::strcmp(id, ASSAY_EXT_CAPTURE) == 0) return &from(h).capture_;
    if (std::strcmp(id, ASSAY_EXT_PARTS) == 0) return &from(h).parts_table_;
    if (std::strcmp(id, ASSAY_EXT_NAMES) == 0) return from(h).names_.abi();
    if (std::strcmp(id, ASSAY_EXT_MEMORY_PLAN) == 0 && from(h).memory_history_) return &from(h).memory_plan_;
    return nullptr;
  };

  memory_.struct_size = sizeof memory_;
  memory_.impl = this;
  memory_.allocate = [](const assay_memory* m, assay_memory_kind kind, std::size_t bytes, assay_str label,
                        void** out) noexcept { return from(m).allocate(kind, bytes, view(label), out); };
  memory_.release = [](const assay_memory* m, void* address) noexcept { from(m).release(address); };
  memory_.report = [](const assay_memory* m, assay_memory_kind kind, std::int64_t delta, assay_str) noexcept {
    if (kind < 0 || kind >= ASSAY_MEMORY_KIND_COUNT) return;
    HostServices& self = from(m);
    self.ledger_.add(static_cast<std::size_t>(kind), delta);
    self.observer_.memory(self.ledger_.current(), self.ledger_.peak());
  };
  memory_.moment = [](const assay_memory* m, assay_str name) noexcept { from(m).name_moment(view(name)); };
  if (const auto* account = device_account(device_)) account->tell(device_.handle(), &memory_);
  memory_plan_ = {sizeof memory_plan_, this,
                  [](const assay_memory_plan* p, void* arena, std::size_t offset, std::size_t bytes, std::int32_t first,
                     std::int32_t last, assay_str name) noexcept {
                    from(p).plan_buffer(arena, {std::string(view(name)), offset, bytes, first, last});
                  }};
  progress_ = {sizeof progress_, this, [](const assay_progress* p, std::int64_t done, std::int64_t total) noexcept {
                 CaseObserver& observer = from(p).observer_;
                 if (from(p).stage_ != ASSAY_STAGE_SETUP) return;
                 observer.stage(Stage::setup, total);
                 observer.step(done);
               }};
  parts_table_ = {sizeof parts_table_, this,
                  [](const assay_parts* p, assay_str name) noexcept { from(p).tell_part(view(name)); }};
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

HostServices::~HostServices() {
  if (const auto* account = device_account(device_)) account->tell(device_.handle(), nullptr);
  ranks_.set_message_sink({});
  for (const auto& [address, block] : blocks_) device_.api().release(device_.handle(), address);
}

assay_launch HostServices::launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder) {
  stage_ = stage;
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

void HostServices::set_message(assay_status, std::string text) {
  const std::lock_guard lock(mutex_);
  if (const std::size_t bytes = text.size(); bytes > most_message_bytes) {
    keep_warning(
        fmt::format("a message of the workload has {} bytes; the first {} are kept", bytes, most_message_bytes));
    text = cut_to(std::move(text), most_message_bytes);
  }
  message_ = std::move(text);
}

void HostServices::name_moment(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (moments_named_ >= most_moments) {
      keep_warning(
          fmt::format("the workload names more moments of its memory than {}: the first ones are kept", most_moments));
      return;
    }
    ++moments_named_;
  }
  ledger_.moment(cut_to(std::string(name.substr(0, most_moment_name_bytes + 1)), most_moment_name_bytes));
}

void HostServices::begin_part(std::string_view name) {
  parts_.begin(name);
  observer_.part(parts_.open_name());
}

void HostServices::tell_part(std::string_view name) {
  if (stage_ != ASSAY_STAGE_SETUP && stage_ != ASSAY_STAGE_VERIFY) return;
  if (!name.empty() && !PartTimes::is_name(name)) {
    const std::lock_guard lock(mutex_);
    keep_warning(
        fmt::format("a part of the workload is named with {} bytes that are no name of a part: expected at most {} of "
                    "lower-case letters, digits and '_'",
                    name.size(), PartTimes::most_name_bytes));
    name = {};
  }
  begin_part(name);
}

// A workload may warn in each step: the first warnings tell enough, and the log has the others.
void HostServices::keep_warning(std::string text) {
  constexpr std::size_t most_warnings = 8, most_chars = 1000;
  text = cut_to(std::move(text), most_chars);
  if (warnings_.size() < most_warnings && std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
    warnings_.push_back(std::move(text));
}

std::vector<std::string> HostServices::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

std::string HostServices::take_message() {
  const std::lock_guard lock(mutex_);
  return std::exchange(message_, {});
}

std::size_t HostServices::blocks_left() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

std::string HostServices::held_by_kind() const {
  const measure::MemoryAmounts held = ledger_.current();
  std::string text;
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (held.bytes[k] > 0)
      text += fmt::format("{}{} {:.1f} MiB", text.empty() ? "" : ", ", memory_kind_name(k),
                          in_mib(static_cast<std::size_t>(held.bytes[k])));
  return text.empty() ? "nothing" : text;
}

bool HostServices::is_beyond_limit(std::size_t bytes) const {
  if (stage_ != ASSAY_STAGE_VERIFY || !memory_limit_bytes_) return false;
  // Samples of what is compared go through the heap, which nobody asks for here. Found of a split decoder that is most
  // of all embeddings: a third of all.
  const std::uint64_t allowed = *memory_limit_bytes_ - *memory_limit_bytes_ / 3, held = resident_bytes_of(getpid());
  return held > allowed || bytes > allowed - held;
}

assay_status HostServices::allocate(assay_memory_kind kind, std::size_t bytes, std::string_view label, void** out) {
  if (kind < 0 || kind >= ASSAY_MEMORY_KIND_COUNT) {
    set_message(ASSAY_INVALID_ARGUMENT, fmt::format("memory kind {} does not exist", kind));
    return ASSAY_INVALID_ARGUMENT;
  }
  const char* kind_name = memory_kind_name(static_cast<std::size_t>(kind));
  observer_.allocation(fmt::format("{:.1f} MiB of {} ({})", in_mib(bytes), kind_name, label));
  if (stage_ == ASSAY_STAGE_MEASURE) ++allocations_while_measuring_;
  if (is_beyond_limit(bytes)) {
    // By is_beyond_limit(): two thirds of the limit hold what there is and what is asked for.
    const double least_mib = 1.5 * (in_mib(resident_bytes_of(getpid())) + in_mib(bytes));
    const std::string wanted =
        in_mib(bytes) < 1 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} MiB", in_mib(bytes));
    // The host looks every few milliseconds, and a case may have been above the limit between two looks.
    const std::uint64_t peak = own_peak_resident_bytes();
    const std::string of_case =
        peak == 0 ? "[run] memory_limit"
        : peak > *memory_limit_bytes_
            ? fmt::format("the case itself was above [run] memory_limit for a moment ({:.0f} MiB), and it",
                          in_mib(peak))
            : fmt::format("the case fits (its process held {:.0f} MiB at most), but [run] memory_limit", in_mib(peak));
    set_message(
        ASSAY_OUT_OF_MEMORY,
        fmt::format("{} leaves no room for the {} of {} ({}) of its verification: until then it needed a limit of "
                    "more than {:.0f} MiB, and what comes after that may need more; held: {}",
                    of_case, wanted, kind_name, label,
                    std::floor(std::max(least_mib, in_mib(static_cast<std::size_t>(peak)))), held_by_kind()));
    return ASSAY_OUT_OF_MEMORY;
  }
  void* address = nullptr;
  if (const assay_status s = device_.api().allocate(device_.handle(), bytes, &address); s != ASSAY_OK) {
    set_message(s, fmt::format("{:.1f} MiB of {} ({}): {}; held: {}", in_mib(bytes), kind_name, label,
                               device_.api().error_text(), held_by_kind()));
    if (memory_history_) {
      assay_device_info info{};
      info.struct_size = sizeof info;
      if (device_.api().info(device_.handle(), &info) != ASSAY_OK) info.memory_free_bytes = 0;
      memory_history_->refused(bytes, info.memory_free_bytes, static_cast<std::size_t>(kind), label);
    }
    return s;
  }
  {
    const std::lock_guard lock(mutex_);
    blocks_[address] = {bytes, kind};
  }
  if (memory_history_)
    memory_history_->allocated(reinterpret_cast<std::uintptr_t>(address), bytes, static_cast<std::size_t>(kind), label);
  ledger_.add(static_cast<std::size_t>(kind), static_cast<std::int64_t>(bytes));
  observer_.memory(ledger_.current(), ledger_.peak());
  observer_.allocation("");
  *out = address;
  return ASSAY_OK;
}

void HostServices::plan_buffer(void* arena, profile::PlannedBuffer buffer) {
  if (!memory_history_) return;
  const std::string name = buffer.name;
  if (!memory_history_->planned(reinterpret_cast<std::uintptr_t>(arena), std::move(buffer)))
    std::fprintf(stderr, "[host warning] the plugin's memory plan has '%s' where no memory of its own is\n",
                 name.c_str());
}

void HostServices::release(void* address) {
  Block block{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) {
      std::fprintf(stderr, "[host warning] the plugin released %p, which was not allocated here\n", address);
      return;
    }
    block = found->second;
    blocks_.erase(found);
  }
  device_.api().release(device_.handle(), address);
  if (memory_history_) memory_history_->released(reinterpret_cast<std::uintptr_t>(address));
  ledger_.add(static_cast<std::size_t>(block.kind), -static_cast<std::int64_t>(block.bytes));
  observer_.memory(ledger_.current(), ledger_.peak());
}

}  // namespace assay::host::worker
