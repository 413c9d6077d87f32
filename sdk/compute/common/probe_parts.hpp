// What the probes of every device share (assay/probe.h): the sink, the table of probes, and medians of repeats.
#pragma once
#include <assay/probe.h>
#include <assay/plugin.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::compute {

// What one probe finds, under keys of one table of a device's file.
class ProbeFindings {
 public:
  ProbeFindings(const assay_probe_sink& sink, std::string table) : sink_(sink), table_(std::move(table)) {}
  void number(std::string_view name, double value) const { sink_.number(sink_.context, key(name).c_str(), value); }
  void text(std::string_view name, const std::string& value) const {
    sink_.text(sink_.context, key(name).c_str(), value.c_str());
  }

 private:
  std::string key(std::string_view name) const { return table_ + "." + std::string(name); }

  const assay_probe_sink& sink_;
  std::string table_;
};

struct NamedProbe {
  std::string_view name;
  void (*run)(assay_device&, const assay_probe_sink&);
};

// "events copies": the names of a table, static text for assay_probe.
template <const auto& probes>
constexpr auto text_of_names = [] {
  constexpr std::size_t size = [] {
    std::size_t sum = 0;
    for (const NamedProbe& probe : probes) sum += probe.name.size() + 1;
    return sum;
  }();
  std::array<char, size> text{};  // each name with the blank behind it, the last with the 0
  std::size_t at = 0;
  for (const NamedProbe& probe : probes) {
    if (at > 0) text[at - 1] = ' ';
    for (const char c : probe.name) text[at++] = c;
    ++at;
  }
  return text;
}();

// Throws Error for a sink that is too small, or a name that no probe has.
inline void run_probe(std::span<const NamedProbe> probes, assay_device& device, const char* name,
                      const assay_probe_sink* sink) {
  if (!sink || !ASSAY_HAS(sink, assay_probe_sink, text))
    throw Error(ASSAY_INVALID_ARGUMENT, "assay_probe_sink is too small; set struct_size");
  for (const NamedProbe& probe : probes)
    if (probe.name == name) return probe.run(device, *sink);
  std::string known;
  for (const NamedProbe& probe : probes) known += (known.empty() ? "" : ", ") + std::string(probe.name);
  throw Error(ASSAY_INVALID_ARGUMENT, "there is no probe '" + std::string(name) + "'; expected one of " + known);
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class F>
double microseconds_of(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// The smallest difference between times that differ, to the nanosecond: 0 where none does.
inline double resolution_ns(std::vector<double> times_ns) {
  std::sort(times_ns.begin(), times_ns.end());
  double least = 0;
  for (std::size_t i = 1; i < times_ns.size(); ++i) {
    const double difference = std::round(times_ns[i] - times_ns[i - 1]);
    if (difference >= 1 && (least == 0 || difference < least)) least = difference;
  }
  return least;
}

}  // namespace assay::compute
