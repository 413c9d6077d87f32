#include <fmt/format.h>
#include <fmt/ranges.h>

#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"

namespace assay::host::validate {

void choices_probe(const Subject& subject, const Asker& asker) {
  const plugin::WorkloadSchema& schema = subject.schema;
  Stage stage(subject);
  stage.init();
  Seen seen;
  const auto live = [&](const std::map<std::string, Value>& params) {
    stage.begin_anew();
    Life life(stage);
    if (!life.create(&params).is_ok() || !life.is_there() || !life.setup().is_ok()) return;
    for (int i = 0; i < 2; ++i)
      if (!life.step(ASSAY_STAGE_MEASURE).is_ok()) return;
    if (!life.finish().is_ok()) return;
    if (stage.workload().verify) life.verify();
    seen.add(stage, stage.recorder().take());
  };
  const auto is_all_seen = [&] { return seen.unseen_phases(schema).empty() && seen.unseen_metrics(schema).empty(); };
  live(subject.spec.values.params);
  // What may be for several ranks, or for another device, could still occur: no choice here shows otherwise.
  const char* const elsewhere = schema.ranks == plugin::RanksAre::cooperating ? "several ranks may have it"
                                : schema.devices.size() > 1                   ? "another device may have it"
                                                                              : nullptr;
  for (const plugin::ParamSpec& param : schema.params) {
    if (elsewhere || is_all_seen()) break;
    if (param.choices.empty() && param.type != plugin::ParamType::boolean) continue;
    for (const Value& value : values_to_try(param)) {
      if (value == subject.spec.values.params.at(param.name)) continue;
      std::map<std::string, Value> params = subject.spec.values.params;
      params[param.name] = value;
      live(params);
    }
  }
  const auto find_unseen = [&](Check check, const char* kind, const std::vector<std::string>& unseen) {
    if (unseen.empty()) return asker.ask(check);
    const std::string names = fmt::format("{} '{}' did not occur", kind, fmt::join(unseen, "', '"));
    if (elsewhere) return asker.leave_out(check, fmt::format("{}; {}, or another choice", names, elsewhere));
    asker.ask(check);
    asker.find(check, names + ", whatever was chosen");
  };
  if (!schema.phases.empty()) find_unseen(Check::marks_seen, "the phase", seen.unseen_phases(schema));
  if (!schema.metrics.empty()) find_unseen(Check::metrics_seen, "the metric", seen.unseen_metrics(schema));
}

}  // namespace assay::host::validate
