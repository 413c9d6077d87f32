// The rows of a workload's tables: parameters, phases, metrics, presets. A row of a phase or a metric is also the
// handle that marks or reports it (launch.hpp):
//
//   static constexpr auto loss = assay::Metric::per_case("loss").help("cross-entropy of the last step, nats");
//   static constexpr auto rate = assay::Metric::per_case("rate").unit("GB/s").higher_is_better().help("of the copy");
//   static constexpr auto metrics = assay::table(loss, rate);
//
// Names, texts and choices are static. ASSAY_PLUGIN checks the tables at compile time (table_checks.hpp).
#pragma once
#include <assay/abi.h>
#include <assay/plugin/choices.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace assay {

namespace mistake {
void the_default_of_a_choice_is_none_of_its_values();
}

// One row of the parameter table; a builder over assay_param.
struct Param {
  assay_param row{};

  static constexpr Param boolean(const char* name, bool value) {
    Param p(name, ASSAY_TYPE_BOOL);
    p.row.default_int = value ? 1 : 0;
    return p;
  }
  static constexpr Param integer(const char* name, std::int64_t value) {
    Param p(name, ASSAY_TYPE_INT);
    p.row.default_int = value;
    return p;
  }
  static constexpr Param real(const char* name, double value) {
    Param p(name, ASSAY_TYPE_FLOAT);
    p.row.default_float = value;
    return p;
  }
  static constexpr Param text(const char* name, const char* value) {
    Param p(name, ASSAY_TYPE_STRING);
    p.row.default_string = value;
    return p;
  }
  // A text that must be one of `names`, an array with static storage.
  template <std::size_t N>
  static constexpr Param choice(const char* name, const char* value, const std::array<const char*, N>& names) {
    Param p = text(name, value);
    p.row.choices = names.data();
    p.row.choice_count = N;
    return p;
  }
  template <std::size_t N>
  static constexpr Param choice(const char* name, const char* value, std::array<const char*, N>&&) {
    static_assert(
        N != N,
        "the names that a parameter may have are kept nowhere: make them a static constexpr auto, as in static "
        "constexpr auto formats = assay::names(\"fp32\", \"bf16\");");
    return text(name, value);
  }
  // The same with the meaning of each name; Case::choice gives the chosen value.
  template <class Value, std::size_t N>
  static consteval Param choice(const char* name, const std::type_identity_t<Value>& value,
                                const Choices<Value, N>& of) {
    const char* const chosen = of.name_of(value);
    if (!chosen) mistake::the_default_of_a_choice_is_none_of_its_values();
    return choice(name, chosen, of.names);
  }
  template <class Value, std::size_t N>
  static constexpr Param choice(const char* name, const std::type_identity_t<Value>&, Choices<Value, N>&&) {
    static_assert(N != N,
                  "the names that a parameter may have are kept nowhere: make the choices a static constexpr auto, as "
                  "in static constexpr auto passes = assay::choices<Pass>({...});");
    return text(name, "");
  }
  static constexpr Param input_path(const char* name) {
    Param p = text(name, "");
    p.row.flags |= ASSAY_PARAM_INPUT_PATH;
    return p;
  }
  static constexpr Param output_path(const char* name) {
    Param p = text(name, "");
    p.row.flags |= ASSAY_PARAM_OUTPUT_PATH;
    return p;
  }
  // The words of a command line; the experiment may give an array of strings (ASSAY_PARAM_WORDS).
  static constexpr Param words(const char* name) {
    Param p = text(name, "");
    p.row.flags |= ASSAY_PARAM_WORDS;
    return p;
  }
  constexpr Param at_least(double low) const {
    Param p = *this;
    p.row.min = low, p.row.flags |= ASSAY_PARAM_HAS_MIN;
    return p;
  }
  constexpr Param at_most(double high) const {
    Param p = *this;
    p.row.max = high, p.row.flags |= ASSAY_PARAM_HAS_MAX;
    return p;
  }
  constexpr Param required() const {
    Param p = *this;
    p.row.flags |= ASSAY_PARAM_REQUIRED;
    return p;
  }
  constexpr Param unit(const char* text_of_unit) const {
    Param p = *this;
    p.row.unit = text_of_unit;
    return p;
  }
  constexpr Param help(const char* text_of_help) const {
    Param p = *this;
    p.row.help = text_of_help;
    return p;
  }

 private:
  constexpr Param(const char* name, assay_type type) {
    row.struct_size = sizeof(assay_param);
    row.name = name;
    row.help = "";
    row.type = type;
    row.default_string = "";
  }
};

// One row of the table of phases.
struct Phase {
  const char* name;
};
constexpr Phase phase(const char* name) noexcept { return {name}; }

template <class Value>
struct WordMetric;

// One row of the table of metrics.
struct Metric {
  assay_metric row{};

  static constexpr Metric per_step(const char* name) { return per_step(name, nullptr, ASSAY_NEITHER_IS_BETTER, ""); }
  static constexpr Metric per_case(const char* name) { return per_case(name, nullptr, ASSAY_NEITHER_IS_BETTER, ""); }
  static constexpr Metric per_step(const char* name, const char* unit, assay_direction direction, const char* help) {
    return Metric{{sizeof(assay_metric), name, unit, help, direction, ASSAY_PER_STEP, nullptr, 0}};
  }
  static constexpr Metric per_case(const char* name, const char* unit, assay_direction direction, const char* help) {
    return Metric{{sizeof(assay_metric), name, unit, help, direction, ASSAY_PER_CASE, nullptr, 0}};
  }
  // A result of the case that is one of `words`, an array with static storage.
  template <std::size_t N>
  static constexpr Metric word(const char* name, const std::array<const char*, N>& words, const char* help = "") {
    return Metric{
        {sizeof(assay_metric), name, nullptr, help, ASSAY_NEITHER_IS_BETTER, ASSAY_PER_CASE, words.data(), N}};
  }
  // The same with the meaning of each word, by which it is reported.
  template <class Value, std::size_t N>
  static constexpr WordMetric<Value> word(const char* name, const Choices<Value, N>& words);
  // Refuses temporaries, which nobody keeps.
  template <std::size_t N>
  static constexpr Metric word(const char* name, std::array<const char*, N>&&, const char* = "") {
    static_assert(
        N != N,
        "the words of a metric are kept nowhere: make them a static constexpr auto, as in static constexpr auto "
        "formats = assay::names(\"fp32\", \"bf16\");");
    return per_case(name);
  }
  template <class Value, std::size_t N>
  static constexpr Metric word(const char* name, Choices<Value, N>&&) {
    static_assert(
        N != N,
        "the words of a metric are kept nowhere: make the choices a static constexpr auto, as in static constexpr "
        "auto passes = assay::choices<Pass>({...});");
    return per_case(name);
  }

  constexpr Metric unit(const char* text_of_unit) const {
    Metric m = *this;
    m.row.unit = text_of_unit;
    return m;
  }
  constexpr Metric lower_is_better() const {
    Metric m = *this;
    m.row.direction = ASSAY_LOWER_IS_BETTER;
    return m;
  }
  constexpr Metric higher_is_better() const {
    Metric m = *this;
    m.row.direction = ASSAY_HIGHER_IS_BETTER;
    return m;
  }
  constexpr Metric help(const char* text_of_help) const {
    Metric m = *this;
    m.row.help = text_of_help;
    return m;
  }
};

// A metric whose words mean values.
template <class Value>
struct WordMetric : Metric {
  const Value* values = nullptr;  // as many as words

  constexpr WordMetric help(const char* text_of_help) const {
    WordMetric m = *this;
    m.row.help = text_of_help;
    return m;
  }
  // A word has no unit and no better direction.
  void unit(const char*) const = delete;
  void lower_is_better() const = delete;
  void higher_is_better() const = delete;
};

template <class Value, std::size_t N>
constexpr WordMetric<Value> Metric::word(const char* name, const Choices<Value, N>& words) {
  WordMetric<Value> m;
  m.row = word(name, words.names).row;
  m.values = words.values.data();
  return m;
}

// One row of what a choice stands for (assay_preset): if the text parameter `when` is `choice`, `param` has this value
// unless the experiment sets it. Rows for any device come before those for a kind.
struct Preset {
  assay_preset row{};
  std::int32_t type = -1;  // of the value (assay_type): that of the parameter; -1 in a row that is filled by hand

  static constexpr Preset integer(const char* when, const char* choice, const char* param, std::int64_t value) {
    Preset p(when, choice, param, ASSAY_TYPE_INT);
    p.row.int_value = value;
    return p;
  }
  static constexpr Preset real(const char* when, const char* choice, const char* param, double value) {
    Preset p(when, choice, param, ASSAY_TYPE_FLOAT);
    p.row.float_value = value;
    return p;
  }
  static constexpr Preset boolean(const char* when, const char* choice, const char* param, bool value) {
    Preset p(when, choice, param, ASSAY_TYPE_BOOL);
    p.row.int_value = value ? 1 : 0;
    return p;
  }
  static constexpr Preset text(const char* when, const char* choice, const char* param, const char* value) {
    Preset p(when, choice, param, ASSAY_TYPE_STRING);
    p.row.string_value = value;
    return p;
  }
  constexpr Preset on(const char* device_kind) const {
    Preset p = *this;
    p.row.device_kind = device_kind;
    return p;
  }
  constexpr Preset and_when(const char* also, const char* also_choice) const {
    Preset p = *this;
    p.row.also_when = also, p.row.also_choice = also_choice;
    return p;
  }
  constexpr Preset() = default;  // an element of an array that is filled later

 private:
  constexpr Preset(const char* when, const char* choice, const char* param, assay_type type_of_value)
      : type(type_of_value) {
    row.struct_size = sizeof(assay_preset);
    row.when = when, row.choice = choice, row.param = param;
    row.string_value = "";
  }
};

namespace detail {
template <class... Row>
struct RowOf {
  using Type = std::common_type_t<Row...>;
};
template <class... Row>
requires(std::derived_from<Row, Metric>&&...) struct RowOf<Row...> {
  using Type = Metric;  // with words or without
};
}  // namespace detail

template <class... Row>
requires(sizeof...(Row) > 0) constexpr auto table(const Row&... rows) {
  return std::array<typename detail::RowOf<Row...>::Type, sizeof...(Row)>{rows...};
}

// One table out of several of one kind, whose rows follow each other: join(model_params, table(...), ...).
template <class Row, std::size_t... N>
constexpr auto join(const std::array<Row, N>&... tables) {
  return std::apply([](const auto&... rows) { return table(rows...); }, std::tuple_cat(tables...));
}

}  // namespace assay
