#include "record/times.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "record/json_fields.hpp"

namespace assay::host::record {
namespace {

bool is_time_or_rate(std::string_view unit) {
  constexpr std::array<std::string_view, 6> times{"ns", "us", "ms", "s", "min", "h"};
  return std::find(times.begin(), times.end(), unit) != times.end() || unit.find("/s") != std::string_view::npos ||
         unit.find("per_s") != std::string_view::npos;
}

// Empties what is measured, in a result and in its parts.
class TimesRemover {
 public:
  template <class T>
  void measured(const char*, T& member) {
    member = T{};
  }
  template <class T>
  void operator()(const char*, std::optional<T>& part) {
    if constexpr (requires { sizeof(Fields<T>); })
      if (part) Fields<T>::visit(*this, *part);
  }
  template <class T>
  void operator()(const char*, T&) {}
  template <class T>
  void unless_empty(const char*, T& part) {
    if constexpr (requires { sizeof(Fields<T>); }) Fields<T>::visit(*this, part);
  }
  void or_null(const char*, auto&) {}
  void or_empty(const char*, auto&) {}
  void status(CaseResult&) {}
  void count(const char*, double&) {}
};

}  // namespace

void remove_times(CaseResult& result) {
  Fields<CaseResult>::visit(TimesRemover(), result);
  // What the maker states is no measurement.
  if (result.efficiency && !result.efficiency->stated) result.efficiency.reset();
  if (!result.metrics) return;
  std::erase_if(*result.metrics, [](const auto& metric) { return is_time_or_rate(metric.second.unit); });
  if (result.metrics->empty()) result.metrics.reset();
}

}  // namespace assay::host::record
