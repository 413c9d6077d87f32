#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "common/value.hpp"
#include "exports/exported_case.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

// Letters, digits and underscores: "step.p50" is "step_p50".
std::string plain_name(const std::string& text) {
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) && static_cast<signed char>(c) > 0 ? c : '_';
  return name;
}

struct Family {
  std::string help, unit;
  std::vector<std::string> samples;
};

class Writer {
 public:
  void add(const std::string& name, const std::string& help, const std::string& unit, const std::string& labels,
           double value) {
    if (std::isnan(value)) return;
    const auto [place, is_new] = places_.try_emplace(name, families_.size());
    if (is_new) families_.push_back({name, {.help = help, .unit = unit, .samples = {}}});
    // A run that is named twice is one.
    if (!samples_.emplace(name, labels).second) return;
    const std::string text = std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : fmt::format("{}", value);
    families_[place->second].second.samples.push_back(fmt::format("{}{{{}}} {}\n", name, labels, text));
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, family] : families_) {
      all += fmt::format("# TYPE {} gauge\n", name);
      if (!family.unit.empty()) all += fmt::format("# UNIT {} {}\n", name, family.unit);
      all += fmt::format("# HELP {} {}\n", name, escaped(family.help));
      for (const std::string& sample : family.samples) all += sample;
    }
    return all + "# EOF\n";
  }

 private:
  std::map<std::string, std::size_t> places_;
  std::set<std::pair<std::string, std::string>> samples_;
  std::vector<std::pair<std::string, Family>> families_;  // a family's samples stand together
};

// The label of a name that the family's leaves in doubt: "a.b" and "a_b" are one there.
std::string name_label(const std::string& name) {
  return plain_name(name) == name ? "" : fmt::format(",name=\"{}\"", escaped(name));
}

std::string labels_of(const record::CaseRecord& record, const results::RunSource& source) {
  std::string labels = fmt::format("workload=\"{}\"", escaped(record.identity.workload));
  const auto add = [&labels](const std::string& name, const std::string& value) {
    if (!value.empty()) labels += fmt::format(",{}=\"{}\"", name, escaped(value));
  };
  std::set<std::string> taken;
  for (const auto& [axis, value] : record.identity.axes) {
    std::string name = "axis_" + plain_name(axis);
    while (!taken.insert(name).second) name += '_';
    add(name, to_text(value));
  }
  add("case", std::to_string(record.identity.index + 1));
  if (record.identity.repeat) add("repeat", std::to_string(*record.identity.repeat));
  add("experiment", source.experiment);
  add("run", source.run);
  add("host", record.host);
  if (record.result.device) add("device", record.result.device->name);
  return labels;
}

void add_case(const record::CaseRecord& record, const std::string& labels, Writer& writer) {
  const record::CaseResult& result = record.result;
  writer.add("assay_case_ok", "1 where the case is ok, 0 otherwise", "",
             labels + fmt::format(",status=\"{}\"", result.status_text()), result.is_ok() ? 1 : 0);
  if (const record::Phase* step = record::step_of(record.result))
    for (const auto& [name, ms] :
         {std::pair{"mean", step->mean_ms}, std::pair{"std", step->std_ms}, std::pair{"min", step->min_ms},
          std::pair{"p50", step->p50_ms}, std::pair{"p90", step->p90_ms}, std::pair{"p99", step->p99_ms},
          std::pair{"max", step->max_ms}})
      if (ms)
        writer.add("assay_step_seconds", "The time of a step", "seconds", labels + fmt::format(",stat=\"{}\"", name),
                   *ms / 1e3);
  if (result.rates)
    for (const auto& [name, help, rate] :
         {std::tuple{"assay_gflop_per_s", "Floating-point operations", result.rates->gflop_per_s},
          std::tuple{"assay_gbytes_per_s", "Bytes moved", result.rates->gbytes_per_s},
          std::tuple{"assay_items_per_s", "Items of the workload", result.rates->items_per_s}})
      if (rate) writer.add(name, help, "", labels, *rate);
  if (result.memory && result.memory->peak_total_mib)
    writer.add("assay_memory_peak_bytes", "The most memory that was held", "bytes", labels,
               *result.memory->peak_total_mib * 1048576.0);
  if (result.metrics)
    for (const auto& [name, metric] : *result.metrics)
      if (!metric.word)
        writer.add("assay_metric_" + plain_name(name), plain_name(name), "", labels + name_label(name), metric.value);
  if (result.step_metrics)
    for (const auto& [name, metric] : *result.step_metrics)
      if (metric.mean)
        writer.add("assay_step_metric_" + plain_name(name), plain_name(name) + ", the mean over the steps", "",
                   labels + name_label(name), *metric.mean);
}

}  // namespace

std::string openmetrics(const std::vector<results::TabledRun>& runs) {
  Writer writer;
  for (const results::TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records) add_case(record, labels_of(record, run.source), writer);
  return writer.text();
}

}  // namespace assay::host::exports
