#include "doctor/devices.hpp"

#include <assay/telemetry.h>
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>

#include "common/child.hpp"
#include "plugin/search.hpp"

namespace assay::host::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double bytes_of_mib = 1048576.0;
// A driver that wakes a sleeping GPU takes seconds for each; one that hangs takes for ever.
constexpr std::chrono::seconds patience{60};

struct HeldBy {
  std::uint64_t bit;
  const char* name;
};
constexpr HeldBy reasons[] = {{ASSAY_THROTTLE_APPLICATION_CLOCKS, "lower application clocks"},
                              {ASSAY_THROTTLE_POWER_CAP, "its power cap"},
                              {ASSAY_THROTTLE_HW_SLOWDOWN, "the hardware's own protection"},
                              {ASSAY_THROTTLE_SYNC_BOOST, "a slower GPU of its group"},
                              {ASSAY_THROTTLE_THERMAL, "heat"},
                              {ASSAY_THROTTLE_HW_THERMAL, "heat (the hardware)"},
                              {ASSAY_THROTTLE_POWER_BRAKE, "a power brake"},
                              {ASSAY_THROTTLE_DISPLAY_CLOCKS, "display clocks"}};

// Closed before the device.
class Reader {
 public:
  Reader(const assay_telemetry& table, assay_device* device) : table_(table) {
    is_open_ = table_.open(device, &reader_) == ASSAY_OK && reader_;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (is_open_) table_.close(reader_);
  }
  void fill(DeviceState& state) const {
    if (!is_open_) return;
    if (const char* note = table_.note(reader_)) state.note = note;
    assay_telemetry_limits limits{};
    limits.struct_size = sizeof limits;
    if (table_.limits(reader_, &limits) == ASSAY_OK) {
      const auto take = [&limits](std::uint64_t bit, double value, std::optional<double>& to) {
        if (limits.known & bit) to = value;
      };
      take(ASSAY_LIMIT_MAX_SM_CLOCK, limits.max_sm_clock_mhz, state.max_sm_clock_mhz);
      take(ASSAY_LIMIT_APPLICATION_SM_CLOCK, limits.application_sm_clock_mhz, state.application_sm_clock_mhz);
      take(ASSAY_LIMIT_POWER, limits.power_w, state.power_limit_w);
      take(ASSAY_LIMIT_DEFAULT_POWER, limits.default_power_w, state.default_power_limit_w);
      limits.driver[sizeof limits.driver - 1] = '\0';
      state.driver = limits.driver;
    }
    assay_telemetry_sample sample{};
    for (const assay_telemetry_moment moment : {ASSAY_TELEMETRY_BEGIN, ASSAY_TELEMETRY_END}) {
      sample = {};
      sample.struct_size = sizeof sample;
      if (table_.sample(reader_, moment, &sample) != ASSAY_OK) return;
    }
    if (sample.known & ASSAY_TELEMETRY_TEMPERATURE) state.temperature_c = sample.temperature_c;
    if (sample.known & ASSAY_TELEMETRY_POWER) state.power_w = sample.power_w;
    if (sample.known & ASSAY_TELEMETRY_FOREIGN_PROCESSES) state.foreign_processes = sample.foreign_processes;
    if (sample.known & ASSAY_TELEMETRY_FOREIGN_MEMORY)
      state.foreign_memory_mib = static_cast<double>(sample.foreign_memory_bytes) / bytes_of_mib;
    if (sample.known & ASSAY_TELEMETRY_THROTTLE)
      for (const HeldBy& reason : reasons)
        if (sample.throttle & reason.bit) state.held_by.emplace_back(reason.name);
  }

 private:
  const assay_telemetry& table_;
  assay_telemetry_reader* reader_ = nullptr;
  bool is_open_ = false;
};

DeviceState state_of(const std::shared_ptr<const plugin::DeviceLibrary>& library, std::int32_t ordinal) {
  DeviceState state;
  state.ordinal = ordinal;
  try {
    const plugin::OpenDevice device(library, ordinal);
    const assay_device_info info = device.info();
    state.name = info.name, state.libraries = info.libraries;
    state.bus_address = info.bus_address, state.uuid = info.uuid;
    state.compute_units = info.compute_units;
    state.memory_total_mib = static_cast<double>(info.memory_total_bytes) / bytes_of_mib;
    state.memory_free_mib = static_cast<double>(info.memory_free_bytes) / bytes_of_mib;
    if (const void* table = device.api().get_extension(ASSAY_EXT_TELEMETRY))
      Reader(*static_cast<const assay_telemetry*>(table), device.handle()).fill(state);
  } catch (const std::exception& e) {
    state.problem = e.what();
  }
  return state;
}

// What the child sends, a line for each device.
Json told_json(const DeviceState& s) {
  Json json{{"ordinal", s.ordinal},      {"problem", s.problem},     {"name", s.name},
            {"libraries", s.libraries},  {"bus", s.bus_address},     {"uuid", s.uuid},
            {"driver", s.driver},        {"units", s.compute_units}, {"total", s.memory_total_mib},
            {"free", s.memory_free_mib}, {"held", s.held_by},        {"note", s.note}};
  const auto add = [&json](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  add("max_sm", s.max_sm_clock_mhz), add("application_sm", s.application_sm_clock_mhz);
  add("power_limit", s.power_limit_w), add("default_power_limit", s.default_power_limit_w);
  add("temperature", s.temperature_c), add("power", s.power_w);
  add("foreign", s.foreign_processes), add("foreign_memory", s.foreign_memory_mib);
  return json;
}

DeviceState state_from(const Json& json) {
  DeviceState s;
  s.ordinal = json.at("ordinal"), s.problem = json.at("problem"), s.name = json.at("name");
  s.libraries = json.at("libraries"), s.bus_address = json.at("bus"), s.uuid = json.at("uuid");
  s.driver = json.at("driver"), s.compute_units = json.at("units");
  s.memory_total_mib = json.at("total"), s.memory_free_mib = json.at("free");
  s.held_by = json.at("held").get<std::vector<std::string>>(), s.note = json.at("note");
  const auto take = [&json](const char* key, auto& to) {
    if (const auto found = json.find(key); found != json.end()) to = found->get<std::decay_t<decltype(*to)>>();
  };
  take("max_sm", s.max_sm_clock_mhz), take("application_sm", s.application_sm_clock_mhz);
  take("power_limit", s.power_limit_w), take("default_power_limit", s.default_power_limit_w);
  take("temperature", s.temperature_c), take("power", s.power_w);
  take("foreign", s.foreign_processes), take("foreign_memory", s.foreign_memory_mib);
  return s;
}

}  // namespace

DeviceKind ask_devices_of_kind(const std::string& kind) {
  DeviceKind found{kind, "", {}};
  try {
    const std::shared_ptr<const plugin::DeviceLibrary> library = plugin::find_device(kind);
    std::int32_t count = 0;
    if (library->api().count(&count) != ASSAY_OK) {
      found.problem = library->api().error_text();
      return found;
    }
    for (std::int32_t i = 0; i < count; ++i) found.devices.push_back(state_of(library, i));
    if (count == 0) found.problem = "the backend finds none";
  } catch (const std::exception& e) {
    found.problem = e.what();
  }
  return found;
}

std::vector<DeviceKind> ask_devices() {
  std::vector<DeviceKind> kinds;
  for (const std::string& kind : plugin::installed_device_kinds()) {
    ChildOptions options;
    options.deadline = patience;
    const ChildEnd end = run_in_child(
        [&kind](const Send& send) {
          const DeviceKind found = ask_devices_of_kind(kind);
          Json json{{"problem", found.problem}, {"devices", Json::array()}};
          for (const DeviceState& device : found.devices) json["devices"].push_back(told_json(device));
          send(json.dump(-1, ' ', false, Json::error_handler_t::replace));
        },
        options);
    DeviceKind found{kind, "", {}};
    const Json answer = Json::parse(end.text, nullptr, false);
    if (answer.is_object()) {
      found.problem = answer.at("problem");
      for (const Json& device : answer.at("devices")) found.devices.push_back(state_from(device));
    } else {
      found.problem = end.is_overdue ? fmt::format("its backend gave no answer within {} s", patience.count())
                                     : fmt::format("asking its backend ended with {}", end.how());
    }
    kinds.push_back(std::move(found));
  }
  return kinds;
}

}  // namespace assay::host::doctor
