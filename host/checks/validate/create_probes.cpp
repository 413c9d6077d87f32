#include <fmt/format.h>

#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"

namespace assay::host::validate {

void values_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject);
  stage.init();
  asker.ask(Check::create_destroy);
  for (int i = 0; i < 2; ++i) {
    Life life(stage);
    if (!life.create().is_ok()) break;
  }
  asker.ask(Check::create_values);
  for (const plugin::ParamSpec& param : subject.schema.params) {
    for (const Value& value : values_to_try(param)) {
      const std::string place = fmt::format("{} = {}", param.name, to_text(value));
      asker.at(place);
      std::map<std::string, Value> params = subject.spec.values.params;
      params[param.name] = value;
      Life life(stage);
      const Outcome outcome = life.create(&params);
      const std::string mistake = outcome.is_ok() ? (life.is_there() ? "" : "ASSAY_OK, and no object")
                                                  : mistake_in_refusal(outcome, life.is_there());
      if (!mistake.empty()) asker.find(Check::create_values, fmt::format("{}: {}", place, mistake));
    }
  }
  Life life(stage);
  if (!life.create().is_ok() || !life.is_there()) return;
  if (!stage.workload().get_extension) {
    asker.leave_out(Check::create_extensions, "the workload has no get_extension");
    return;
  }
  asker.ask(Check::create_extensions);
  for (const char* id : {"assay.nobody/1", "", static_cast<const char*>(nullptr)}) {
    const std::string place = id ? fmt::format("\"{}\"", id) : "NULL";
    asker.at(place);
    if (stage.workload().get_extension(life.object(), id))
      asker.find(Check::create_extensions, fmt::format("for the id {} it gives a table", place));
  }
}

void bare_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject);
  stage.host().offer_nothing();
  asker.ask(Check::create_bare);
  asker.at("init");
  stage.init();
  Life life(stage);
  asker.at("create");
  Outcome outcome = life.create();
  if (outcome.is_ok() && life.is_there()) {
    asker.at("setup");
    outcome = life.setup();
  }
  if (!outcome.is_ok() && outcome.text.empty()) asker.find(Check::create_bare, outcome.in_words());
  asker.at("destroy");
  life.destroy();
}

}  // namespace assay::host::validate
