#include "record/merge_parts.hpp"

#include "common/device_kinds.hpp"
#include "common/rank_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace assay::host::record {
namespace {

// The `occurrence`-th (from 0) of the moments with this name; null when there are fewer.
MemoryAtMoment* moment_in(std::vector<MemoryAtMoment>& moments, const std::string& name, std::size_t occurrence) {
  for (MemoryAtMoment& moment : moments)
    if (moment.name == name && occurrence-- == 0) return &moment;
  return nullptr;
}

void keep_larger_moments(std::vector<MemoryAtMoment>& into, const std::vector<MemoryAtMoment>& other) {
  std::map<std::string, std::size_t> seen;
  for (const MemoryAtMoment& moment : other) {
    MemoryAtMoment* same = moment_in(into, moment.name, seen[moment.name]++);
    if (!same) {
      into.push_back(moment);
      continue;
    }
    keep_larger(same->current_mib, moment.current_mib);
    keep_larger(same->peak_mib, moment.peak_mib);
    keep_larger(same->current_total_mib, moment.current_total_mib);
    keep_larger(same->peak_total_mib, moment.peak_total_mib);
  }
}

double amount_in(const std::optional<Named<double>>& amounts, const std::string& kind) {
  if (!amounts) return 0;
  const auto found =
      std::find_if(amounts->begin(), amounts->end(), [&](const auto& entry) { return entry.first == kind; });
  return found == amounts->end() ? 0 : found->second;
}

// How far a rank stays below the largest of all ranks, which `largest` holds.
void note_spread(std::vector<MemoryAtMoment>& largest, std::vector<MemoryAtMoment> own) {
  std::map<std::string, std::size_t> seen;
  for (MemoryAtMoment& moment : largest) {
    const MemoryAtMoment* same = moment_in(own, moment.name, seen[moment.name]++);
    if (!same) continue;
    double spread = moment.current_total_mib.value_or(0) - same->current_total_mib.value_or(0);
    for (const auto& [kind, amount] : moment.current_mib.value_or(Named<double>{}))
      spread = std::max(spread, amount - amount_in(same->current_mib, kind));
    if (spread > 0 && spread > moment.rank_spread_mib.value_or(0)) moment.rank_spread_mib = spread;
  }
}

// If not every rank reports its steps separately, none are reported separately.
void keep_larger_samples(std::vector<double>& into, const std::vector<double>& other) {
  if (into.size() != other.size()) return into.clear();
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

void keep_larger_step_peak(std::optional<StepPeak>& into, const std::optional<StepPeak>& other) {
  if (!into || !other) {
    if (other) into = other;
    return;
  }
  into->mean = std::max(into->mean, other->mean);
  into->min = std::max(into->min, other->min);
  into->max = std::max(into->max, other->max);
  keep_larger_samples(into->samples, other->samples);
}

void take_larger(Memory& into, const Memory& other) {
  if (into.moments && other.moments)
    keep_larger_moments(*into.moments, *other.moments);
  else if (other.moments)
    into.moments = other.moments;
  keep_larger(into.peak_mib, other.peak_mib);
  keep_larger(into.peak_total_mib, other.peak_total_mib);
  keep_larger_step_peak(into.step_peak_mib, other.step_peak_mib);
  keep_larger(into.process_peak_mib, other.process_peak_mib);
  keep_larger(into.device_used_mib, other.device_used_mib);
  keep_larger(into.unexplained_mib, other.unexplained_mib);
}

void take_larger(ProcessorShares& into, const ProcessorShares& other) {
  keep_larger(into.window_s, other.window_s);
  keep_larger(into.others_share, other.others_share);
  keep_larger(into.steal_share, other.steal_share);
  keep_larger(into.wait_share, other.wait_share);
  keep_larger(into.stall_share, other.stall_share);
  keep_larger(into.foreign_wait_share, other.foreign_wait_share);
  keep_larger(into.foreign_stall_share, other.foreign_stall_share);
  keep_larger(into.busy_threads, other.busy_threads);
}

// The largest of an optional group of figures over the ranks.
template <class T>
std::optional<T> largest_of(const std::vector<const RankPart*>& ranks, std::optional<T> CaseResult::*group) {
  std::optional<T> largest;
  for (const RankPart* rank : ranks) {
    const std::optional<T>& own = rank->result.*group;
    if (!own) continue;
    if (largest)
      take_larger(*largest, *own);
    else
      largest = own;
  }
  return largest;
}

}  // namespace

void keep_larger(Named<double>& into, const Named<double>& other) {
  for (const auto& [name, value] : other) {
    const auto mine =
        std::find_if(into.begin(), into.end(), [&name = name](const auto& entry) { return entry.first == name; });
    if (mine == into.end())
      into.emplace_back(name, value);
    else if (value > mine->second)
      mine->second = value;
  }
}

void keep_larger(std::optional<Named<double>>& into, const std::optional<Named<double>>& other) {
  if (into && other)
    keep_larger(*into, *other);
  else if (other)
    into = other;
}

std::optional<Memory> largest_memory(const std::vector<const RankPart*>& ranks) {
  std::optional<Memory> largest = largest_of(ranks, &CaseResult::memory);
  if (!largest || !largest->moments) return largest;
  for (const RankPart* rank : ranks)
    if (rank->result.memory)
      note_spread(*largest->moments, rank->result.memory->moments.value_or(std::vector<MemoryAtMoment>{}));
  return largest;
}
std::optional<ProcessorShares> largest_contention(const std::vector<const RankPart*>& ranks) {
  return largest_of(ranks, &CaseResult::contention);
}

WallTimes largest_wall_times(const std::vector<const RankPart*>& ranks) {
  WallTimes largest;
  for (const RankPart* rank : ranks) {
    const WallTimes& own = rank->result.wall;
    if (own.setup_s.value_or(0) > largest.setup_s.value_or(0)) largest.setup_parts_s = own.setup_parts_s;
    if (own.verify_s.value_or(0) > largest.verify_s.value_or(0)) largest.verify_parts_s = own.verify_parts_s;
    for (const WallTimes::Row& row : WallTimes::all()) keep_larger(largest.*row.time, own.*row.time);
  }
  return largest;
}

std::optional<VerificationResult> merged_verification(const std::vector<const RankPart*>& ranks) {
  const auto first_with = [&](Verification status) {
    return std::find_if(ranks.begin(), ranks.end(), [&](const RankPart* rank) {
      return rank->result.verify && rank->result.verify->status == status;
    });
  };
  for (const Verification status : {Verification::wrong_result, Verification::not_checked, Verification::partial,
                                    Verification::as_case, Verification::by_account}) {
    const auto found = first_with(status);
    if (found == ranks.end()) continue;
    VerificationResult verify = *(*found)->result.verify;
    // What every rank leaves unchecked is said once and of all of them. The figures of what was checked may differ.
    const bool is_told_whole = status == Verification::wrong_result || status == Verification::not_checked;
    const bool everywhere = std::all_of(ranks.begin(), ranks.end(), [&](const RankPart* rank) {
      return rank->result.verify && rank->result.verify->status == verify.status &&
             (!is_told_whole || rank->result.verify->text == verify.text);
    });
    if (!everywhere || verify.status == Verification::wrong_result) verify.text = with_rank(**found, verify.text);
    return verify;
  }
  const auto found = first_with(Verification::ok);
  return found == ranks.end() ? std::nullopt : (*found)->result.verify;
}

std::string with_rank(const RankPart& rank, const std::string& text) {
  const std::string named = rank_name(rank.rank);
  const bool is_named =
      text.starts_with(named) && (text.size() == named.size() || text[named.size()] < '0' || text[named.size()] > '9');
  if (is_named) return text;
  return rank_name(rank.rank, rank.host) + ": " + text;
}

std::string device_id_of(const RankPart& rank) {
  if (!rank.device_id.empty()) return rank.device_id;
  const bool is_numbered = rank.result.device && rank.result.device->ordinal;
  return is_numbered ? std::to_string(*rank.result.device->ordinal) : std::string("null");
}

std::vector<std::string> device_notes(const std::vector<const RankPart*>& ranks) {
  Named<std::vector<std::int32_t>> names;                                           // in the order of the ranks
  std::map<std::pair<std::string, std::string>, std::pair<std::string, int>> gpus;  // host, id -> ordinal, ranks
  for (const RankPart* rank : ranks) {
    if (!rank->result.device) continue;
    const Device& device = *rank->result.device;
    auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.first == device.name; });
    if (known == names.end()) known = names.insert(names.end(), {device.name, {}});
    known->second.push_back(rank->rank);
    if (!is_gpu(device.kind)) continue;
    const std::string ordinal = device.ordinal ? std::to_string(*device.ordinal) : "null";
    ++gpus.try_emplace({rank->host, device_id_of(*rank)}, ordinal, 0).first->second.second;
  }
  std::vector<std::string> notes;
  if (names.size() > 1) {
    std::string text;
    for (const auto& [name, of] : names)
      text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", ranks_text(of), name);
    notes.push_back("the ranks' devices differ: " + text);
  }
  for (const auto& [gpu, sharing] : gpus)
    if (const auto& [ordinal, count] = sharing; count > 1)
      notes.push_back(
          fmt::format("{} ranks share GPU {} of host {}: good for correctness, not for bandwidth or overlap", count,
                      ordinal, gpu.first));
  return notes;
}

namespace {

// In what `own` differs from `first`: "libx.so (b2, not b1), liby.so (missing)". "" where they are the same. Of things
// that each rank may have for itself, those that both have.
std::string differing(const Named<std::string>& first, const Named<std::string>& own, bool each_has_all) {
  constexpr std::size_t most_shown = 4;
  std::vector<std::string> texts;
  for (const auto& [name, text] : own) {
    const std::string* const of_first = find(first, name);
    if (of_first && *of_first != text) texts.push_back(fmt::format("{} ({}, not {})", name, text, *of_first));
    if (!of_first && each_has_all) texts.push_back(fmt::format("{} (too)", name));
  }
  for (const auto& [name, text] : first)
    if (each_has_all && !find(own, name)) texts.push_back(fmt::format("{} (missing)", name));
  const std::size_t more = texts.size() - std::min(texts.size(), most_shown);
  texts.resize(texts.size() - more);
  return fmt::format("{}{}", fmt::join(texts, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::vector<std::string> provenance_notes(const std::vector<const RankPart*>& ranks) {
  struct List {
    const char* what;
    Named<std::string> CaseResult::*of;
    bool each_has_all;
  };
  // A rank with other chunks of a sequence, other matrices or other experts makes products of other shapes.
  constexpr List lists[] = {{"has loaded other libraries", &CaseResult::libraries, true},
                            {"has chosen other algorithms", &CaseResult::algorithms, false}};
  std::vector<std::string> notes;
  for (const List& list : lists) {
    const Named<std::string>& first = ranks.front()->result.*list.of;
    for (const RankPart* rank : ranks) {
      const Named<std::string>& own = rank->result.*list.of;
      const std::string text = first.empty() || own.empty() ? "" : differing(first, own, list.each_has_all);
      if (!text.empty())
        notes.push_back(fmt::format("rank {} {} than rank {}: {}", rank->rank, list.what, ranks.front()->rank, text));
    }
  }
  return notes;
}

void RankNotes::add(std::int32_t rank, const std::string& text) {
  const auto known = std::find_if(notes_.begin(), notes_.end(), [&](const auto& note) { return note.first == text; });
  if (known == notes_.end())
    notes_.push_back({text, {rank}});
  else if (known->second.back() != rank)
    known->second.push_back(rank);
}

std::vector<std::string> RankNotes::texts(std::int32_t first_rank) const {
  std::vector<std::string> texts;
  for (const auto& [text, ranks] : notes_)
    texts.push_back(ranks.front() == first_rank ? text : ranks_text(ranks) + ": " + text);
  return texts;
}

}  // namespace assay::host::record
