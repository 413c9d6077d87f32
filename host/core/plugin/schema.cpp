#include "plugin/schema.hpp"

#include "common/device_kinds.hpp"
#include "plugin/device_words.hpp"
#include "plugin/entry_check.hpp"

#include <algorithm>

namespace assay::host::plugin {

static_assert(kind_of_device("cpu")->flag == ASSAY_DEVICE_CPU && kind_of_device("cuda")->flag == ASSAY_DEVICE_CUDA);

const char* name_of(ParamType type) {
  switch (type) {
    case ParamType::boolean: return "bool";
    case ParamType::integer: return "int";
    case ParamType::real: return "float";
    case ParamType::text: return "string";
  }
  return "?";
}

namespace {

constexpr std::uint32_t first_minor_with_ranks_cooperate = 3;

std::string text_or_empty(const char* s) { return s ? s : ""; }

// None of a plugin that was built before metrics had words.
std::vector<std::string> words_of(const assay_metric& m) {
  if (!ASSAY_HAS(&m, assay_metric, word_count)) return {};
  return {m.words, m.words + m.word_count};
}

ParamSpec copy_param(const assay_param& p) {
  ParamSpec spec;
  spec.name = p.name;
  spec.unit = text_or_empty(p.unit);
  spec.help = text_or_empty(p.help);
  switch (p.type) {
    case ASSAY_TYPE_BOOL: spec.type = ParamType::boolean, spec.default_value = p.default_int != 0; break;
    case ASSAY_TYPE_INT: spec.type = ParamType::integer, spec.default_value = p.default_int; break;
    case ASSAY_TYPE_FLOAT: spec.type = ParamType::real, spec.default_value = p.default_float; break;
    default: spec.type = ParamType::text, spec.default_value = text_or_empty(p.default_string); break;
  }
  spec.required = (p.flags & ASSAY_PARAM_REQUIRED) != 0;
  if (p.flags & ASSAY_PARAM_HAS_MIN) spec.min = p.min;
  if (p.flags & ASSAY_PARAM_HAS_MAX) spec.max = p.max;
  spec.input_path = (p.flags & ASSAY_PARAM_INPUT_PATH) != 0;
  spec.output_path = (p.flags & ASSAY_PARAM_OUTPUT_PATH) != 0;
  spec.words = (p.flags & ASSAY_PARAM_WORDS) != 0;
  for (std::uint64_t i = 0; i < p.choice_count; ++i) spec.choices.emplace_back(p.choices[i]);
  return spec;
}

PresetSpec copy_preset(const assay_preset& p, const WorkloadSchema& schema) {
  PresetSpec spec{
      p.when,  p.choice, text_or_empty(p.also_when), text_or_empty(p.also_choice), text_or_empty(p.device_kind),
      p.param, {}};
  const auto param = std::find_if(schema.params.begin(), schema.params.end(),
                                  [&](const ParamSpec& candidate) { return candidate.name == spec.param; });
  switch (param->type) {
    case ParamType::boolean: spec.value = p.int_value != 0; break;
    case ParamType::integer: spec.value = p.int_value; break;
    case ParamType::real: spec.value = p.float_value; break;
    case ParamType::text: spec.value = text_or_empty(p.string_value); break;
  }
  return spec;
}

}  // namespace

WorkloadSchema copy_schema(const assay_workload& w, std::uint32_t abi_minor) {
  WorkloadSchema schema;
  schema.id = w.id;
  schema.summary = text_or_empty(w.summary);
  schema.item_unit = text_or_empty(w.item_unit);
  for (std::uint32_t i = 0; i < w.param_count; ++i) schema.params.push_back(copy_param(*w.params[i]));
  for (std::uint32_t i = 0; i < w.metric_count; ++i) {
    const assay_metric& m = *w.metrics[i];
    schema.metrics.push_back({m.name, text_or_empty(m.unit), text_or_empty(m.help), static_cast<Direction>(m.direction),
                              m.scope == ASSAY_PER_STEP, words_of(m)});
  }
  for (std::uint32_t i = 0; i < w.phase_count; ++i) schema.phases.emplace_back(w.phases[i]);
  if (w.device_flags != ASSAY_ANY_DEVICE)
    std::erase_if(schema.devices,
                  [&](const std::string& kind) { return (w.device_flags & kind_of_device(kind)->flag) == 0; });
  else
    for (std::string& kind : other_device_kinds()) schema.devices.push_back(std::move(kind));
  schema.verifies = w.verify != nullptr;
  if (!ASSAY_HAS(&w, assay_workload, flags)) return schema;  // built before there were presets
  for (std::uint32_t i = 0; i < w.preset_count; ++i) schema.presets.push_back(copy_preset(*w.presets[i], schema));
  schema.starts_cold = (w.flags & ASSAY_WORKLOAD_COLD_START) != 0;
  // The flags are older than this one of them: if it is missing, the version shows whether it could be there.
  if (abi_minor >= first_minor_with_ranks_cooperate)
    schema.ranks = (w.flags & ASSAY_WORKLOAD_RANKS_COOPERATE) != 0 ? RanksAre::cooperating : RanksAre::copies;
  schema.steps_elsewhere = (w.flags & ASSAY_WORKLOAD_STEPS_ELSEWHERE) != 0;
  schema.is_open = (w.flags & ASSAY_WORKLOAD_OPEN) != 0;
  return schema;
}

}  // namespace assay::host::plugin
