#include "worker/told_names.hpp"

#include <fmt/format.h>
#include <assay/plugin/reserved_names.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "common/utf8.hpp"
#include "launch/log_tail.hpp"
#include "worker/host_services.hpp"

namespace assay::host::worker {
namespace {

constexpr std::size_t most_names = 256, most_name_bytes = 64, most_unit_bytes = 32;

// Why no table may have this name; "" where it may.
std::string fault_of(const std::string& name, bool is_reserved) {
  const auto is_sound = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > most_name_bytes || !std::all_of(name.begin(), name.end(), is_sound))
    return fmt::format("expected 1 to {} letters, digits, '_', '-' and '.'", most_name_bytes);
  return is_reserved ? "every table has a column of that name; choose another" : "";
}

}  // namespace

ToldNames::ToldNames(plugin::WorkloadSchema& schema, std::function<void()> grown,
                     std::function<void(assay_status, std::string)> say)
    : schema_(schema), grown_(std::move(grown)), say_(std::move(say)) {
  table_.struct_size = sizeof table_;
  table_.impl = this;
  table_.param = [](const assay_names*, const assay_config* config, std::uint64_t place, assay_str* out) noexcept {
    if (place >= config->params.size()) return assay_status{ASSAY_INVALID_ARGUMENT};
    const std::string& name = std::next(config->params.begin(), static_cast<std::ptrdiff_t>(place))->first;
    *out = {name.data(), name.size()};
    return assay_status{ASSAY_OK};
  };
  table_.phase = [](const assay_names* names, assay_str name, std::uint32_t* out) noexcept {
    return from(names).guarded([&](ToldNames& self) { return self.phase(std::string(view_of(name)), *out); });
  };
  table_.metric = [](const assay_names* names, const assay_metric* row, std::uint32_t* out) noexcept {
    return from(names).guarded([&](ToldNames& self) { return self.metric(*row, *out); });
  };
}

template <class F>
assay_status ToldNames::guarded(F&& f) noexcept {
  try {
    return f(*this);
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
}

assay_status ToldNames::refuse(std::string text) {
  say_(ASSAY_INVALID_ARGUMENT, std::move(text));
  return ASSAY_INVALID_ARGUMENT;
}

assay_status ToldNames::phase(std::string name, std::uint32_t& out) {
  const auto found = std::find(schema_.phases.begin(), schema_.phases.end(), name);
  out = static_cast<std::uint32_t>(found - schema_.phases.begin());
  if (found != schema_.phases.end()) return ASSAY_OK;
  if (const std::string fault = fault_of(name, assay::is_reserved_phase(name)); !fault.empty())
    return refuse(fmt::format("a phase cannot be called '{}': {}", launch::printable_utf8(name), fault));
  if (schema_.phases.size() >= most_names)
    return refuse(fmt::format("more than {} phases are named; expected a few, the same in each step", most_names));
  schema_.phases.push_back(std::move(name));
  grown_();
  return ASSAY_OK;
}

assay_status ToldNames::metric(const assay_metric& row, std::uint32_t& out) {
  if (!ASSAY_HAS(&row, assay_metric, scope) || !row.name)
    return refuse("a metric is named by a row without a name, or of no released size");
  if (ASSAY_HAS(&row, assay_metric, word_count) && row.word_count > 0)
    return refuse(fmt::format("the metric '{}' has words, which only a metric of the table may have", row.name));
  plugin::MetricSpec spec;
  spec.name = row.name;
  spec.unit = row.unit ? row.unit : "";
  spec.help = row.help ? row.help : "";
  spec.direction = static_cast<Direction>(std::clamp(row.direction, -1, 1));
  spec.per_step = row.scope == ASSAY_PER_STEP;
  const auto found = std::find_if(schema_.metrics.begin(), schema_.metrics.end(),
                                  [&](const plugin::MetricSpec& metric) { return metric.name == spec.name; });
  out = static_cast<std::uint32_t>(found - schema_.metrics.begin());
  if (found != schema_.metrics.end()) {
    if (found->unit == spec.unit && found->direction == spec.direction && found->per_step == spec.per_step)
      return ASSAY_OK;
    return refuse(fmt::format(
        "the metric '{}' is reported with another unit, direction or scope than before; expected the same each time",
        spec.name));
  }
  if (const std::string fault = fault_of(spec.name, assay::is_reserved_name(spec.name)); !fault.empty())
    return refuse(fmt::format("a metric cannot be called '{}': {}", launch::printable_utf8(spec.name), fault));
  if (std::any_of(schema_.params.begin(), schema_.params.end(),
                  [&](const plugin::ParamSpec& param) { return param.name == spec.name; }))
    return refuse(fmt::format("a metric cannot be called '{}': a parameter is; choose another name", spec.name));
  if (spec.unit.size() > most_unit_bytes || !is_utf8(spec.unit.c_str()) || !is_utf8(spec.help.c_str()))
    return refuse(
        fmt::format("the unit of the metric '{}' is longer than {} bytes or not UTF-8", spec.name, most_unit_bytes));
  if (schema_.metrics.size() >= most_names)
    return refuse(fmt::format("more than {} metrics are named; expected a few, the same in each step", most_names));
  schema_.metrics.push_back(std::move(spec));
  grown_();
  return ASSAY_OK;
}

}  // namespace assay::host::worker
