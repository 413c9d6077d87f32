#include "imports/mlperf_events.hpp"

#include <fmt/format.h>

#include <utility>

#include "imports/log_text.hpp"

namespace assay::host::imports {

MlperfEvents mlperf_events(std::string_view text) {
  MlperfEvents all;
  std::set<std::string_view> seen;
  for (const LogLine& line : log_lines(text)) {
    constexpr std::string_view mark = ":::MLLOG ";
    const std::size_t at = line.text.find(mark);
    if (at == line.text.npos) continue;
    const std::string_view body = line.text.substr(at + mark.size());
    Json event = parsed_or_discarded(body);
    if (!event.is_object() || text_at(event, "key").empty())
      ++all.torn;
    else if (!seen.insert(body).second)
      ++all.doubles;
    else
      all.events.push_back(std::move(event));
  }
  return all;
}

void note_lines(const MlperfEvents& events, ImportedRun& run) {
  if (events.torn > 0) run.notes.push_back(fmt::format("lines torn by other output and left out: {}", events.torn));
  if (events.doubles > 0)
    run.notes.push_back(fmt::format("lines that stand there more than once, and count once: {}", events.doubles));
}

std::string unit_in_name(std::string_view name) {
  for (const auto& [ending, unit] : {std::pair{"_ns", "ns"},
                                     {"_us", "us"},
                                     {"_ms", "ms"},
                                     {"_per_sec", "1/s"},
                                     {"_per_second", "1/s"},
                                     {"_sec", "s"},
                                     {"_seconds", "s"},
                                     {"_minutes", "min"}})
    if (name.ends_with(ending)) return unit;
  return "";
}

}  // namespace assay::host::imports
