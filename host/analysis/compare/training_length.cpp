#include "compare/training_length.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <variant>

namespace assay::host::compare {
namespace {

// As the workloads of training call them.
constexpr std::array of_training{"loss", "epoch_loss", "loss_scale", "skipped_steps"};
// A workload with this parameter trains by itself, for so many updates.
constexpr const char* own_length = "loss_steps";
// A shorter warm-up has steps added behind it until they have settled (docs/experiment.md, "Settling steps").
constexpr std::int64_t shortest_whole_warmup = 5;

struct Length {
  std::int64_t before = 0, measured = 0;  // unrecorded steps, and those of all samples
  std::strong_ordering operator<=>(const Length&) const = default;
};

std::optional<Length> length_of(const record::CaseRecord& r) {
  const Value* const warmup = record::find(r.identity.settings, "measure.warmup");
  const record::Phase* const step = record::step_of(r.result);
  if (!warmup || !std::holds_alternative<std::int64_t>(*warmup) || !step || !step->n) return std::nullopt;
  Length length{.before = std::get<std::int64_t>(*warmup), .measured = *step->n};
  if (!r.result.sampling) return length;
  length.measured *= r.result.sampling->inner.value_or(1);
  // The first step of the warm-up shows how long one takes; the settling ones follow it, or are the last of the
  // warm-up.
  if (const auto settling = r.result.sampling->settling_steps;
      settling && length.before > 0 && length.before < shortest_whole_warmup)
    length.before = std::max(length.before, 1 + *settling);
  return length;
}

std::string text_of(const std::set<Length>& lengths) {
  std::string text;
  for (const Length& length : lengths)
    text += fmt::format("{}{} + {}", text.empty() ? "" : ", ", length.before, length.measured);
  return text;
}

}  // namespace

std::string other_training_length(const SideCase& a, const SideCase& b, const std::string& label_a,
                                  const std::string& label_b, const std::string& metric) {
  if (std::find(of_training.begin(), of_training.end(), metric) == of_training.end()) return "";
  std::set<Length> of_a, of_b, all;
  for (const auto& [side, lengths] : {std::pair(&a, &of_a), std::pair(&b, &of_b)})
    for (const record::CaseRecord* const r : side->records) {
      if (record::find(r->identity.params, own_length)) return "";
      const std::optional<Length> length = length_of(*r);
      if (!length) return "";
      lengths->insert(*length);
      all.insert(*length);
    }
  if (all.size() < 2) return "";
  return fmt::format(
      "{} depends on the number of steps, which differs (unrecorded + measured): {} in {}, {} in {}; compare runs with "
      "the same steps, and the same warmup of 0 or at least {}",
      metric, text_of(of_a), label_a, text_of(of_b), label_b, shortest_whole_warmup);
}

}  // namespace assay::host::compare
