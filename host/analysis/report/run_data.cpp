#include "report/run_data.hpp"

#include "common/text_format.hpp"
#include "results/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace assay::host::report {
namespace {

using Records = std::vector<record::CaseRecord>;

// Texts of the records with the number of cases that have them, in the order of the first ones: "n1 (12 cases), n2
// (8)".
std::string counted(const Records& records, const std::function<std::string(const record::CaseRecord&)>& text) {
  record::Named<std::size_t> counts;
  for (const record::CaseRecord& record : records) {
    const std::string said = one_line(text(record));
    if (said.empty()) continue;
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == said; });
    if (known == counts.end())
      counts.emplace_back(said, 1);
    else
      ++known->second;
  }
  constexpr std::size_t most = 12;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(counts.size(), most); ++i)
    texts.push_back(counts.size() == 1 ? counts[i].first
                                       : fmt::format("{} ({} case{})", counts[i].first, counts[i].second,
                                                     counts[i].second == 1 ? "" : "s"));
  if (counts.size() > most) texts.push_back(fmt::format("and {} others", counts.size() - most));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string device_text(const record::CaseRecord& record) {
  if (!record.result.device) return "";
  const record::Device& device = *record.result.device;
  std::string text = device.name.empty() ? device.kind : fmt::format("{} ({})", device.name, device.kind);
  if (!device.uuid.empty()) text += " " + device.uuid;
  return text;
}

std::string plugin_text(const record::CaseRecord& record) {
  if (!record.identity.plugin) return record.identity.workload;
  const record::Plugin& plugin = *record.identity.plugin;
  return fmt::format("{} {} ({})", record.identity.workload, plugin.version, plugin.build);
}

// Each text of the environments in which the records were made, once. Where that of a record is not there, a warning
// says so, and the run's newest stands for it.
std::string environment_text(const results::RunSource& source, const Records& records, const std::string& fact) {
  return counted(records, [&](const record::CaseRecord& record) {
    const record::Environment* environment = source.environment_of(record);
    if (!environment && source.environment) environment = &*source.environment;
    return environment ? environment->fact_or(fact, "") : "";
  });
}

std::string times_text(const Records& records) {
  std::string first, last;
  double busy_s = 0;
  for (const record::CaseRecord& record : records) {
    busy_s += record.result.wall.case_s.value_or(0);
    if (record.started.empty()) continue;
    if (first.empty() || record.started < first) first = record.started;
    last = std::max(last, record.started);
  }
  if (first.empty()) return "";
  std::string text = first == last ? first : fmt::format("{} to {}", first, last);
  if (busy_s > 0) text += fmt::format(", {} s in all cases", significant_digits(busy_s, 3));
  return text;
}

Json facts_json(const ReportedRun& run) {
  const Records& records = run.table.records;
  const results::RunSource& source = run.table.source;
  Json facts = Json::array();
  const auto add = [&facts](const char* key, const std::string& text) {
    if (!text.empty()) facts.push_back({key, text});
  };
  add("workload", counted(records, plugin_text));
  add("device", counted(records, device_text));
  add("driver", counted(records, [](const auto& r) { return r.result.device ? r.result.device->driver : ""; }));
  add("libraries", counted(records, [](const auto& r) { return r.result.device ? r.result.device->libraries : ""; }));
  add("ranks", counted(records, [](const auto& r) {
        return r.identity.ranks ? fmt::format("{}", *r.identity.ranks) : std::string();
      }));
  std::string hosts = counted(records, [](const auto& r) { return r.host; });
  if (hosts.empty()) hosts = environment_text(source, records, "os.hostname");
  add("host", hosts);
  add("processor", environment_text(source, records, "cpu.model"));
  add("system", environment_text(source, records, "os.distribution"));
  add("kernel", environment_text(source, records, "os.kernel"));
  add("started", times_text(records));
  add("assay", environment_text(source, records, "assay.version"));
  add("revision", environment_text(source, records, "assay.revision"));
  return facts;
}

// Parameters and settings that have one value in all cases: what was run, beside what was swept.
Json same_json(const Records& records) {
  Json same = Json::array();
  const auto add = [&](auto member) {
    for (const auto& [key, value] : member(records.front().identity)) {
      const auto has_it = [&, &key = key, &value = value](const record::CaseRecord& record) {
        const Value* of_record = record::find(member(record.identity), key);
        return of_record && *of_record == value;
      };
      const bool is_same = std::all_of(records.begin(), records.end(), has_it);
      const std::string text = one_line(to_text(value));
      if (is_same && !text.empty()) same.push_back({key, text});
    }
  };
  add([](const record::CaseIdentity& id) -> const record::Named<Value>& { return id.params; });
  add([](const record::CaseIdentity& id) -> const record::Named<Value>& { return id.settings; });
  return same;
}

Json said_json(const Records& records,
               const std::function<std::vector<std::string>(const record::CaseRecord&)>& texts) {
  Json out = Json::array();
  for (const results::SaidOfCases& said : results::said_of_cases(records, texts))
    out.push_back({said.cases, said.text});
  return out;
}

}  // namespace

Json run_json(const ReportedRun& run) {
  const Records& records = run.table.records;
  Json out{{"label", run.label},      {"name", run.table.source.run},
           {"path", run.path},        {"experiment", run.table.source.experiment},
           {"cases", records.size()}, {"facts", facts_json(run)}};
  if (records.empty()) return out;
  out["same"] = same_json(records);
  using Texts = std::vector<std::string>;
  out["verification"] = said_json(records, [](const record::CaseRecord& r) {
    if (!r.result.verify || r.result.verify->text.empty()) return Texts{};
    return Texts{fmt::format("{}: {}", record::name_of(r.result.verify->status), r.result.verify->text)};
  });
  out["validity"] = said_json(records, [](const record::CaseRecord& r) {
    if (!r.result.validity || r.result.validity->text.empty()) return Texts{};
    return Texts{fmt::format("{}: {}", record::name_of(r.result.validity->verdict), r.result.validity->text)};
  });
  out["notes"] = said_json(records, [](const record::CaseRecord& r) { return r.result.notes.value_or(Texts{}); });
  return out;
}

}  // namespace assay::host::report
