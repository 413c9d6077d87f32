// Texts that stand for values: each name is written once, beside its meaning.
//
//   enum class Pass { forward, backward, both };
//   inline constexpr auto passes =
//       assay::choices<Pass>({{"forward", Pass::forward}, {"backward", Pass::backward}, {"both", Pass::both}});
//
//   assay::Param::choice("pass", Pass::both, passes)    a row of the parameter table
//   const Pass pass = c.choice("pass", passes);         its value in a case
//   assay::Metric::word("pass_taken", passes)           a result that is one of them
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace assay {

// Undefined functions: a check that fails at compile time calls the one whose name states the mistake.
namespace mistake {
void a_choice_has_no_name();
void two_choices_have_the_same_name();
}  // namespace mistake

template <class Value>
struct Choice {
  const char* name;
  Value value;
};

// Keep it static: the tables of a workload point to its names.
template <class Value, std::size_t N>
struct Choices {
  std::array<const char*, N> names{};
  std::array<Value, N> values{};

  // NULL if no choice has this name.
  constexpr const Value* find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < N; ++i)
      if (name == names[i]) return &values[i];
    return nullptr;
  }
  // The first name with this meaning; NULL without one.
  constexpr const char* name_of(const Value& value) const {
    for (std::size_t i = 0; i < N; ++i)
      if (values[i] == value) return names[i];
    return nullptr;
  }
};

template <class Value, std::size_t N>
consteval Choices<Value, N> choices(const Choice<Value> (&rows)[N]) {
  Choices<Value, N> made;
  for (std::size_t i = 0; i < N; ++i) {
    if (!rows[i].name) mistake::a_choice_has_no_name();
    for (std::size_t before = 0; before < i; ++before)
      if (std::string_view(rows[before].name) == rows[i].name) mistake::two_choices_have_the_same_name();
    made.names[i] = rows[i].name;
    made.values[i] = rows[i].value;
  }
  return made;
}

template <class... Name>
constexpr std::array<const char*, sizeof...(Name)> names(const Name&... n) {
  return {n...};
}

}  // namespace assay
