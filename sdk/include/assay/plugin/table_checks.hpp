// Checks a workload's tables at compile time, as the host does when it loads a plugin, and a little more: it also
// refuses mistakes that the host sees only in a run. The type in the compiler's message names the workload, the row's
// place and its name.
#pragma once
#include <assay/plugin/launch.hpp>
#include <assay/plugin/reserved_names.hpp>
#include <assay/plugin/tables.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace assay::detail {

// A text as an argument of a template.
template <std::size_t N>
struct Text {
  char letters[N + 1]{};
  constexpr explicit Text(const char* s) {
    for (std::size_t i = 0; i < N; ++i) letters[i] = s[i];
  }
};
constexpr std::size_t length_of(const char* s) noexcept { return s ? std::string_view(s).size() : 0; }

// The host's rule: letters, digits, '_', '-' and '.'.
constexpr bool is_name(const char* s) noexcept {
  if (!s || !*s) return false;
  for (; *s; ++s)
    if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' || *s == '.' ||
          *s == '-'))
      return false;
  return true;
}
constexpr bool is_nan(double x) noexcept { return !(x <= 0) && !(x >= 0); }

constexpr bool is_missing(const char* const* texts, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (!texts[i]) return true;
  return false;
}
constexpr bool is_twice(const char* const* texts, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (is_same_text(texts[i], texts[before])) return true;
  return false;
}
constexpr bool has_text(const char* const* texts, std::size_t count, const char* text) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (is_same_text(texts[i], text)) return true;
  return false;
}

// How many rows of the tables of parameters and metrics have this name.
template <class W>
constexpr std::size_t rows_named(const char* name) {
  std::size_t found = 0;
  if constexpr (requires { W::params.size(); })
    for (const Param& p : W::params) found += is_same_text(p.row.name, name) ? 1 : 0;
  if constexpr (requires { W::metrics.size(); })
    for (const Metric& m : W::metrics) found += is_same_text(m.row.name, name) ? 1 : 0;
  return found;
}

// "tokens" has the columns tokens_per_s, tokens_per_j and j_per_token.
template <class W>
constexpr bool is_rate_of_items(std::string_view name) {
  if constexpr (requires { static_cast<const char*>(W::item_unit); }) {
    if (!W::item_unit) return false;
    const std::string_view items = W::item_unit;
    constexpr std::string_view energy = "j_per_";
    if (name.starts_with(items) && (name.substr(items.size()) == "_per_s" || name.substr(items.size()) == "_per_j"))
      return true;
    const std::string_view item = items.ends_with('s') ? items.substr(0, items.size() - 1) : items;
    return name.starts_with(energy) && name.substr(energy.size()) == item;
  }
  return false;
}

// Statistics of a phase or of a metric of the steps are columns "<its name>.<statistic>".
template <class W>
constexpr bool is_statistic(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view head = name.substr(0, dot);
  if constexpr (requires { W::phases.size(); })
    for (const auto& phase : W::phases)
      if (const char* const of = name_of(phase); of && head == of) return true;
  if constexpr (requires { W::metrics.size(); })
    for (const Metric& m : W::metrics)
      if (m.row.scope == ASSAY_PER_STEP && m.row.name && head == m.row.name) return true;
  return false;
}

template <class W>
constexpr bool is_column(const char* name) {
  return name && (is_reserved_name(name) || is_rate_of_items<W>(name) || is_statistic<W>(name));
}

constexpr bool is_number(const assay_param& p) noexcept {
  return p.type == ASSAY_TYPE_INT || p.type == ASSAY_TYPE_FLOAT;
}
constexpr bool is_within(const assay_param& p, double value) noexcept {
  return !((p.flags & ASSAY_PARAM_HAS_MIN) && !(value >= p.min)) &&
         !((p.flags & ASSAY_PARAM_HAS_MAX) && !(value <= p.max));
}
// By the count alone: with the undefined-behaviour sanitizer g++ takes no comparison of an address with NULL for a
// constant.
constexpr std::size_t choices_of(const assay_param& p) noexcept { return static_cast<std::size_t>(p.choice_count); }
constexpr std::size_t words_of(const assay_metric& m) noexcept { return static_cast<std::size_t>(m.word_count); }
constexpr double default_number(const assay_param& p) noexcept {
  return p.type == ASSAY_TYPE_FLOAT ? p.default_float : static_cast<double>(p.default_int);
}

// The row `place` of W::params; `name` is for the compiler's message.
template <class W, std::size_t place, Text name>
struct CheckedParam {
  static constexpr assay_param row = W::params[place].row;
  static constexpr bool is_bounded = (row.flags & (ASSAY_PARAM_HAS_MIN | ASSAY_PARAM_HAS_MAX)) != 0;
  static constexpr bool has_default = (row.flags & ASSAY_PARAM_REQUIRED) == 0;
  static constexpr bool is_text = row.type == ASSAY_TYPE_STRING;
  static constexpr std::size_t choice_count = choices_of(row);

  static_assert(is_name(row.name), "the name of a parameter is of letters, digits, '_', '-' and '.'");
  static_assert(rows_named<W>(row.name) == 1, "a parameter has the name of another parameter or of a metric");
  static_assert(!is_column<W>(row.name), "a parameter has the name of a column that the host's tables have");
  static_assert(!is_bounded || is_number(row), "at_least and at_most are for integer and real parameters");
  static_assert(!is_nan(row.min) && !is_nan(row.max), "a bound of a parameter is not a number");
  static_assert(!((row.flags & ASSAY_PARAM_HAS_MIN) && (row.flags & ASSAY_PARAM_HAS_MAX)) || !(row.min > row.max),
                "at_least of a parameter is above its at_most");
  static_assert(row.type != ASSAY_TYPE_FLOAT || !is_nan(row.default_float),
                "the default of a real parameter is not a number");
  static_assert(!is_number(row) || !has_default || is_nan(row.default_float) || is_within(row, default_number(row)),
                "the default of a parameter is outside its at_least and at_most");
  static_assert(!is_text || row.default_string, "the default of a text parameter is NULL");
  static_assert(!is_missing(row.choices, choice_count), "a choice of a parameter is NULL");
  static_assert(!is_twice(row.choices, choice_count), "a parameter has the same choice twice");
  static_assert(choice_count == 0 || !has_default || has_text(row.choices, choice_count, row.default_string),
                "the default of a parameter is none of its choices");
};

template <class W, std::size_t place, Text name>
struct CheckedMetric {
  static constexpr assay_metric row = W::metrics[place].row;
  static constexpr std::size_t word_count = words_of(row);
  static constexpr bool all_words_are_names() {
    for (std::size_t i = 0; i < word_count; ++i)
      if (!is_name(row.words[i])) return false;
    return true;
  }

  static_assert(is_name(row.name), "the name of a metric is of letters, digits, '_', '-' and '.'");
  static_assert(rows_named<W>(row.name) == 1, "a metric has the name of another metric or of a parameter");
  static_assert(!is_column<W>(row.name), "a metric has the name of a column that the host's tables have");
  static_assert(row.scope == ASSAY_PER_STEP || row.scope == ASSAY_PER_CASE, "a metric is per step or per case");
  static_assert(word_count == 0 || row.scope == ASSAY_PER_CASE, "a metric of words is per case");
  static_assert(all_words_are_names(), "a word of a metric is of letters, digits, '_', '-' and '.'");
  static_assert(!is_twice(row.words, word_count), "a metric has the same word twice");
};

template <class W, std::size_t place, Text name>
struct CheckedPhase {
  static constexpr const char* given = name_of(W::phases[place]);
  static constexpr bool is_repeated() {
    for (std::size_t i = 0; i < place; ++i)
      if (is_same_text(name_of(W::phases[i]), given)) return true;
    return false;
  }

  static_assert(is_name(given), "the name of a phase is of letters, digits, '_', '-' and '.'");
  static_assert(!is_repeated(), "a phase has the name of another phase");
  static_assert(!given || !is_reserved_phase(given),
                "a phase has the name of the host's 'step', or statistics that the host's tables have as columns");
};

template <class W, std::size_t place, Text name>
struct CheckedPreset {
  static constexpr assay_preset row = W::presets[place].row;
  static constexpr std::size_t place_of(const char* param) {
    if constexpr (requires { W::params.size(); })
      for (std::size_t i = 0; i < W::params.size(); ++i)
        if (is_same_text(W::params[i].row.name, param)) return i;
    return static_cast<std::size_t>(-1);
  }
  static constexpr bool is_param(const char* param) { return place_of(param) != static_cast<std::size_t>(-1); }
  static constexpr bool is_choice(const char* param, const char* choice) {
    if constexpr (requires { W::params.size(); })
      if (is_param(param)) {
        const assay_param& p = W::params[place_of(param)].row;
        return has_text(p.choices, choices_of(p), choice);
      }
    return false;
  }
  static constexpr bool is_of_type() {
    if constexpr (requires { W::params.size(); })
      if (is_param(row.param))
        return W::presets[place].type < 0 || W::params[place_of(row.param)].row.type == W::presets[place].type;
    return true;
  }
  static constexpr bool is_value_sound() {
    if constexpr (requires { W::params.size(); })
      if (is_param(row.param) && is_of_type()) {
        const assay_param& p = W::params[place_of(row.param)].row;
        if (p.type == ASSAY_TYPE_STRING)
          return row.string_value && (choices_of(p) == 0 || has_text(p.choices, choices_of(p), row.string_value));
        const double value = p.type == ASSAY_TYPE_FLOAT ? row.float_value : static_cast<double>(row.int_value);
        return !is_nan(value) && is_within(p, value);
      }
    return true;
  }

  static_assert(is_choice(row.when, row.choice), "a preset is for a choice that no parameter has");
  static_assert(!row.also_when || is_choice(row.also_when, row.also_choice),
                "a preset has a condition that no parameter's choice can meet");
  static_assert(is_param(row.param), "a preset sets what is no parameter");
  static_assert(is_of_type(),
                "a preset has a value of another type than its parameter: Preset::boolean, integer, real or text, as "
                "the parameter is made");
  static_assert(is_value_sound(), "a preset sets a parameter to a value outside its range or choices");
};

// Can a table be read at compile time? One that is const without being a constant is left to the host.
template <class Table>
constexpr bool is_read(const Table& table) {
  [[maybe_unused]] bool is_known = false;
  for (const auto& row : table)
    if constexpr (requires { row.row; })
      is_known = row.row.struct_size > 0;
    else
      is_known = name_of(row) != nullptr;
  return true;
}

// All rows of a table, each a class that is made where the checks are.
#define ASSAY_DETAIL_CHECKED_TABLE(Checked, table, text)                                                        \
  template <class W, class Places>                                                                              \
  struct Rows_##table;                                                                                          \
  template <class W, std::size_t... place>                                                                      \
  struct Rows_##table<W, std::index_sequence<place...>> : Checked<W, place, Text<length_of(text)>(text)>... {}; \
  template <class W>                                                                                            \
  struct Checked_##table {};                                                                                    \
  template <class W>                                                                                            \
  requires requires { typename std::bool_constant<is_read(W::table)>; }                                         \
  struct Checked_##table<W> : Rows_##table<W, std::make_index_sequence<W::table.size()>> {}
ASSAY_DETAIL_CHECKED_TABLE(CheckedParam, params, W::params[place].row.name);
ASSAY_DETAIL_CHECKED_TABLE(CheckedMetric, metrics, W::metrics[place].row.name);
ASSAY_DETAIL_CHECKED_TABLE(CheckedPhase, phases, name_of(W::phases[place]));
ASSAY_DETAIL_CHECKED_TABLE(CheckedPreset, presets, W::presets[place].row.param);
#undef ASSAY_DETAIL_CHECKED_TABLE

template <class W>
struct CheckedTables : Checked_params<W>, Checked_metrics<W>, Checked_phases<W>, Checked_presets<W> {};

}  // namespace assay::detail
