#include "compare/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace assay::host {
namespace {

// Of one side: item -> its values over the runs and cases, in the order in which they were seen.
using Said = std::map<std::string, std::vector<std::string>>;

void say(Said& said, const std::string& item, const std::string& value) {
  std::vector<std::string>& values = said[item];
  if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

std::string text_of(const Record& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Record::error_handler_t::replace);
}

// What changes from hour to hour is none of the machine's properties.
bool is_passing(const std::string& item) { return item == "memory.available_mib" || item == "load_average"; }

void say_all(Said& said, const Record& json, const std::string& prefix) {
  if (!json.is_object()) return;
  for (const auto& item : json.items()) {
    const std::string name = prefix + item.key();
    if (is_passing(name) || name == "schema" || item.value().is_null()) continue;
    if (item.value().is_object())
      say_all(said, item.value(), name + ".");
    else
      say(said, name, text_of(item.value()));
  }
}

// "oneDNN 2.6.3; OpenMP 4.5, 2 threads" -> each by itself, so that only those that differ are shown.
std::vector<std::string> parts_of(const std::string& libraries) {
  std::vector<std::string> parts;
  std::string part;
  const auto add = [&] {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin));
    part.clear();
  };
  for (const char c : libraries) {
    if (c == ';' || c == ',')
      add();
    else
      part += c;
  }
  add();
  return parts;
}

constexpr const char* kLibraries = "driver and libraries";

void say_record(Said& said, const Record& record) {
  if (const auto device = record.find("device"); device != record.end() && device->is_object())
    for (const auto& item : device->items()) {
      if (item.key() == "ordinal" || item.key() == "bus_address" || item.value().is_null()) continue;
      if (item.key() == "libraries") {
        for (const std::string& part : parts_of(text_of(item.value()))) say(said, kLibraries, part);
      } else {
        say(said, "device." + item.key(), text_of(item.value()));
      }
    }
  if (const auto plugin = record.find("plugin"); plugin != record.end() && plugin->is_object())
    for (const char* key : {"version", "build", "file_hash"})
      if (const auto value = plugin->find(key); value != plugin->end())
        say(said, std::string("plugin.") + key, text_of(*value));
  const auto axes = record.find("axes");
  if (const auto settings = record.find("settings"); settings != record.end() && settings->is_object())
    for (const auto& item : settings->items()) {
      const bool is_axis = axes != record.end() && axes->is_object() && axes->contains(item.key());
      // The device and the number of ranks stand elsewhere, as what they became.
      if (!is_axis && item.key() != "run.device" && item.key() != "run.ranks")
        say(said, item.key(), text_of(item.value()));
    }
}

std::string joined(const std::vector<std::string>& values, const char* separator) {
  return fmt::format("{}", fmt::join(values, separator));
}

// Of a list of parts, those that not all sides have.
std::vector<std::string> without_common(const std::vector<std::string>& parts, const std::vector<Said>& sides) {
  std::vector<std::string> result;
  for (const std::string& part : parts) {
    const bool everywhere = std::all_of(sides.begin(), sides.end(), [&](const Said& said) {
      const auto found = said.find(kLibraries);
      return found == said.end() || std::find(found->second.begin(), found->second.end(), part) != found->second.end();
    });
    if (!everywhere) result.push_back(part);
  }
  return result;
}

}  // namespace

Differences find_differences(const std::vector<Side>& sides) {
  std::vector<Said> said;
  std::set<std::string> names;
  for (const Side& side : sides) {
    Said of_side;
    for (const ComparedRun& run : side.runs) {
      say_all(of_side, run.environment, "");
      for (const Record& record : run.records) say_record(of_side, record);
    }
    for (const auto& [item, values] : of_side) names.insert(item);
    said.push_back(std::move(of_side));
  }
  // The device and what drives it come first, then the settings and versions by name.
  std::vector<std::string> order;
  for (const auto* first : {"device.kind", "device.name", kLibraries})
    if (names.erase(first)) order.emplace_back(first);
  order.insert(order.end(), names.begin(), names.end());

  Differences result;
  result.untold.resize(sides.size());
  for (const std::string& item : order) {
    Difference difference{item, {}};
    std::set<std::string> told;
    for (std::size_t i = 0; i < said.size(); ++i) {
      const auto found = said[i].find(item);
      if (found == said[i].end()) {
        difference.values.emplace_back();
        result.untold[i].push_back(item);
        continue;
      }
      told.insert(joined(found->second, " | "));
      difference.values.push_back(item == kLibraries ? joined(without_common(found->second, said), ", ")
                                                     : joined(found->second, " | "));
    }
    if (told.size() > 1) result.items.push_back(std::move(difference));
  }
  return result;
}

}  // namespace assay::host
