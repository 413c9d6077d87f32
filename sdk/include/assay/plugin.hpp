// assay/plugin.hpp - the C++20 layer over assay/abi.h. Header-only: it is compiled into the plugin, and nothing of it
// crosses the border. The header is long because a plugin includes it alone, and each part fills the table of the next.
// A complete plugin:
//
//   struct Axpy {
//     static constexpr auto id = "axpy", summary = "y += a x over one vector", item_unit = "elements";
//     static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 20).at_least(1).help("length"));
//     explicit Axpy(const assay::Case& c) : n(c.get<std::int64_t>("n")) {}
//     void setup(const assay::Launch& l) { ... }
//     void run(const assay::Launch& l) { ... }
//     assay::Work work() const { return {.flops = 2 * n, .bytes = 12 * n, .items = n}; }
//   };
//   ASSAY_PLUGIN("org.example.axpy", "1.0.0", Axpy)
//
// Required: id, summary, a constructor from Case, setup, run. Optional: item_unit, params, phases, metrics,
// device_flags, ranks_cooperate, finish, verify (returns std::string: what was checked; or assay::Verified, which can
// say that it was not all that ought to be), work, peak, silence, extension, min_host_minor. Report errors by throwing:
// assay::Error carries its status; std::bad_alloc becomes OUT_OF_MEMORY, anything else INTERNAL.
#pragma once
#include <assay/abi.h>
#include <assay/device.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace assay {

class ASSAY_EXPORT Error : public std::runtime_error {
 public:
  Error(assay_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  assay_status status() const noexcept { return status_; }

 private:
  assay_status status_;
};

constexpr assay_str to_abi(std::string_view s) noexcept { return {s.data(), s.size()}; }
constexpr std::string_view from_abi(assay_str s) noexcept {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}

// ---- tables --------------------------------------------------------------------------------------------------------

// One row of the parameter table; a builder over assay_param. Keep the name, text and choices static.
struct Param {
  assay_param row{};

  static constexpr Param boolean(const char* name, bool value) {
    Param p(name, ASSAY_TYPE_BOOL);
    p.row.default_int = value ? 1 : 0;
    return p;
  }
  static constexpr Param integer(const char* name, std::int64_t value) {
    Param p(name, ASSAY_TYPE_INT);
    p.row.default_int = value;
    return p;
  }
  static constexpr Param real(const char* name, double value) {
    Param p(name, ASSAY_TYPE_FLOAT);
    p.row.default_float = value;
    return p;
  }
  static constexpr Param text(const char* name, const char* value) {
    Param p(name, ASSAY_TYPE_STRING);
    p.row.default_string = value;
    return p;
  }
  // A text that must be one of `names`, an array with static storage.
  template <std::size_t N>
  static constexpr Param choice(const char* name, const char* value, const std::array<const char*, N>& names) {
    Param p = text(name, value);
    p.row.choices = names.data();
    p.row.choice_count = N;
    return p;
  }
  static constexpr Param input_path(const char* name) {
    Param p = text(name, "");
    p.row.flags |= ASSAY_PARAM_INPUT_PATH;
    return p;
  }
  static constexpr Param output_path(const char* name) {
    Param p = text(name, "");
    p.row.flags |= ASSAY_PARAM_OUTPUT_PATH;
    return p;
  }
  constexpr Param at_least(double low) const {
    Param p = *this;
    p.row.min = low, p.row.flags |= ASSAY_PARAM_HAS_MIN;
    return p;
  }
  constexpr Param at_most(double high) const {
    Param p = *this;
    p.row.max = high, p.row.flags |= ASSAY_PARAM_HAS_MAX;
    return p;
  }
  constexpr Param required() const {
    Param p = *this;
    p.row.flags |= ASSAY_PARAM_REQUIRED;
    return p;
  }
  constexpr Param unit(const char* text_of_unit) const {
    Param p = *this;
    p.row.unit = text_of_unit;
    return p;
  }
  constexpr Param help(const char* text_of_help) const {
    Param p = *this;
    p.row.help = text_of_help;
    return p;
  }

 private:
  constexpr Param(const char* name, assay_type type) {
    row.struct_size = sizeof(assay_param);
    row.name = name;
    row.help = "";
    row.type = type;
    row.default_string = "";
  }
};

struct Metric {
  assay_metric row{};

  static constexpr Metric per_step(const char* name, const char* unit, assay_direction direction, const char* help) {
    return Metric{{sizeof(assay_metric), name, unit, help, direction, ASSAY_PER_STEP, nullptr, 0}};
  }
  static constexpr Metric per_case(const char* name, const char* unit, assay_direction direction, const char* help) {
    return Metric{{sizeof(assay_metric), name, unit, help, direction, ASSAY_PER_CASE, nullptr, 0}};
  }
  // One of `words`, an array with static storage: report its index.
  template <std::size_t N>
  static constexpr Metric word(const char* name, const std::array<const char*, N>& words, const char* help) {
    return Metric{
        {sizeof(assay_metric), name, nullptr, help, ASSAY_NEITHER_IS_BETTER, ASSAY_PER_CASE, words.data(), N}};
  }
};

// One row of what a choice stands for (assay_preset): where the text parameter `when` is `choice`, `param` has this
// value unless the experiment gives it another value than its default. Rows for any device count before those of a
// kind.
struct Preset {
  assay_preset row{};

  static constexpr Preset integer(const char* when, const char* choice, const char* param, std::int64_t value) {
    Preset p(when, choice, param);
    p.row.int_value = value;
    return p;
  }
  static constexpr Preset real(const char* when, const char* choice, const char* param, double value) {
    Preset p(when, choice, param);
    p.row.float_value = value;
    return p;
  }
  static constexpr Preset boolean(const char* when, const char* choice, const char* param, bool value) {
    return integer(when, choice, param, value ? 1 : 0);
  }
  static constexpr Preset text(const char* when, const char* choice, const char* param, const char* value) {
    Preset p(when, choice, param);
    p.row.string_value = value;
    return p;
  }
  constexpr Preset on(const char* device_kind) const {
    Preset p = *this;
    p.row.device_kind = device_kind;
    return p;
  }
  constexpr Preset and_when(const char* also, const char* also_choice) const {
    Preset p = *this;
    p.row.also_when = also, p.row.also_choice = also_choice;
    return p;
  }
  constexpr Preset() = default;  // an element of an array that is filled afterwards

 private:
  constexpr Preset(const char* when, const char* choice, const char* param) {
    row.struct_size = sizeof(assay_preset);
    row.when = when, row.choice = choice, row.param = param;
    row.string_value = "";
  }
};

template <class... Row>
constexpr auto table(const Row&... rows) {
  return std::array<std::common_type_t<Row...>, sizeof...(Row)>{rows...};
}
template <class... Name>
constexpr std::array<const char*, sizeof...(Name)> names(const Name&... n) {
  return {n...};
}

// ---- what a workload is given --------------------------------------------------------------------------------------

class Host {
 public:
  explicit Host(const assay_host* host) noexcept : host_(host) {}
  void debug(std::string_view text) const noexcept { host_->log(host_, 0, to_abi(text)); }
  void info(std::string_view text) const noexcept { host_->log(host_, 1, to_abi(text)); }
  void warn(std::string_view text) const noexcept { host_->log(host_, 2, to_abi(text)); }
  template <class Table>
  const Table* extension(const char* id) const noexcept {
    return static_cast<const Table*>(host_->get_extension(host_, id));
  }
  const assay_host* abi() const noexcept { return host_; }

 private:
  const assay_host* host_;
};

// The case an object is made for: its resolved parameters, seed, rank and device.
class Case {
 public:
  Case(const assay_host* host, const assay_case* abi) noexcept : host_(host), abi_(abi) {}

  // T: bool, an integer type, a floating-point type, std::string or std::string_view (lives as long as the object).
  template <class T>
  T get(std::string_view key) const {
    if constexpr (std::same_as<T, bool>) {
      std::int32_t v = 0;
      require(host_.abi()->get_bool(abi_->config, to_abi(key), &v), key, "bool");
      return v != 0;
    } else if constexpr (std::integral<T>) {
      std::int64_t v = 0;
      require(host_.abi()->get_int(abi_->config, to_abi(key), &v), key, "int");
      return static_cast<T>(v);
    } else if constexpr (std::floating_point<T>) {
      double v = 0;
      require(host_.abi()->get_float(abi_->config, to_abi(key), &v), key, "float");
      return static_cast<T>(v);
    } else {
      assay_str v{};
      require(host_.abi()->get_string(abi_->config, to_abi(key), &v), key, "string");
      return T(from_abi(v));
    }
  }
  std::uint64_t seed() const noexcept { return abi_->seed; }
  std::int32_t rank() const noexcept { return abi_->rank; }
  std::int32_t rank_count() const noexcept { return abi_->rank_count; }
  std::string_view device_kind() const noexcept { return abi_->device_kind; }
  // False when the first step is to show what it costs (assay_case.prepare).
  bool prepares() const noexcept { return !ASSAY_HAS(abi_, assay_case, prepare) || abi_->prepare != 0; }
  const Host& host() const noexcept { return host_; }

 private:
  static void require(assay_status s, std::string_view key, const char* type) {
    if (s != ASSAY_OK)
      throw Error(ASSAY_INVALID_ARGUMENT, "the workload asks for parameter '" + std::string(key) + "' as " + type +
                                              ", which its own table does not have");
  }
  Host host_;
  const assay_case* abi_;
};

// The context of one call: the stream to enqueue on, phase marks, metrics.
class Launch {
 public:
  explicit Launch(const assay_launch* abi) noexcept : abi_(abi) {}

  // Marks a phase for as long as it lives: `auto forward = launch.phase(0);`
  class [[nodiscard]] Phase {
   public:
    Phase(const assay_launch* abi, std::uint32_t index) noexcept
        : abi_(abi), index_(index), exceptions_(std::uncaught_exceptions()) {
      abi_->phase_begin(abi_, index_);
    }
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;
    // Left open while an exception passes through, so that the record names the phase that failed.
    ~Phase() {
      if (std::uncaught_exceptions() == exceptions_) abi_->phase_end(abi_, index_);
    }

   private:
    const assay_launch* abi_;
    std::uint32_t index_;
    int exceptions_;
  };
  template <class Index>
  Phase phase(Index index) const noexcept {
    return Phase(abi_, static_cast<std::uint32_t>(index));
  }
  template <class Index>
  void metric(Index index, double value) const noexcept {
    abi_->metric(abi_, static_cast<std::uint32_t>(index), value);
  }
  void* stream() const noexcept { return abi_->stream; }
  std::int32_t device() const noexcept { return abi_->device; }
  assay_stage stage() const noexcept { return abi_->stage; }
  std::uint64_t iteration() const noexcept { return abi_->iteration; }
  const assay_launch* abi() const noexcept { return abi_; }

 private:
  const assay_launch* abi_;
};

// Memory on the case's device, taken through the host so that it is accounted for by kind. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const Host& host, assay_memory_kind kind, std::size_t bytes, std::string_view label)
      : memory_(host.extension<assay_memory>(ASSAY_EXT_MEMORY)), bytes_(bytes) {
    if (!memory_) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_MEMORY);
    if (const assay_status s = memory_->allocate(memory_, kind, bytes, to_abi(label), &address_); s != ASSAY_OK)
      throw Error(s, "");  // the host has the text
  }
  DeviceMemory(DeviceMemory&& o) noexcept
      : memory_(o.memory_), address_(std::exchange(o.address_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& o) noexcept {
    if (this != &o) {
      reset();
      memory_ = o.memory_;
      address_ = std::exchange(o.address_, nullptr);
      bytes_ = std::exchange(o.bytes_, 0);
    }
    return *this;
  }
  ~DeviceMemory() { reset(); }
  void reset() noexcept {
    if (address_) memory_->release(memory_, address_);
    address_ = nullptr, bytes_ = 0;
  }
  template <class T = void>
  T* data() const noexcept {
    return static_cast<T*>(address_);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  const assay_memory* memory_ = nullptr;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// Names a moment of the memory account: "after_setup", "before_step", ...
inline void memory_moment(const Host& host, std::string_view name) noexcept {
  if (const auto* m = host.extension<assay_memory>(ASSAY_EXT_MEMORY)) m->moment(m, to_abi(name));
}

// Says how far a long set-up is.
inline void report_progress(const Host& host, std::int64_t done, std::int64_t total) noexcept {
  if (const auto* p = host.extension<assay_progress>(ASSAY_EXT_PROGRESS)) p->report(p, done, total);
}

// While it lives, phase marks belong to the step that is being captured.
class [[nodiscard]] CaptureMarks {
 public:
  explicit CaptureMarks(const Host& host) : capture_(host.extension<assay_capture>(ASSAY_EXT_CAPTURE)) {
    if (!capture_) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_CAPTURE);
    if (const assay_status s = capture_->begin(capture_); s != ASSAY_OK) throw Error(s, "");
  }
  CaptureMarks(const CaptureMarks&) = delete;
  CaptureMarks& operator=(const CaptureMarks&) = delete;
  ~CaptureMarks() { capture_->end(capture_); }

 private:
  const assay_capture* capture_;
};
// To be called in run(): the captured step was replayed.
inline void mark_replayed(const Host& host) noexcept {
  if (const auto* c = host.extension<assay_capture>(ASSAY_EXT_CAPTURE)) c->replayed(c);
}

struct Work {
  std::uint64_t flops = 0, bytes = 0, items = 0;
  assay_arithmetic arithmetic = ASSAY_ARITHMETIC_UNSTATED;
};

// The most that the device does, by trial (assay_peak); `text`: how that was found.
struct Peak {
  double flops_per_s = 0, bytes_per_s = 0;
  std::string text;
};

// What a verification has found right. It throws Error(ASSAY_WRONG_RESULT) at what is wrong.
struct Verified {
  std::string text;      // what was checked
  bool in_part = false;  // something that ought to be checked was not; the text says what, and why

  Verified(std::string text_of_all) : text(std::move(text_of_all)) {}
  Verified(std::string text_of_part, bool is_part) : text(std::move(text_of_part)), in_part(is_part) {}
};

// ---- the adapter: where exceptions become statuses
// ---------------------------------------------------------------------

namespace detail {

// Runs `f`; whatever it throws becomes a status, with its text handed to the host.
template <class F>
assay_status guard(const assay_host* host, F&& f) noexcept {
  const auto fail = [host](assay_status s, const char* text) {
    if (text && *text) host->set_message(host, s, to_abi(text));
    return s;
  };
  try {
    std::forward<F>(f)();
    return ASSAY_OK;
  } catch (const Error& e) {
    return fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(ASSAY_OUT_OF_MEMORY, "host memory: std::bad_alloc");
  } catch (const std::exception& e) {
    return fail(ASSAY_INTERNAL, e.what());
  } catch (...) {
    return fail(ASSAY_INTERNAL, "the plugin threw something that is not a std::exception");
  }
}

template <class Rows, std::size_t... I>
constexpr auto pointers(const Rows& rows, std::index_sequence<I...>) {
  return std::array{&rows[I].row...};
}

template <class W>
struct Adapter {
  struct Self {
    const assay_host* host;
    W workload;
  };
  static Self* self(assay_workload_self* s) noexcept { return reinterpret_cast<Self*>(s); }
  static const Self* self(const assay_workload_self* s) noexcept { return reinterpret_cast<const Self*>(s); }

  static assay_status create(const assay_host* host, const assay_case* c, assay_workload_self** out) noexcept {
    return guard(host, [&] { *out = reinterpret_cast<assay_workload_self*>(new Self{host, W(Case(host, c))}); });
  }
  static void destroy(assay_workload_self* s) noexcept { delete self(s); }
  static assay_status setup(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.setup(Launch(l)); });
  }
  static assay_status run(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.run(Launch(l)); });
  }
  static assay_status finish(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.finish(Launch(l)); });
  }
  static assay_status verify(assay_workload_self* s, const assay_launch* l) noexcept {
    const assay_host* host = self(s)->host;
    assay_status verdict = ASSAY_OK;
    const assay_status status = guard(host, [&] {
      const Verified verified(self(s)->workload.verify(Launch(l)));
      if (verified.in_part) verdict = host->abi_minor >= 3 ? ASSAY_VERIFIED_IN_PART : ASSAY_UNSUPPORTED;
      host->set_message(host, verdict, to_abi(verified.text));
    });
    return status == ASSAY_OK ? verdict : status;
  }
  static assay_status work(const assay_workload_self* s, assay_work* out) noexcept {
    return guard(self(s)->host, [&] {
      const Work w = self(s)->workload.work();
      if (ASSAY_HAS(out, assay_work, items)) out->flops = w.flops, out->bytes = w.bytes, out->items = w.items;
      if (ASSAY_HAS(out, assay_work, arithmetic)) out->arithmetic = w.arithmetic;
    });
  }
  static assay_status peak(assay_workload_self* s, const assay_launch* l, assay_peak* out) noexcept {
    return guard(self(s)->host, [&] {
      const Peak found = self(s)->workload.peak(Launch(l));
      if (ASSAY_HAS(out, assay_peak, bytes_per_s))
        out->flops_per_s = found.flops_per_s, out->bytes_per_s = found.bytes_per_s;
      self(s)->host->set_message(self(s)->host, ASSAY_OK, to_abi(found.text));
    });
  }
  static assay_status silence(assay_workload_self* s, std::int32_t silent) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.silence(silent != 0); });
  }
  static constexpr bool has_silence = requires(W & x) { x.silence(true); };
  static constexpr bool has_peak = requires(W & x, const Launch& l) { Peak(x.peak(l)); };
  static constexpr bool has_extension = requires(const W& x) { x.extension(""); };
  static const void* extension(const assay_workload_self* s, const char* id) noexcept {
    if constexpr (has_peak) {
      static constexpr assay_peak_probe probe{sizeof(assay_peak_probe), peak};
      if (std::string_view(id) == ASSAY_EXT_PEAK) return &probe;
    }
    if constexpr (has_silence) {
      static constexpr assay_silence table{sizeof(assay_silence), silence};
      if (std::string_view(id) == ASSAY_EXT_SILENCE) return &table;
    }
    if constexpr (has_extension) return self(s)->workload.extension(id);
    return nullptr;
  }

  static constexpr auto param_pointers() {
    if constexpr (requires { W::params; })
      return pointers(W::params, std::make_index_sequence<W::params.size()>());
    else
      return std::array<const assay_param*, 0>{};
  }
  static constexpr auto metric_pointers() {
    if constexpr (requires { W::metrics; })
      return pointers(W::metrics, std::make_index_sequence<W::metrics.size()>());
    else
      return std::array<const assay_metric*, 0>{};
  }
  static constexpr auto preset_pointers() {
    if constexpr (requires { W::presets; })
      return pointers(W::presets, std::make_index_sequence<W::presets.size()>());
    else
      return std::array<const assay_preset*, 0>{};
  }
  static constexpr auto params_ = param_pointers();
  static constexpr auto metrics_ = metric_pointers();
  static constexpr auto presets_ = preset_pointers();

  static constexpr assay_workload make() {
    assay_workload w{};
    w.struct_size = sizeof(assay_workload);
    w.id = W::id;
    w.summary = W::summary;
    if constexpr (requires { W::item_unit; }) w.item_unit = W::item_unit;
    w.params = params_.data(), w.param_count = static_cast<std::uint32_t>(params_.size());
    w.metrics = metrics_.data(), w.metric_count = static_cast<std::uint32_t>(metrics_.size());
    if constexpr (requires { W::phases; })
      w.phases = W::phases.data(), w.phase_count = static_cast<std::uint32_t>(W::phases.size());
    w.presets = presets_.data(), w.preset_count = static_cast<std::uint32_t>(presets_.size());
    if constexpr (requires { W::device_flags; }) w.device_flags = W::device_flags;
    if constexpr (requires { W::cold_start; }) w.flags |= W::cold_start ? ASSAY_WORKLOAD_COLD_START : 0u;
    if constexpr (requires { W::ranks_cooperate; }) w.flags |= W::ranks_cooperate ? ASSAY_WORKLOAD_RANKS_COOPERATE : 0u;
    w.create = create, w.destroy = destroy, w.setup = setup, w.run = run;
    if constexpr (requires(W & x, const Launch& l) { x.finish(l); }) w.finish = finish;
    if constexpr (requires(W & x, const Launch& l) { Verified(x.verify(l)); }) w.verify = verify;
    if constexpr (requires(const W& x) { Work(x.work()); }) w.work = work;
    if constexpr (has_peak || has_silence || has_extension) w.get_extension = extension;
    return w;
  }
  static constexpr assay_workload workload_ = make();

  // The oldest host in which the workload means what it says. An older one would show the index of a metric's word, and
  // would run without what a preset stands for. It does without everything else that came later: it never asks for a
  // cold start, a peak or silence, is told 'not checked' of a verification in part, and starts ranks as it always did.
  static constexpr std::uint32_t min_host_minor() {
    std::uint32_t minor = 0;
    if constexpr (requires { W::min_host_minor; }) {
      static_assert(W::min_host_minor <= ASSAY_ABI_MINOR,
                    "min_host_minor is above the version of this header, whose hosts the plugin is built for");
      minor = W::min_host_minor;
    }
    for (const assay_metric* metric : metrics_)
      if (metric->word_count > 0 && minor < 1) minor = 1;
    if (!presets_.empty() && minor < 2) minor = 2;
    return minor;
  }
};

template <class... W>
inline constexpr std::array<const assay_workload*, sizeof...(W)> workload_pointers{&Adapter<W>::workload_...};

// Of a plugin with these workloads: all of them must work.
template <class... W>
constexpr std::uint32_t min_host_minor() {
  std::uint32_t minor = 0;
  for (const std::uint32_t needed : {Adapter<W>::min_host_minor()...})
    if (minor < needed) minor = needed;
  return minor;
}

}  // namespace detail
}  // namespace assay

#ifndef ASSAY_BUILD_INFO /* assay_add_plugin sets it to the compiler and the build type */
#define ASSAY_BUILD_INFO "unknown build"
#endif

// Defines the exported entry: ASSAY_PLUGIN(id, version, Workload...). Once per plugin.
#define ASSAY_PLUGIN(id_text, version_text, ...)                                        \
  extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v1 = {                \
      sizeof(assay_entry),                                                              \
      ASSAY_ABI_MAJOR,                                                                  \
      ASSAY_ABI_MINOR,                                                                  \
      assay::detail::min_host_minor<__VA_ARGS__>(),                                     \
      static_cast<std::uint32_t>(assay::detail::workload_pointers<__VA_ARGS__>.size()), \
      id_text,                                                                          \
      version_text,                                                                     \
      ASSAY_BUILD_INFO,                                                                 \
      assay::detail::workload_pointers<__VA_ARGS__>.data(),                             \
      nullptr,                                                                          \
      nullptr};
