#include "record/memory_columns.hpp"

#include "common/memory_kinds.hpp"

#include <optional>

namespace assay::host::record {
namespace {

using R = const CaseRecord&;

constexpr std::string_view since_infix = ".since.";
constexpr std::string_view other_kinds = "other";  // in the place of a kind: all but parameters and optimizer_state

bool is_memory_kind(std::string_view name) {
  for (std::size_t i = 0; i < memory_kind_count; ++i)
    if (name == memory_kind_name(i)) return true;
  return false;
}

// The moment with this name; of several the last.
const MemoryAtMoment* moment_named(R r, std::string_view name) {
  const MemoryAtMoment* found = nullptr;
  if (r.result.memory && r.result.memory->moments)
    for (const MemoryAtMoment& moment : *r.result.memory->moments)
      if (moment.name == name) found = &moment;
  return found;
}

// The amount of a kind. Records leave out kinds that were never held: where the account stands, that is 0.
Cell amount_of(const std::optional<Named<double>>& amounts, std::string_view kind) {
  if (!amounts) return {};
  if (const double* amount = find(*amounts, kind)) return number_cell(*amount);
  return is_memory_kind(kind) ? number_cell(0.0) : Cell{};
}

double amount_at(const MemoryAtMoment& moment, std::string_view kind) {
  return amount_of(moment.current_mib, kind).number().value_or(0);
}

// Figures of several ranks are maxima, so that a difference of two means something only where the ranks hold alike.
bool is_alike_on_all_ranks(const MemoryAtMoment& moment) {
  constexpr double most_spread = 0.01;
  return !moment.rank_spread_mib || *moment.rank_spread_mib <= most_spread * moment.current_total_mib.value_or(0);
}

// What is neither parameters nor the optimizer's state.
Cell other_amount(const MemoryAtMoment& moment) {
  if (!moment.current_total_mib || !moment.current_mib || !is_alike_on_all_ranks(moment)) return {};
  return number_cell(*moment.current_total_mib - amount_at(moment, "parameters") -
                     amount_at(moment, "optimizer_state"));
}

// `moments`: "<moment>.since.<earlier moment>"; what the later one holds beyond the earlier. Nothing when either is
// missing.
std::optional<Cell> difference_cell(R r, std::string_view moments) {
  const std::size_t at = moments.find(since_infix);
  if (at == std::string_view::npos) return std::nullopt;
  const MemoryAtMoment* later = moment_named(r, moments.substr(0, at));
  const MemoryAtMoment* earlier = moment_named(r, moments.substr(at + since_infix.size()));
  if (!later || !earlier || !later->current_total_mib || !earlier->current_total_mib) return Cell{};
  if (!is_alike_on_all_ranks(*later) || !is_alike_on_all_ranks(*earlier)) return Cell{};
  return number_cell(*later->current_total_mib - *earlier->current_total_mib);
}

}  // namespace

DottedName split_last(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? DottedName{{}, name} : DottedName{name.substr(0, dot), name.substr(dot + 1)};
}

Cell memory_cell(R r, std::string_view column) {
  const DottedName name = split_last(column);
  const bool is_peak = name.tail == "peak_mib";
  if (name.head.empty() || (!is_peak && name.tail != "mib")) return {};
  if (!is_peak)
    if (const std::optional<Cell> difference = difference_cell(r, name.head)) return *difference;
  if (const MemoryAtMoment* moment = moment_named(r, name.head))
    return number_cell(is_peak ? moment->peak_total_mib : moment->current_total_mib);
  if (const DottedName of_kind = split_last(name.head); !of_kind.head.empty()) {
    const MemoryAtMoment* moment = moment_named(r, of_kind.head);
    if (moment && !is_peak && of_kind.tail == other_kinds) return other_amount(*moment);
    return moment ? amount_of(is_peak ? moment->peak_mib : moment->current_mib, of_kind.tail) : Cell{};
  }
  return is_peak && r.result.memory ? amount_of(r.result.memory->peak_mib, name.head) : Cell{};
}

bool is_memory_column(std::string_view column) {
  const DottedName name = split_last(column);
  const bool is_peak = name.tail == "peak_mib";
  if (name.head.empty() || (!is_peak && name.tail != "mib")) return false;
  if (const std::size_t since = name.head.find(since_infix); since != std::string_view::npos)
    return !is_peak && since > 0 && since + since_infix.size() < name.head.size();
  // Without a second part `.peak_mib` is a kind's, and those are in `names`.
  const DottedName of_kind = split_last(name.head);
  if (name.head.find('.') == std::string_view::npos) return !is_peak;
  return !of_kind.head.empty() && (is_memory_kind(of_kind.tail) || (!is_peak && of_kind.tail == other_kinds));
}

}  // namespace assay::host::record
