#include "doctor/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/text_format.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::doctor {
namespace {

using Json = nlohmann::ordered_json;

std::string gib_text(double mib) { return fmt::format("{:.1f} GiB", mib / 1024); }

class Page {
 public:
  explicit Page(std::size_t width) : width_(std::max<std::size_t>(width, 40)) {}

  void title(const char* text) { page_ += fmt::format("{}{}\n", page_.empty() ? "" : "\n", text); }
  void line(const std::string& text) { block("  ", "  ", text); }
  // "  processor  AMD ...", the second line below the first one's text.
  void row(const char* name, const std::string& text) {
    if (text.empty()) return;
    block(fmt::format("  {:<12} ", name), std::string(15, ' '), text);
  }
  void block(const std::string& first, const std::string& rest, const std::string& text) {
    const std::vector<std::string> lines = wrapped(one_line(text), width_ - first.size());
    for (std::size_t i = 0; i < lines.size(); ++i) page_ += fmt::format("{}{}\n", i == 0 ? first : rest, lines[i]);
  }
  // Below its severity, whose colour takes no room.
  void finding(const std::string& severity, const std::string& text, const Palette& palette) {
    constexpr std::size_t indent = 2, column = 11;
    const std::size_t begin = page_.size();
    block(fmt::format("{:{}}{:<{}}", "", indent, severity, column - indent), std::string(column, ' '), text);
    page_.replace(begin + indent, severity.size(), palette.paint(severity));
  }
  std::string take() { return std::move(page_); }

 private:
  std::size_t width_;
  std::string page_;
};

// The parts that are known, separated by commas.
class Parts {
 public:
  void add(bool is_told, const std::string& text) {
    if (is_told && !text.empty()) texts_.push_back(text);
  }
  std::string text() const { return fmt::format("{}", fmt::join(texts_, ", ")); }

 private:
  std::vector<std::string> texts_;
};

std::string processor_text(const Machine& m) {
  Parts parts;
  parts.add(!m.model.empty(), m.model);
  parts.add(m.usable > 0, fmt::format("{} of {} processors usable", m.usable, m.processors));
  parts.add(m.usable == 0 && m.processors > 0, fmt::format("{} processors", m.processors));
  parts.add(m.numa_nodes > 1, fmt::format("{} NUMA nodes", m.numa_nodes));
  parts.add(m.hyper_threads.has_value(), m.hyper_threads.value_or(false) ? "SMT on" : "SMT off");
  parts.add(m.quota_cores.has_value(),
            fmt::format("the time of {:.3g} by the control group", m.quota_cores.value_or(0)));
  parts.add(m.is_virtual, "a virtual machine");
  return parts.text();
}

std::string clocks_text(const Machine& m) {
  Parts parts;
  for (const auto& [name, count] : m.governors) parts.add(true, fmt::format("governor {} on {}", name, count));
  parts.add(m.governors.empty(), "governor and clocks not known");
  parts.add(!m.frequency_driver.empty(), m.frequency_driver);
  parts.add(m.turbo.has_value(), m.turbo.value_or(false) ? "turbo on" : "turbo off");
  parts.add(!m.clock.empty(), "clock source " + m.clock);
  parts.add(m.clock_ns > 0, fmt::format("{:.0f} ns to read", m.clock_ns));
  return parts.text();
}

std::string memory_text(const Machine& m) {
  Parts parts;
  parts.add(m.memory_total_mib.has_value(), gib_text(m.memory_total_mib.value_or(0)));
  parts.add(m.memory_available_mib.has_value(), gib_text(m.memory_available_mib.value_or(0)) + " available");
  parts.add(m.memory_limit_mib.has_value(), gib_text(m.memory_limit_mib.value_or(0)) + " by the control group");
  parts.add(m.swap_used_mib.value_or(0) > 0, gib_text(m.swap_used_mib.value_or(0)) + " in swap");
  parts.add(!m.huge_pages.empty(), "transparent huge pages " + m.huge_pages);
  parts.add(m.reserved_huge_pages.value_or(0) > 0,
            fmt::format("{} huge pages reserved", m.reserved_huge_pages.value_or(0)));
  parts.add(m.shared_memory_mib.has_value(), gib_text(m.shared_memory_mib.value_or(0)) + " /dev/shm");
  return parts.text();
}

std::string neighbours_text(const Machine& m) {
  Parts parts;
  parts.add(true, fmt::format("{:.1f} processors taken by others", m.taken_processors));
  parts.add(m.load_1min.has_value(), fmt::format("load {:.2f}", m.load_1min.value_or(0)));
  for (const Neighbour& n : m.neighbours) parts.add(true, fmt::format("{} {:.0f}%", n.name, n.processors * 100));
  return parts.text();
}

std::string limits_text(const Machine& m) {
  Parts parts;
  parts.add(m.open_files.has_value(), fmt::format("{} open files", m.open_files.value_or(0)));
  parts.add(m.ptrace_scope.has_value(), fmt::format("ptrace_scope {}", m.ptrace_scope.value_or(0)));
  parts.add(m.perf_paranoid.has_value(), fmt::format("perf_event_paranoid {}", m.perf_paranoid.value_or(0)));
  parts.add(m.is_root, "root");
  return parts.text();
}

std::string disk_text(const Machine& m) {
  if (m.results.empty()) return "";
  Parts parts;
  parts.add(true, m.results.string());
  parts.add(!m.results_file_system.empty(), m.results_file_system);
  parts.add(m.results_free_mib.has_value(), gib_text(m.results_free_mib.value_or(0)) + " free");
  return parts.text();
}

std::string device_text(const DeviceState& d) {
  if (!d.problem.empty()) return "unusable: " + d.problem;
  Parts parts;
  parts.add(true, d.name);
  parts.add(true, fmt::format("{} of {} free", gib_text(d.memory_free_mib), gib_text(d.memory_total_mib)));
  parts.add(!d.driver.empty(), "driver " + d.driver);
  parts.add(d.max_sm_clock_mhz.has_value(), fmt::format("at most {:.0f} MHz", d.max_sm_clock_mhz.value_or(0)));
  parts.add(d.application_sm_clock_mhz.has_value() && d.application_sm_clock_mhz != d.max_sm_clock_mhz,
            fmt::format("application clock {:.0f} MHz", d.application_sm_clock_mhz.value_or(0)));
  parts.add(d.power_limit_w.has_value(), fmt::format("power limit {:.0f} W", d.power_limit_w.value_or(0)));
  parts.add(d.temperature_c.has_value(), fmt::format("{:.0f} degrees C", d.temperature_c.value_or(0)));
  parts.add(d.foreign_processes.has_value(), fmt::format("{} other processes", d.foreign_processes.value_or(0)));
  return parts.text();
}

void add_devices(Page& page, const Facts& facts) {
  page.title("Devices");
  if (!facts.devices_asked) page.line("not asked: the folder stands for another machine");
  for (const GpuOnBus& gpu : facts.machine.gpus)
    if (!facts.kind("cuda") || !facts.kind("cuda")->is_usable())
      page.line(fmt::format("a GPU of NVIDIA at {}, driver {}", gpu.address,
                            facts.machine.driver.empty() ? "not loaded" : facts.machine.driver));
  for (const DeviceKind& kind : facts.devices) {
    if (kind.devices.empty()) page.row(kind.kind.c_str(), "unusable: " + kind.problem);
    for (const DeviceState& device : kind.devices) {
      const std::string name = kind.devices.size() > 1 ? fmt::format("{} {}", kind.kind, device.ordinal) : kind.kind;
      page.row(name.c_str(), device_text(device));
      if (!device.libraries.empty()) page.row("", device.libraries);
      if (!device.note.empty()) page.row("", device.note);
    }
  }
  if (facts.devices_asked && facts.devices.empty()) page.line("none is installed");
}

const DeviceState* device_of_auto(const Facts& facts) {
  const DeviceKind* kind = facts.kind(facts.auto_device());
  if (!kind) return nullptr;
  for (const DeviceState& device : kind->devices)
    if (device.problem.empty()) return &device;
  return nullptr;
}

void add_use(Page& page, const Facts& facts) {
  if (!facts.devices_asked) return;
  page.title("What assay would use");
  const DeviceState* device = device_of_auto(facts);
  page.row("device",
           device ? fmt::format("auto is {}: {}{}", facts.auto_device(), device->name,
                                facts.auto_device() == "cpu" ? fmt::format(", {} threads", device->compute_units) : "")
                  : "none");
  page.row("ranks",
           fmt::format("communicators: {}",
                       facts.communicators.empty() ? "none" : fmt::format("{}", fmt::join(facts.communicators, ", "))));
  page.row("plugins", fmt::format("{} found", facts.plugins));
  page.row("results", disk_text(facts.machine));
}

std::string tally(const std::vector<Finding>& findings) {
  Parts parts;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
    const auto count = std::count_if(findings.begin(), findings.end(),
                                     [severity](const Finding& f) { return f.row->severity == severity; });
    parts.add(count > 0, fmt::format("{} {}{}", count, name_of(severity), count == 1 ? "" : "s"));
  }
  return parts.text();
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }
template <class T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json json_of(const Machine& m) {
  Json processors{{"model", m.model}, {"count", m.processors}, {"numa_nodes", m.numa_nodes}, {"virtual", m.is_virtual}};
  if (m.usable > 0) processors["usable"] = m.usable;
  put(processors, "quota_cores", m.quota_cores);
  Json governors = Json::object();
  for (const auto& [name, count] : m.governors) governors[name] = count;
  processors["governors"] = governors;
  processors["frequency_driver"] = m.frequency_driver;
  put(processors, "turbo", m.turbo), put(processors, "smt", m.hyper_threads);
  put(processors, "numa_balancing", m.numa_balancing);
  processors["clock_source"] = m.clock;
  if (m.clock_ns > 0) processors["clock_ns"] = m.clock_ns;
  Json neighbours = Json::array();
  for (const Neighbour& n : m.neighbours)
    neighbours.push_back({{"pid", n.pid}, {"name", n.name}, {"processors", n.processors}});
  Json memory = Json::object();
  put(memory, "total_mib", m.memory_total_mib), put(memory, "available_mib", m.memory_available_mib);
  put(memory, "cgroup_limit_mib", m.memory_limit_mib), put(memory, "swap_used_mib", m.swap_used_mib);
  if (!m.huge_pages.empty()) memory["transparent_huge_pages"] = m.huge_pages;
  put(memory, "reserved_huge_pages", m.reserved_huge_pages), put(memory, "shared_memory_mib", m.shared_memory_mib);
  Json limits = Json::object();
  put(limits, "ptrace_scope", m.ptrace_scope), put(limits, "perf_event_paranoid", m.perf_paranoid);
  put(limits, "counters_for_root_alone", m.profiling_for_root_alone), put(limits, "open_files", m.open_files);
  Json gpus = Json::array();
  for (const GpuOnBus& gpu : m.gpus) {
    Json each{{"bus_address", gpu.address}};
    put(each, "link_width", gpu.link_width), put(each, "widest_link", gpu.widest_link);
    put(each, "numa_node", gpu.numa_node);
    gpus.push_back(each);
  }
  Json variables = Json::object();
  for (const auto& [name, value] : m.variables) variables[name] = value;
  return {{"host", m.host},
          {"system", m.system},
          {"processors", processors},
          {"others",
           {{"processors", m.taken_processors}, {"load_1min", number_or_null(m.load_1min)}, {"busiest", neighbours}}},
          {"memory", memory},
          {"limits", limits},
          {"nvidia_driver", m.driver},
          {"gpus_on_bus", gpus},
          {"variables", variables}};
}

Json json_of(const DeviceState& d) {
  if (!d.problem.empty()) return {{"ordinal", d.ordinal}, {"problem", d.problem}};
  Json json{{"ordinal", d.ordinal},
            {"name", d.name},
            {"libraries", d.libraries},
            {"compute_units", d.compute_units},
            {"memory_total_mib", d.memory_total_mib},
            {"memory_free_mib", d.memory_free_mib}};
  if (!d.bus_address.empty()) json["bus_address"] = d.bus_address;
  if (!d.uuid.empty()) json["uuid"] = d.uuid;
  if (!d.driver.empty()) json["driver"] = d.driver;
  put(json, "max_sm_clock_mhz", d.max_sm_clock_mhz), put(json, "application_sm_clock_mhz", d.application_sm_clock_mhz);
  put(json, "power_limit_w", d.power_limit_w), put(json, "default_power_limit_w", d.default_power_limit_w);
  put(json, "temperature_c", d.temperature_c), put(json, "power_w", d.power_w);
  put(json, "foreign_processes", d.foreign_processes), put(json, "foreign_memory_mib", d.foreign_memory_mib);
  if (!d.held_by.empty()) json["held_by"] = d.held_by;
  if (!d.note.empty()) json["note"] = d.note;
  return json;
}

}  // namespace

std::string report_text(const Facts& facts, const std::vector<Finding>& findings, std::size_t width_columns,
                        const Palette& palette) {
  const Machine& m = facts.machine;
  Page page(width_columns);
  page.title("Machine");
  page.row("host", m.host);
  page.row("system", m.system);
  page.row("processor", processor_text(m));
  page.row("clocks", clocks_text(m));
  page.row("others", neighbours_text(m));
  page.row("memory", memory_text(m));
  page.row("limits", limits_text(m));
  add_devices(page, facts);
  add_use(page, facts);
  page.title("What would spoil a measurement");
  if (findings.empty()) page.line("nothing that was looked for");
  for (const Finding& f : findings) {
    page.finding(name_of(f.row->severity), fmt::format("{}: {}", f.row->name, f.what), palette);
    const std::string indent(11, ' ');
    page.block(indent, indent, fmt::format("Effect: {}.", f.row->effect));
    page.block(indent, indent, fmt::format("Remedy: {}.", f.row->remedy));
  }
  return page.take() + (findings.empty() ? "" : fmt::format("\n{}\n", tally(findings)));
}

nlohmann::ordered_json report_json(const Facts& facts, const std::vector<Finding>& findings) {
  Json devices = Json::array(), found = Json::array();
  for (const DeviceKind& kind : facts.devices) {
    Json each{{"kind", kind.kind}};
    if (!kind.problem.empty()) each["problem"] = kind.problem;
    each["devices"] = Json::array();
    for (const DeviceState& device : kind.devices) each["devices"].push_back(json_of(device));
    devices.push_back(each);
  }
  for (const Finding& f : findings)
    found.push_back({{"severity", name_of(f.row->severity)},
                     {"name", f.row->name},
                     {"what", f.what},
                     {"effect", f.row->effect},
                     {"remedy", f.row->remedy}});
  Json use{{"device", facts.auto_device()}, {"communicators", facts.communicators}, {"plugins", facts.plugins}};
  if (!facts.machine.results.empty()) {
    use["results"] = facts.machine.results.string();
    use["results_file_system"] = facts.machine.results_file_system;
    use["results_free_mib"] = number_or_null(facts.machine.results_free_mib);
  }
  return {{"schema", "assay.doctor/1"},
          {"assay", telemetry::assay_version()},
          {"machine", json_of(facts.machine)},
          {"devices", devices},
          {"use", use},
          {"findings", found}};
}

}  // namespace assay::host::doctor
