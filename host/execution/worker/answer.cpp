#include "worker/answer.hpp"

#include <nlohmann/json.hpp>

#include "common/foreign_json.hpp"
#include "record/json.hpp"

namespace assay::host::worker {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(std::string_view line) { return json_or_discarded(line); }

}  // namespace

std::string to_event(const CaseAnswer& answer) {
  return record::json_text({{"event", "result"},
                            {"record", record::to_json(answer.result)},
                            {"of_another_rank", answer.of_another_rank},
                            {"asked_to_end", answer.asked_to_end}});
}

void add_teardown(record::CaseResult& result, CaseTeardown teardown) {
  for (std::string& note : teardown.notes) result.note(std::move(note));
  result.wall.case_s = teardown.case_s;
  result.wall.destroy_s = teardown.destroy_s;
}

std::string to_event(const CaseTeardown& teardown) {
  Json event{{"event", "teardown"}, {"notes", teardown.notes}, {"case_s", teardown.case_s}};
  if (teardown.destroy_s) event.emplace("destroy_s", *teardown.destroy_s);
  return record::json_text(event);
}

std::string to_event(const FoundDevice& answer) {
  Json libraries = Json::object();
  for (const auto& [name, build] : answer.libraries) libraries[name] = build;
  return record::json_text({{"event", "result"},
                            {"probe",
                             {{"status", name_of(answer.status)},
                              {"reason", answer.reason},
                              {"cause", answer.cause},
                              {"device", record::to_json(answer.device)},
                              {"count", answer.count},
                              {"note", answer.note},
                              {"libraries", std::move(libraries)}}}});
}

std::optional<CaseAnswer> case_answer_from(std::string_view event_line) {
  const Json event = parsed(event_line);
  if (!event.is_object() || !event.contains("record")) return std::nullopt;
  std::optional<record::CaseResult> result = record::result_from_json(event.at("record"));
  if (!result) return std::nullopt;
  return CaseAnswer{std::move(*result), event.value("of_another_rank", false), event.value("asked_to_end", false)};
}

std::optional<CaseTeardown> teardown_from(std::string_view event_line) {
  const Json event = parsed(event_line);
  if (!event.is_object() || event.value("event", "") != "teardown") return std::nullopt;
  CaseTeardown teardown{event.value("notes", std::vector<std::string>{}), event.value("case_s", 0.0)};
  if (event.contains("destroy_s")) teardown.destroy_s = event.value("destroy_s", 0.0);
  return teardown;
}

std::optional<FoundDevice> found_device_from(std::string_view event_line) {
  const Json event = parsed(event_line);
  if (!event.is_object() || !event.contains("probe")) return std::nullopt;
  const Json& probe = event.at("probe");
  const std::optional<record::Status> status = record::status_of(probe.value("status", ""));
  if (!status) return std::nullopt;
  FoundDevice found{*status,
                    probe.value("reason", ""),
                    probe.value("cause", ""),
                    record::device_from_json(probe.at("device")),
                    probe.value("count", std::int32_t{1}),
                    probe.value("note", "")};
  if (const auto libraries = probe.find("libraries"); libraries != probe.end() && libraries->is_object())
    for (const auto& [name, build] : libraries->items())
      if (build.is_string()) found.libraries.emplace_back(name, build.get<std::string>());
  return found;
}

}  // namespace assay::host::worker
