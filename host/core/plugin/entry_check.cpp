#include "plugin/entry_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string_view>

#include "common/utf8.hpp"

namespace assay::host::plugin {
namespace {

// The smallest structs of version 1.0: a plugin with less was built against a header that was never released.
constexpr std::size_t entry_size_1_0 = offsetof(assay_entry, deinit) + sizeof(assay_entry::deinit);
constexpr std::size_t workload_size_1_0 =
    offsetof(assay_workload, get_extension) + sizeof(assay_workload::get_extension);
constexpr std::size_t param_size_1_0 = offsetof(assay_param, choice_count) + sizeof(assay_param::choice_count);
constexpr std::size_t metric_size_1_0 = offsetof(assay_metric, scope) + sizeof(assay_metric::scope);
constexpr std::size_t preset_size_1_2 = offsetof(assay_preset, string_value) + sizeof(assay_preset::string_value);

class Checker {
 public:
  explicit Checker(const std::string& file) : where_(file) {}

  template <class... Args>
  void require(Refusal why, bool sound, fmt::format_string<Args...> text, Args&&... args) const {
    if (!sound) throw PluginError(where_ + ": " + fmt::format(text, std::forward<Args>(args)...), why);
  }
  // A text that goes into records and JSON. NULL is not allowed.
  void text(const char* text, std::string_view of) const {
    require(Refusal::texts, !text || is_utf8(text), "{} is not UTF-8; save the source of the plugin as UTF-8", of);
  }

  void count(std::uint64_t workloads) const {
    require(Refusal::rows, workloads <= most_rows, "it counts {} workloads; expected at most {}", workloads, most_rows);
  }
  void workload(const assay_workload* w, std::uint32_t index) const {
    require(Refusal::rows, w != nullptr, "workload {} of its table is NULL; the plugin is broken, ask its author",
            index);
    require(
        Refusal::sizes, w->struct_size >= workload_size_1_0,
        "workload {} has struct_size {}, less than the {} bytes of ABI 1.0; rebuild the plugin against a released SDK",
        index, w->struct_size, workload_size_1_0);
    require(Refusal::names, is_name(w->id), "workload {} has no valid id; expected letters, digits, '_', '-' or '.'",
            index);
    require(Refusal::functions, w->create && w->destroy && w->setup && w->run,
            "workload '{}' lacks one of create, destroy, setup, run; all four are required", w->id);
    text(w->summary, fmt::format("the summary of workload '{}'", w->id));
    text(w->item_unit, fmt::format("the unit of the items of workload '{}'", w->id));
    std::set<std::string_view> names;
    count(*w, w->param_count, "parameters");
    count(*w, w->metric_count, "metrics");
    count(*w, w->phase_count, "phases");
    require(Refusal::rows, w->param_count == 0 || w->params, "workload '{}' counts {} parameters but its table is NULL",
            w->id, w->param_count);
    for (std::uint32_t i = 0; i < w->param_count; ++i) param(*w, w->params[i], i, names);
    require(Refusal::rows, w->metric_count == 0 || w->metrics, "workload '{}' counts {} metrics but its table is NULL",
            w->id, w->metric_count);
    for (std::uint32_t i = 0; i < w->metric_count; ++i) {
      const assay_metric* m = w->metrics[i];
      require(Refusal::rows, m != nullptr, "workload '{}': metric {} is malformed: its row is NULL", w->id, i);
      require(Refusal::sizes, m->struct_size >= metric_size_1_0,
              "workload '{}': metric {} is malformed: struct_size {}", w->id, i, m->struct_size);
      require(Refusal::names, is_name(m->name), "workload '{}': metric {} is malformed: it has no valid name", w->id,
              i);
      require(Refusal::names, names.insert(m->name).second, "workload '{}' uses the name '{}' twice; rename the metric",
              w->id, m->name);
      require(Refusal::values, m->scope == ASSAY_PER_STEP || m->scope == ASSAY_PER_CASE,
              "workload '{}': metric '{}' has scope {}", w->id, m->name, m->scope);
      text(m->unit, fmt::format("workload '{}': the unit of metric '{}'", w->id, m->name));
      text(m->help, fmt::format("workload '{}': the help of metric '{}'", w->id, m->name));
      if (ASSAY_HAS(m, assay_metric, word_count)) words(*w, *m);
    }
    if (ASSAY_HAS(w, assay_workload, flags)) presets(*w);
    require(Refusal::rows, w->phase_count == 0 || w->phases, "workload '{}' counts {} phases but its table is NULL",
            w->id, w->phase_count);
    std::set<std::string_view> phases{"step"};
    for (std::uint32_t i = 0; i < w->phase_count; ++i) {
      require(Refusal::names, is_name(w->phases[i]), "workload '{}': phase {} has no valid name", w->id, i);
      require(Refusal::names, phases.insert(w->phases[i]).second,
              "workload '{}' names the phase '{}' twice or uses the reserved name 'step'", w->id, w->phases[i]);
    }
  }

 private:
  // A number that was never meant is read as far as memory goes.
  static constexpr std::uint64_t most_rows = 10'000;
  void count(const assay_workload& w, std::uint64_t rows, std::string_view of) const {
    require(Refusal::rows, rows <= most_rows, "workload '{}' counts {} {}; expected at most {}", w.id, rows, of,
            most_rows);
  }
  static bool is_name(const char* s) {
    if (!s || !*s) return false;
    for (; *s; ++s)
      if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' ||
            *s == '.' || *s == '-'))
        return false;
    return true;
  }

  void words(const assay_workload& w, const assay_metric& m) const {
    count(w, m.word_count, fmt::format("words of metric '{}'", m.name));
    require(Refusal::rows, m.word_count == 0 || m.words, "workload '{}': metric '{}' counts words but has none", w.id,
            m.name);
    require(Refusal::values, m.word_count == 0 || m.scope == ASSAY_PER_CASE,
            "workload '{}': metric '{}' has words and is of a step; words are for results of a case, make it per case",
            w.id, m.name);
    for (std::uint64_t i = 0; i < m.word_count; ++i)
      require(Refusal::names, is_name(m.words[i]),
              "workload '{}': word {} of metric '{}' is not valid; expected letters, digits, '_', '-' or '.'", w.id, i,
              m.name);
  }

  // A preset names two parameters of the table, the first one with the choice among its own. The table itself is sound.
  void presets(const assay_workload& w) const {
    count(w, w.preset_count, "presets");
    require(Refusal::rows, w.preset_count == 0 || w.presets, "workload '{}' counts {} presets but their table is NULL",
            w.id, w.preset_count);
    for (std::uint32_t i = 0; i < w.preset_count; ++i) {
      const assay_preset* p = w.presets[i];
      require(Refusal::presets, p && p->struct_size >= preset_size_1_2 && p->when && p->choice && p->param,
              "workload '{}': preset {} is malformed", w.id, i);
      for (const char* words : {p->choice, p->also_choice, p->string_value})
        text(words, fmt::format("workload '{}': a text of preset {}", w.id, i));
      text(p->device_kind, fmt::format("workload '{}': the device of preset {}", w.id, i));
      condition(w, i, p->when, p->choice);
      if (p->also_when) condition(w, i, p->also_when, p->also_choice ? p->also_choice : "");
      const assay_param* param = param_named(w, p->param);
      require(Refusal::presets, param != nullptr, "workload '{}': preset {} sets '{}', which is no parameter of it",
              w.id, i, p->param);
      preset_value(w, i, *p, *param);
    }
  }
  // A workload reads its parameters in their range and choices, whoever has set them.
  void preset_value(const assay_workload& w, std::uint32_t i, const assay_preset& preset, const assay_param& p) const {
    require(Refusal::presets, !(p.flags & (ASSAY_PARAM_REQUIRED | ASSAY_PARAM_INPUT_PATH | ASSAY_PARAM_OUTPUT_PATH)),
            "workload '{}': preset {} sets '{}', which is required or a path; these are the experiment's to say", w.id,
            i, p.name);
    const bool has_text = preset.string_value && *preset.string_value;
    require(Refusal::presets, p.type == ASSAY_TYPE_STRING ? preset.string_value != nullptr : !has_text,
            "workload '{}': preset {} sets '{}' to {}, which is of another type", w.id, i, p.name,
            has_text ? "a text" : "a number");
    if (p.type == ASSAY_TYPE_STRING) {
      require(Refusal::presets, p.choice_count == 0 || has_choice(p, preset.string_value),
              "workload '{}': preset {} sets '{}' to \"{}\", which is no choice of it", w.id, i, p.name,
              preset.string_value);
      return;
    }
    const double value = p.type == ASSAY_TYPE_FLOAT ? preset.float_value : static_cast<double>(preset.int_value);
    require(Refusal::presets, p.type != ASSAY_TYPE_BOOL || value == 0 || value == 1,
            "workload '{}': preset {} sets '{}' to {}; expected 0 or 1", w.id, i, p.name, value);
    const bool is_in_range = !((p.flags & ASSAY_PARAM_HAS_MIN) && !(value >= p.min)) &&
                             !((p.flags & ASSAY_PARAM_HAS_MAX) && !(value <= p.max)) && std::isfinite(value);
    require(Refusal::presets, is_in_range, "workload '{}': preset {} sets '{}' to {}, outside its range", w.id, i,
            p.name, value);
  }
  void condition(const assay_workload& w, std::uint32_t i, const char* param, const char* choice) const {
    const assay_param* when = param_named(w, param);
    require(Refusal::presets, when && when->type == ASSAY_TYPE_STRING && has_choice(*when, choice),
            "workload '{}': preset {} is for {} = \"{}\", which is no choice of its parameters", w.id, i, param,
            choice);
  }
  static const assay_param* param_named(const assay_workload& w, std::string_view name) {
    for (std::uint32_t i = 0; i < w.param_count; ++i)
      if (w.params[i]->name == name) return w.params[i];
    return nullptr;
  }
  static bool has_choice(const assay_param& p, std::string_view choice) {
    for (std::uint64_t i = 0; i < p.choice_count; ++i)
      if (p.choices[i] == choice) return true;
    return false;
  }

  void param(const assay_workload& w, const assay_param* p, std::uint32_t i, std::set<std::string_view>& names) const {
    require(Refusal::rows, p != nullptr, "workload '{}': parameter {} is malformed: its row is NULL", w.id, i);
    require(Refusal::sizes, p->struct_size >= param_size_1_0,
            "workload '{}': parameter {} is malformed: struct_size {}", w.id, i, p->struct_size);
    require(Refusal::names, is_name(p->name), "workload '{}': parameter {} is malformed: it has no valid name", w.id,
            i);
    require(Refusal::names, names.insert(p->name).second, "workload '{}' has the parameter '{}' twice; rename one",
            w.id, p->name);
    require(Refusal::values, p->type >= ASSAY_TYPE_BOOL && p->type <= ASSAY_TYPE_STRING,
            "workload '{}': parameter '{}' has type {}", w.id, p->name, p->type);
    require(Refusal::rows, p->choice_count == 0 || p->choices,
            "workload '{}': parameter '{}' has a choice_count, but choices is null", w.id, p->name);
    text(p->unit, fmt::format("workload '{}': the unit of parameter '{}'", w.id, p->name));
    text(p->help, fmt::format("workload '{}': the help of parameter '{}'", w.id, p->name));
    text(p->default_string, fmt::format("workload '{}': the default of parameter '{}'", w.id, p->name));
    count(w, p->choice_count, fmt::format("choices of parameter '{}'", p->name));
    for (std::uint64_t c = 0; c < p->choice_count; ++c) {
      require(Refusal::rows, p->choices[c] != nullptr, "workload '{}': choice {} of parameter '{}' is NULL", w.id, c,
              p->name);
      text(p->choices[c], fmt::format("workload '{}': choice {} of parameter '{}'", w.id, c, p->name));
    }
    require(Refusal::values, p->type != ASSAY_TYPE_FLOAT || !std::isnan(p->default_float),
            "workload '{}': the default of parameter '{}' is no number (NaN)", w.id, p->name);
    const bool bounded = (p->flags & ASSAY_PARAM_HAS_MIN) && (p->flags & ASSAY_PARAM_HAS_MAX);
    require(Refusal::values, !bounded || p->min <= p->max, "workload '{}': parameter '{}' has min above max", w.id,
            p->name);
  }

  std::string where_;
};

}  // namespace

void check_entry(const std::string& file, const assay_entry& entry) {
  const Checker check(file);
  check.require(Refusal::sizes, entry.struct_size >= entry_size_1_0,
                "its entry has struct_size {}, less than the {} bytes of ABI 1.0; rebuild it against a released SDK",
                entry.struct_size, entry_size_1_0);
  check.require(Refusal::version, entry.abi_major == ASSAY_ABI_MAJOR,
                "it was built for ABI {}.{}, this host speaks {}.{}; rebuild the plugin against this host's SDK",
                entry.abi_major, entry.abi_minor, ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
  check.require(Refusal::version, entry.min_host_minor <= ASSAY_ABI_MINOR,
                "it needs a host with ABI {}.{} or newer, this host speaks {}.{}; update assay", entry.abi_major,
                entry.min_host_minor, ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
  check.require(Refusal::texts, entry.id && *entry.id && entry.version && entry.build,
                "its entry lacks id, version or build text");
  check.require(Refusal::rows, entry.workload_count > 0 && entry.workloads, "it offers no workloads");
  for (const char* text : {entry.id, entry.version, entry.build}) check.text(text, "a text of its entry");
  check.count(entry.workload_count);
  std::set<std::string_view> ids;
  for (std::uint32_t i = 0; i < entry.workload_count; ++i) {
    check.workload(entry.workloads[i], i);
    check.require(Refusal::names, ids.insert(entry.workloads[i]->id).second, "it has two workloads with the id '{}'",
                  entry.workloads[i]->id);
  }
}

}  // namespace assay::host::plugin
