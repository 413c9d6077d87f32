#include "shard/shard_state.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "common/files.hpp"
#include "shard/journal.hpp"

namespace assay::host::shard {
namespace {

namespace fs = std::filesystem;
using Event = JournalEntry::Event;

// The job may have been killed between a record and the journal's line about it: the record counts.
std::optional<std::string> status_of_last_record(const fs::path& cases_jsonl, std::int64_t case_index) {
  std::error_code ignored;
  if (!fs::is_regular_file(cases_jsonl, ignored)) return std::nullopt;
  const std::string text = read_file(cases_jsonl);
  std::string_view view = text;
  if (!view.ends_with('\n')) view = view.substr(0, view.rfind('\n') + 1);  // a torn last line
  if (view.empty()) return std::nullopt;
  view.remove_suffix(1);
  const std::size_t begin = view.rfind('\n');
  const auto record = nlohmann::json::parse(begin == std::string_view::npos ? view : view.substr(begin + 1), nullptr,
                                            /*allow_exceptions=*/false);
  const auto index = record.is_object() ? record.find("index") : record.end();
  const auto status = record.is_object() ? record.find("status") : record.end();
  if (!record.is_object() || index == record.end() || *index != case_index || status == record.end() ||
      !status->is_string())
    return std::nullopt;
  return status->get<std::string>();
}

void add_attempt(const Attempt& attempt, std::map<std::int64_t, CaseTrace>& cases) {
  for (const JournalEntry& entry : read_journal(attempt.folder / "journal.jsonl")) {
    CaseTrace& trace = cases[entry.case_index];
    trace.attempt = attempt.number;
    trace.is_at_hand = entry.event == Event::begin;
    switch (entry.event) {
      case Event::begin:
        ++trace.begun;
        trace.last_begin_s = entry.at_s;
        break;
      case Event::end: trace.status = entry.status; break;
      case Event::left: ++trace.left; break;
      case Event::quarantine: trace.is_quarantined = true; break;
    }
  }
  for (auto& [index, trace] : cases) {
    if (!trace.is_at_hand || trace.attempt != attempt.number) continue;
    if (const auto status = status_of_last_record(attempt.folder / "cases.jsonl", index)) {
      trace.status = *status;
      trace.is_at_hand = false;
    }
  }
}

}  // namespace

bool ShardState::is_finished(std::int64_t case_index) const {
  const auto found = cases.find(case_index);
  return found != cases.end() && (!found->second.status.empty() || found->second.is_quarantined);
}

ShardState read_shard_state(const fs::path& shard_folder) {
  ShardState state;
  state.attempts = read_attempts(shard_folder);
  for (std::size_t i = 0; i < state.attempts.size(); ++i) {
    add_attempt(state.attempts[i], state.cases);
    const bool is_last = i + 1 == state.attempts.size();
    for (auto& [index, trace] : state.cases) {
      if (!trace.is_at_hand || (is_last && !state.attempts[i].end)) continue;
      // The attempt is over, and the case was at hand.
      trace.is_at_hand = false;
      ++trace.unfinished;
    }
  }
  return state;
}

}  // namespace assay::host::shard
