// The fields of every struct of a record, and what writes and reads them. Longer than most files on purpose: nothing
// else knows a key, so that there is one place to look at.
#include "record/json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

// Fields<T>::visit(field, object) calls field(key, member) for each field of T, in the order in which they are written.
// The same list serves both directions.
template <class T>
struct Fields;

template <>
struct Fields<Phase> {
  static void visit(auto&& field, auto& p) {
    field("mean_ms", p.mean_ms);
    field("std_ms", p.std_ms);
    field("cv", p.cv);
    field("min_ms", p.min_ms);
    field("max_ms", p.max_ms);
    field("p50_ms", p.p50_ms);
    field("p90_ms", p.p90_ms);
    field("p95_ms", p.p95_ms);
    field("p99_ms", p.p99_ms);
    field("ci_low_ms", p.ci_low_ms);
    field("ci_high_ms", p.ci_high_ms);
    field("confidence", p.confidence);
    field("n", p.n);
    field.unless_empty("samples_ms", p.samples_ms);
    field("host_mean_ms", p.host_mean_ms);
    field("share", p.share);
    field("device_mean_ms", p.device_mean_ms);
    field("autocorrelation", p.autocorrelation);
    field("effective_n", p.effective_n);
  }
};

template <>
struct Fields<Sampling> {
  static void visit(auto&& field, auto& s) {
    field.unless_empty("rule", s.rule);
    field("settling_steps", s.settling_steps);
    field.unless_empty("mode", s.mode);
    field("inner", s.inner);
    field("cold", s.is_cold);
    field("instrument_us", s.instrument_us);
  }
};

template <>
struct Fields<StepMetric> {
  static void visit(auto&& field, auto& m) {
    field("unit", m.unit);
    field("direction", m.direction);
    field("mean", m.mean);
    field("std", m.std);
    field("min", m.min);
    field("max", m.max);
    field("last", m.last);
    field("n", m.n);
    field.unless_empty("samples", m.samples);
  }
};

template <>
struct Fields<CaseMetric> {
  static void visit(auto&& field, auto& m) {
    field.count("value", m.value);
    field("unit", m.unit);
    field("direction", m.direction);
    field("word", m.word);
  }
};

template <>
struct Fields<Work> {
  static void visit(auto&& field, auto& w) {
    field("flops", w.flops);
    field("bytes", w.bytes);
    field("items", w.items);
    field("item_unit", w.item_unit);
    field.unless_empty("arithmetic", w.arithmetic);
  }
};

template <>
struct Fields<Rates> {
  static void visit(auto&& field, auto& r) {
    field("gflop_per_s", r.gflop_per_s);
    field("gbytes_per_s", r.gbytes_per_s);
    field("items_per_s", r.items_per_s);
  }
};

template <>
struct Fields<Peak> {
  static void visit(auto&& field, auto& p) {
    field("gflop_per_s", p.gflop_per_s);
    field("gbytes_per_s", p.gbytes_per_s);
    field.unless_empty("text", p.text);
  }
};

template <>
struct Fields<SilentPass> {
  static void visit(auto&& field, auto& p) {
    field("steps", p.steps);
    field("step_mean_ms", p.step_mean_ms);
    field("communication_tax", p.communication_tax);
  }
};

template <>
struct Fields<Efficiency> {
  static void visit(auto&& field, auto& e) {
    field("stated", e.stated);
    field("measured", e.measured);
    field("mfu", e.mfu);
    field("bound_percent", e.bound_percent);
    field("mfu_measured", e.mfu_measured);
    field("bound_percent_measured", e.bound_percent_measured);
    field("j_per_item", e.j_per_item);
    field("items_per_j", e.items_per_j);
  }
};

template <>
struct Fields<MemoryAtMoment> {
  static void visit(auto&& field, auto& m) {
    field("name", m.name);
    field("current_mib", m.current_mib);
    field("peak_mib", m.peak_mib);
    field("current_total_mib", m.current_total_mib);
    field("peak_total_mib", m.peak_total_mib);
    field("rank_spread_mib", m.rank_spread_mib);
  }
};

template <>
struct Fields<Memory> {
  static void visit(auto&& field, auto& m) {
    field("moments", m.moments);
    field("peak_mib", m.peak_mib);
    field("peak_total_mib", m.peak_total_mib);
    field("step_peak_mib", m.step_peak_mib);
    field("process_peak_mib", m.process_peak_mib);
    field("device_used_mib", m.device_used_mib);
    field("unexplained_mib", m.unexplained_mib);
  }
};

template <>
struct Fields<VerificationResult> {
  static void visit(auto&& field, auto& v) {
    field("status", v.status);
    field("text", v.text);
  }
};

template <>
struct Fields<ProcessorShares> {
  static void visit(auto&& field, auto& c) {
    field("window_s", c.window_s);
    field("others_share", c.others_share);
    field("steal_share", c.steal_share);
    field("wait_share", c.wait_share);
    field("stall_share", c.stall_share);
    field("busy_threads", c.busy_threads);
  }
};

template <>
struct Fields<Threads> {
  static void visit(auto&& field, auto& t) {
    field("count", t.count);
    field.unless_empty("count_from", t.count_from);
    field("taken_processors", t.taken_processors);
    field.unless_empty("waiting", t.waiting);
    field("spin_count", t.spin_count);
    field("spin_us", t.spin_us);
  }
};

template <>
struct Fields<Figure> {
  static void visit(auto&& field, auto& f) {
    field("mean", f.mean);
    field("min", f.min);
    field("max", f.max);
  }
};

template <>
struct Fields<StepPeak> {
  static void visit(auto&& field, auto& p) {
    Fields<Figure>::visit(field, p);
    field.unless_empty("samples", p.samples);
  }
};

template <>
struct Fields<Telemetry> {
  static void visit(auto&& field, auto& t) {
    field("samples", t.samples);
    field("period_ms", t.period_ms);
    field("gpu_utilisation_percent", t.gpu_utilisation_percent);
    field("cpu_utilisation_percent", t.cpu_utilisation_percent);
    field("utilisation_span_s", t.utilisation_span_s);
    field.unless_empty("step_utilisation_percent", t.step_utilisation_percent);
    field("sm_clock_mhz", t.sm_clock_mhz);
    field("memory_clock_mhz", t.memory_clock_mhz);
    field("power_w", t.power_w);
    field("temperature_c", t.temperature_c);
    field("energy_j", t.energy_j);
    field("power_integral_j", t.power_integral_j);
    field("throttle", t.throttle);
    field("foreign_processes", t.foreign_processes);
    field("foreign_memory_mib", t.foreign_memory_mib);
  }
};

template <>
struct Fields<Validity> {
  static void visit(auto&& field, auto& v) {
    field("verdict", v.verdict);
    field("text", v.text);
  }
};

template <>
struct Fields<Device> {
  static void visit(auto&& field, auto& d) {
    field.unless_empty("kind", d.kind);
    field("ordinal", d.ordinal);
    field.unless_empty("name", d.name);
    field("compute_units", d.compute_units);
    field("memory_total_mib", d.memory_total_mib);
    field.unless_empty("libraries", d.libraries);
    field.unless_empty("bus_address", d.bus_address);
    field.unless_empty("driver", d.driver);
    field("max_sm_clock_mhz", d.max_sm_clock_mhz);
    field("max_memory_clock_mhz", d.max_memory_clock_mhz);
    field("application_sm_clock_mhz", d.application_sm_clock_mhz);
    field("application_memory_clock_mhz", d.application_memory_clock_mhz);
    field("power_limit_w", d.power_limit_w);
    field("default_power_limit_w", d.default_power_limit_w);
  }
};

template <>
struct Fields<Plugin> {
  static void visit(auto&& field, auto& p) {
    field("id", p.id);
    field("version", p.version);
    field("build", p.build);
    field("file_hash", p.file_hash);
  }
};

template <>
struct Fields<KernelTrace> {
  static void visit(auto&& field, auto& t) {
    field("steps", t.steps);
    field("step_ms", t.step_ms);
    field("busy_ms", t.busy_ms);
    field("in_graph", t.in_graph);
    field.unless_empty("file", t.file);
  }
};

template <>
struct Fields<KernelRow> {
  static void visit(auto&& field, auto& r) {
    field("class", r.kernel_class);
    field("name", r.name);
    field("count", r.count);
    field("time_us", r.time_us);
    field("share", r.share);
  }
};

template <>
struct Fields<RankEntry> {
  static void visit(auto&& field, auto& r) {
    field("rank", r.rank);
    field("host", r.host);
    field("device", r.device);
    field("step_mean_ms", r.step_mean_ms);
    field("step_std_ms", r.step_std_ms);
    field("step_p50_ms", r.step_p50_ms);
    field("step_min_ms", r.step_min_ms);
    field("step_max_ms", r.step_max_ms);
    field("phases", r.phases);
    field("step_metrics", r.step_metrics);
    field("metrics", r.metrics);
    field("memory_peak_mib", r.memory_peak_mib);
    field("process_peak_mib", r.process_peak_mib);
    field("telemetry", r.telemetry);
    field("validity", r.validity);
    field("status", r.status);
    field("stage", r.stage);
    field.unless_empty("phase", r.phase);
    field("step", r.step);
    field.unless_empty("reason", r.reason);
  }
};

template <>
struct Fields<Straggler> {
  static void visit(auto&& field, auto& s) {
    field("rank", s.rank);
    field("share", s.share);
  }
};

template <>
struct Fields<WallTimes> {
  static void visit(auto&& field, auto& w) {
    field("measure", w.measure_s);
    field("setup", w.setup_s);
    field("case", w.case_s);
  }
};

// How a case ended. In a whole record it stands before what was to be run.
void visit_end(auto&& field, auto& r) {
  field.status(r);
  field("reason", r.reason);
  field.or_empty("stage", r.stage);
  field("phase", r.phase);
  field.or_null("rank", r.rank);
}

void visit_findings(auto&& field, auto& r) {
  field("notes", r.notes);
  field.unless_empty("wall_s", r.wall);
  field("work", r.work);
  field.unless_empty("memory_snapshot", r.memory_snapshot);
  field("kernel_trace", r.kernel_trace);
  field("kernels", r.kernels);
  field("contention", r.contention);
  field.unless_empty("threads", r.threads);
  field("telemetry", r.telemetry);
  field("validity", r.validity);
  field("memory", r.memory);
  field("verify", r.verify);
  field("phases", r.phases);
  field("step_metrics", r.step_metrics);
  field("sampling", r.sampling);
  field("rates", r.rates);
  field("efficiency", r.efficiency);
  field("silent", r.silent);
  field("drift", r.drift);
  field("metrics", r.metrics);
  field("step", r.step);
  field.unless_empty("log_tail", r.log_tail);
  field("copies", r.copies);
  field.unless_empty("by_rank", r.by_rank);
  field("straggler", r.straggler);
  field("spread", r.spread);
}

template <>
struct Fields<CaseResult> {
  static void visit(auto&& field, auto& r) {
    visit_end(field, r);
    field("device", r.device);
    visit_findings(field, r);
  }
};

template <>
struct Fields<CaseRecord> {
  static void visit(auto&& field, auto& record) {
    auto& id = record.identity;
    auto& result = record.result;
    field("index", id.index);
    field("hash", id.hash);
    field("axes", id.axes);
    visit_end(field, result);
    field("ranks", id.ranks);
    field("workload", id.workload);
    field("plugin", id.plugin);
    field("device", result.device);
    field("params", id.params);
    field("settings", id.settings);
    visit_findings(field, result);
    field.unless_empty("started", record.started);
  }
};

// ---- writing ----

Json json_of(bool value) { return value; }
Json json_of(double value) { return value; }
Json json_of(std::int32_t value) { return value; }
Json json_of(std::int64_t value) { return value; }
Json json_of(std::uint64_t value) { return value; }
Json json_of(const std::string& text) { return text; }
Json json_of(Direction direction) { return static_cast<int>(direction); }
Json json_of(Stage stage) { return name_of(stage); }
Json json_of(Status status) { return name_of(status); }
Json json_of(Verification verification) { return name_of(verification); }
Json json_of(ValidityVerdict verdict) { return name_of(verdict); }
Json json_of(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}
template <class T>
Json json_of(const Named<T>& list);
template <class T>
Json json_of(const std::vector<T>& list);
template <class T>
requires requires { sizeof(Fields<T>); }
Json json_of(const T& object);

class Writer {
 public:
  explicit Writer(Json& out) : out_(out) {}
  template <class T>
  void operator()(const char* key, const T& value) {
    out_[key] = json_of(value);
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) out_[key] = json_of(*value);
  }
  template <class T>
  void unless_empty(const char* key, const T& value) {
    if (!value.empty()) out_[key] = json_of(value);
  }
  template <class T>
  void or_null(const char* key, const std::optional<T>& value) {
    out_[key] = value ? json_of(*value) : Json();
  }
  template <class T>
  void or_empty(const char* key, const std::optional<T>& value) {
    out_[key] = value ? json_of(*value) : Json("");
  }
  void status(const CaseResult& result) { out_["status"] = result.status_text(); }
  void count(const char* key, double value) { out_[key] = json_of(count_if_whole(value)); }

 private:
  Json& out_;
};

template <class T>
Json json_of(const Named<T>& list) {
  Json out = Json::object();
  for (const auto& [name, value] : list) out[name] = json_of(value);
  return out;
}
template <class T>
Json json_of(const std::vector<T>& list) {
  Json out = Json::array();
  for (const T& element : list) out.push_back(json_of(element));
  return out;
}
template <class T>
requires requires { sizeof(Fields<T>); }
Json json_of(const T& object) {
  Json out = Json::object();
  Fields<T>::visit(Writer(out), object);
  return out;
}

// ---- reading: false when the JSON is of another type, and then nothing is set ----

bool read(const Json& json, bool& out) {
  if (json.is_boolean()) out = json.get<bool>();
  return json.is_boolean();
}
bool read(const Json& json, double& out) {
  if (json.is_null()) out = std::numeric_limits<double>::quiet_NaN();
  if (json.is_number()) out = json.get<double>();
  return json.is_null() || json.is_number();
}
template <class T>
requires std::is_integral_v<T>
bool read(const Json& json, T& out) {
  // What is whole and fits counts, however it is spelt.
  if (!json.is_number()) return false;
  const double value = json.get<double>();
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= (std::is_signed_v<T> ? -beyond : 0.0) && value < beyond) || value != std::floor(value)) return false;
  out = json.is_number_float() ? static_cast<T>(value) : json.get<T>();
  return true;
}
bool read(const Json& json, std::string& out) {
  if (json.is_string()) out = json.get<std::string>();
  return json.is_string();
}
bool read(const Json& json, Direction& out) {
  int value = 0;
  if (!read(json, value)) return false;
  out = value < 0 ? Direction::lower_is_better : value > 0 ? Direction::higher_is_better : Direction::neither;
  return true;
}
template <class Enum>
bool read_name(const Json& json, Enum& out, std::optional<Enum> (*by_name)(std::string_view)) {
  const std::optional<Enum> found =
      json.is_string() ? by_name(json.get_ref<const std::string&>()) : std::optional<Enum>();
  if (found) out = *found;
  return found.has_value();
}
bool read(const Json& json, Stage& out) { return read_name(json, out, stage_of); }
bool read(const Json& json, Status& out) { return read_name(json, out, status_of); }
bool read(const Json& json, Verification& out) { return read_name(json, out, verification_of); }
bool read(const Json& json, ValidityVerdict& out) { return read_name(json, out, validity_verdict_of); }
bool read(const Json& json, Value& out) {
  if (json.is_structured()) {  // of another assay: what it says stays told
    out = json_text(json);
    return true;
  }
  if (json.is_null()) {  // a number that was told and is none
    out = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  out = value_from_json(json);
  return true;
}
template <class T>
bool read(const Json& json, Named<T>& out);
template <class T>
bool read(const Json& json, std::vector<T>& out);
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Json& json, T& out);

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <class T>
  void operator()(const char* key, T& out) {
    if (const Json* value = at(key)) read(*value, out);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& out) {
    const Json* value = at(key);
    T read_value{};
    if (value && read(*value, read_value)) out = std::move(read_value);
  }
  template <class T>
  void unless_empty(const char* key, T& out) {
    (*this)(key, out);
  }
  template <class T>
  void or_null(const char* key, std::optional<T>& out) {
    (*this)(key, out);
  }
  template <class T>
  void or_empty(const char* key, std::optional<T>& out) {
    (*this)(key, out);
  }
  void count(const char* key, double& out) { (*this)(key, out); }
  void status(CaseResult& result) {
    std::string word;
    (*this)("status", word);
    result.status = status_of(word).value_or(Status::unknown);
    if (result.status == Status::unknown) result.unknown_status = word;
  }

 private:
  const Json* at(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& json_;
};

template <class T>
bool read(const Json& json, Named<T>& out) {
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items())
    if (T read_value{}; read(value, read_value)) out.emplace_back(name, std::move(read_value));
  return true;
}
template <class T>
bool read(const Json& json, std::vector<T>& out) {
  if (!json.is_array()) return false;
  for (const Json& element : json)
    if (T read_value{}; read(element, read_value)) out.push_back(std::move(read_value));
  return true;
}
template <class T>
requires requires { sizeof(Fields<T>); }
bool read(const Json& json, T& out) {
  if (!json.is_object()) return false;
  Fields<T>::visit(Reader(json), out);
  return true;
}

template <class T>
std::optional<T> with_status(const Json& json) {
  std::string status;
  if (!json.is_object() || !json.contains("status") || !read(json["status"], status)) return std::nullopt;
  T out;
  read(json, out);
  return out;
}

}  // namespace

Json to_json(const CaseRecord& record) {
  Json out = {{"schema", 1}};
  Fields<CaseRecord>::visit(Writer(out), record);
  return out;
}
Json to_json(const CaseResult& result) { return json_of(result); }
Json to_json(const Device& device) { return json_of(device); }

std::optional<CaseRecord> record_from_json(const Json& json) { return with_status<CaseRecord>(json); }
std::optional<CaseResult> result_from_json(const Json& json) { return with_status<CaseResult>(json); }
Device device_from_json(const Json& json) {
  Device device;
  read(json, device);
  return device;
}

std::string to_line(const CaseRecord& record) { return json_text(to_json(record)); }
std::optional<CaseRecord> record_from_line(std::string_view line) {
  return record_from_json(Json::parse(line, nullptr, /*allow_exceptions=*/false));
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : json_text(json_of(value));
}

Named<std::string> items_of(const Device& device) {
  Named<std::string> items;
  const Json json = json_of(device);  // items() keeps no JSON alive
  for (const auto& [name, value] : json.items())
    if (!value.is_null()) items.emplace_back(name, value.is_string() ? value.get<std::string>() : json_text(value));
  return items;
}

}  // namespace assay::host::record
