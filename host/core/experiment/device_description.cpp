#include "experiment/device_description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "common/files.hpp"
#include "common/suggest.hpp"
#include "plugin/device_words.hpp"

namespace assay::host::experiment {
namespace {

namespace fs = std::filesystem;

fs::path folder_of_descriptions() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path() / "share/assay/devices";
}

// Reads a table of the file and remembers which keys it has asked for: any other one is a mistake.
class TableReader {
 public:
  TableReader(const std::string& file, const toml::table* table, std::string prefix)
      : file_(file), table_(table), prefix_(std::move(prefix)) {}

  [[noreturn]] void refuse(const std::string& key, const toml::node* node, const std::string& text) const {
    if (node && node->source().begin)
      throw DeviceFileError(fmt::format("{}:{}:{}: {}{}: {}", file_, node->source().begin.line,
                                        node->source().begin.column, prefix_, key, text));
    throw DeviceFileError(fmt::format("{}: {}{}: {}", file_, prefix_, key, text));
  }
  std::optional<double> number(const std::string& key, bool may_be_zero = false) {
    return number_up_to(1e12, key, may_be_zero);
  }
  // A thousand seconds at most, in microseconds.
  std::optional<double> short_time(const std::string& key, bool may_be_zero = false) {
    return number_up_to(1e9, key, may_be_zero);
  }
  double needed_number(const std::string& key) {
    const std::optional<double> value = number(key);
    if (!value) refuse(key, nullptr, "is missing; expected a number");
    return *value;
  }
  std::int64_t needed_count(const std::string& key) {
    const double value = needed_number(key);
    if (value != std::floor(value) || value > 1e6)
      refuse(key, table_->get(key), "expected a whole number from 1 to 1000000");
    return static_cast<std::int64_t>(value);
  }
  std::string needed_text(const std::string& key) {
    const toml::node* const node = find(key);
    const std::optional<std::string> value = node ? node->value<std::string>() : std::nullopt;
    if (!value || value->empty()) refuse(key, node, "expected a text, which is missing");
    if (std::any_of(value->begin(), value->end(), [](unsigned char c) { return std::iscntrl(c); }))
      refuse(key, node, "expected a text without control characters");
    return *value;
  }
  void skip(const std::string& key) { known_.push_back(key); }
  const toml::table* table(const std::string& key) {
    const toml::node* const node = find(key);
    if (node && !node->is_table()) refuse(key, node, "expected a table");
    return node ? node->as_table() : nullptr;
  }
  void refuse_others() const {
    if (!table_) return;
    for (const auto& [name, node] : *table_) {
      const std::string key(name.str());
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const auto near = nearest(key, known_);
      refuse(key, &node,
             fmt::format("is no key of a device file{}",
                         near ? fmt::format("; did you mean '{}'?", *near)
                              : fmt::format("; expected one of {}", fmt::join(known_, ", "))));
    }
  }
  // Mistakes of a table that may have more than is read: a typo of a key, and numbers that no probe finds.
  void refuse_slips() const {
    if (!table_) return;
    for (const auto& [name, node] : *table_) {
      const std::string key(name.str());
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      // Nearer than two keys of one table are to each other: "captured_sparse_us" is no typo of "captured_many_us".
      constexpr std::size_t slip = 2;
      for (const std::string& read : known_)
        if (edit_distance(key, read) <= slip)
          refuse(key, &node, fmt::format("is no key of a device file; did you mean '{}'?", read));
      const std::optional<double> value = node.value<double>();
      if (node.is_number() && !(std::abs(value.value_or(NAN)) <= 1e12))
        refuse(key, &node, "expected a number up to 1e12");
    }
  }

 private:
  std::optional<double> number_up_to(double most, const std::string& key, bool may_be_zero) {
    const toml::node* const node = find(key);
    if (!node) return std::nullopt;
    const std::optional<double> value = node->value<double>();
    const double least = may_be_zero ? 0 : 1e-6;
    if (!value || !(*value >= least && *value <= most))
      refuse(key, node, fmt::format("expected a number from {} to {}", least, most == 1e12 ? "1e12" : "1e9"));
    return value;
  }
  const toml::node* find(const std::string& key) {
    known_.push_back(key);
    return table_ ? table_->get(key) : nullptr;
  }

  const std::string& file_;
  const toml::table* table_;
  std::string prefix_;
  std::vector<std::string> known_;
};

void read_peaks(TableReader& peak, DeviceDescription& device) {
  for (std::size_t i = 0; i < arithmetics.size(); ++i)
    device.tflop_per_s[i] = peak.number(fmt::format("{}_tflop_per_s", arithmetics[i])).value_or(0);
  const auto at = [&](std::string_view name) -> double& {
    return device.tflop_per_s[static_cast<std::size_t>(std::find(arithmetics.begin(), arithmetics.end(), name) -
                                                       arithmetics.begin())];
  };
  if (at("bf16") == 0) at("bf16") = at("fp16");  // as fast on every device that has both
  device.memory_gbytes_per_s = peak.needed_number("memory_gbytes_per_s");
  peak.refuse_others();
}

// The tables that `describe-device --probe` fills. A backend may find more than this host reads.
constexpr std::array probed_tables{"attention", "determinism", "event", "fp8", "graph", "rate", "team", "telemetry"};

DeviceFacts read_facts(TableReader& top, const std::string& file) {
  for (const char* const table : probed_tables) top.table(table);
  TableReader graph(file, top.table("graph"), "graph."), event(file, top.table("event"), "event."),
      telemetry(file, top.table("telemetry"), "telemetry.");
  DeviceFacts facts;
  facts.source = file;
  facts.graph_launch_us = graph.short_time("launch_us");
  facts.event_least_gap_us = event.short_time("least_gap_us");
  facts.event_captured_us = event.short_time("captured_us");
  facts.event_captured_many_us = event.short_time("captured_many_us");
  facts.energy_period_ms = telemetry.short_time("energy_period_ms");
  facts.power_average_ms = telemetry.short_time("power_average_ms", true);
  for (const TableReader* const table : {&graph, &event, &telemetry}) table->refuse_slips();
  return facts;
}

}  // namespace

std::optional<double> DeviceFacts::captured_event_us(std::int64_t events) const {
  // Ten and a thousand were measured (sdk/compute/cuda/probe_graphs.cpp).
  constexpr std::int64_t few = 10;
  return events > few && event_captured_many_us ? event_captured_many_us : event_captured_us;
}

double DeviceDescription::flops_per_s(std::string_view arithmetic) const {
  for (std::size_t i = 0; i < arithmetics.size(); ++i)
    if (arithmetics[i] == arithmetic) return tflop_per_s[i] * 1e12;
  return 0;
}

DeviceDescription read_device_file(const fs::path& file) {
  const std::string name = file.string();
  toml::table root;
  try {
    root = toml::parse(read_file(file), name);
  } catch (const toml::parse_error& e) {
    throw DeviceFileError(
        fmt::format("{}:{}:{}: {}", name, e.source().begin.line, e.source().begin.column, e.description()));
  } catch (const StorageError& e) {
    throw DeviceFileError(e.what());
  }
  DeviceDescription device;
  device.file = name;
  TableReader top(name, &root, "");
  device.kind = top.needed_text("kind");
  if (device.kind == "auto" || !plugin::is_device_word(device.kind))
    top.refuse("kind", root.get("kind"),
               fmt::format("is '{}'; expected {}", device.kind, plugin::device_kinds_in_sentence()));
  device.name = top.needed_text("name");
  device.memory_total_mib = top.needed_number("memory_total_mib");
  device.compute_units = top.needed_count("compute_units");
  device.l2_cache_mib = top.number("l2_cache_mib").value_or(0);
  top.skip("compute_capability");
  top.skip("source");
  TableReader peak(name, top.table("peak"), "peak.");
  read_peaks(peak, device);
  TableReader link(name, top.table("link"), "link.");
  link.skip("kind");
  device.link_gbytes_per_s = link.number("gbytes_per_s").value_or(0);
  link.refuse_others();
  TableReader process(name, top.table("process"), "process.");
  device.context_mib = process.number("context_mib", true);
  device.kernels_mib = process.number("kernels_mib", true);
  device.products_mib = process.number("products_mib", true);
  device.communicator_mib = process.number("communicator_mib", true);
  process.refuse_others();
  device.facts = read_facts(top, name);
  top.refuse_others();
  return device;
}

namespace {

std::vector<std::string> devices_described_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->path().extension() == ".toml") names.push_back(i->path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> described_devices() { return devices_described_in(folder_of_descriptions()); }

FoundFacts facts_of_device(const std::string& kind, const std::string& name, const fs::path& folder) {
  FoundFacts found;
  const fs::path below = folder.empty() ? folder_of_descriptions() : folder;
  for (const std::string& file : devices_described_in(below)) try {
      const DeviceDescription device = read_device_file(below / (file + ".toml"));
      if (device.kind != kind || device.name != name) continue;
      found.facts = device.facts;
      break;
    } catch (const DeviceFileError& e) {
      found.notes.push_back(fmt::format("a file of devices is left out: {}", e.what()));
    }
  return found;
}

DeviceDescription find_device_description(const std::string& given) {
  const std::vector<std::string> names = described_devices();
  std::string name = given;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    if (std::error_code error; fs::is_regular_file(given, error))
      throw DeviceFileError(fmt::format("--device is '{}', which is a file; --device-file takes it", given));
    const auto near = nearest(name, names);
    throw DeviceFileError(
        fmt::format("no device '{}' is described{} {} of this machine, or {}; --device-file "
                    "takes a file of your own, which `assay describe-device` writes",
                    given,
                    near ? fmt::format("; did you mean '{}'? Expected", *near)
                         : ", and no backend of this kind is installed; expected",
                    plugin::device_words_in_sentence(), fmt::join(names, ", ")));
  }
  return read_device_file(folder_of_descriptions() / (name + ".toml"));
}

}  // namespace assay::host::experiment
