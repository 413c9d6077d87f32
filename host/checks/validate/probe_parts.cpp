#include "validate/probe_parts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace assay::host::validate {

bool begins(Life& life, int steps) {
  if (!life.create().is_ok() || !life.is_there() || !life.setup().is_ok()) return false;
  for (int i = 0; i < steps; ++i)
    if (!life.step(i == 0 ? ASSAY_STAGE_WARMUP : ASSAY_STAGE_MEASURE).is_ok()) return false;
  return true;
}

bool is_failure(const Outcome& outcome) {
  return !outcome.is_ok() && outcome.status != ASSAY_VERIFIED_IN_PART && outcome.status != ASSAY_UNSUPPORTED;
}

std::string size_of_output() {
  std::fflush(nullptr);
  return fmt::format("{}", lseek(STDERR_FILENO, 0, SEEK_END));
}

std::vector<Value> values_to_try(const plugin::ParamSpec& p) {
  if (p.type == plugin::ParamType::boolean) return {false, true};
  std::vector<Value> values;
  for (const std::string& choice : p.choices) values.emplace_back(choice);
  for (const std::optional<double>& bound : {p.min, p.max}) {
    if (!bound || p.type == plugin::ParamType::text) continue;
    if (p.type == plugin::ParamType::real)
      values.emplace_back(*bound);
    else if (std::abs(*bound) < 9e18)
      values.emplace_back(static_cast<std::int64_t>(*bound));
  }
  return values;
}

std::string mistake_in_refusal(const Outcome& outcome, bool has_object) {
  if (has_object) return fmt::format("{}, and an object, which nobody destroys", outcome.in_words());
  const bool may_be = outcome.status == ASSAY_INVALID_ARGUMENT || outcome.status == ASSAY_UNSUPPORTED ||
                      outcome.status == ASSAY_OUT_OF_MEMORY || outcome.status == ASSAY_DEVICE_ERROR ||
                      outcome.status == ASSAY_COMM_ERROR;
  return may_be && !outcome.text.empty() ? "" : outcome.in_words();
}

std::vector<double> values_of(Stage& stage, const measure::Samples& samples, std::size_t metric) {
  if (stage.subject().schema.metrics[metric].per_step) return samples.metrics[metric];
  const std::optional<double>& value = stage.services().case_metrics()[metric];
  return value ? std::vector{*value} : std::vector<double>();
}

}  // namespace assay::host::validate
