#include "results/rank_parts.hpp"

#include "common/rank_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace assay::host {
namespace {

void take_larger(Record& into, const Record& from);

// The `occurrence`-th (from 0) of the moments with this name; null when there are fewer.
Record* moment_in(Record& moments, const Record& name, std::size_t occurrence) {
  for (Record& moment : moments)
    if (value_at(moment, "name") == name && occurrence-- == 0) return &moment;
  return nullptr;
}

void take_larger_moments(Record& into, const Record& from) {
  std::map<std::string, std::size_t> seen;
  for (const Record& moment : from) {
    const Record& name = value_at(moment, "name");
    if (Record* same = moment_in(into, name, seen[name.dump()]++))
      take_larger(*same, moment);
    else
      into.push_back(moment);
  }
}

void take_larger(Record& into, const Record& from) {
  for (const auto& [key, value] : from.items()) {
    if (!into.contains(key)) {
      into[key] = value;
      continue;
    }
    Record& mine = into[key];
    if (value.is_object() && mine.is_object())
      take_larger(mine, value);
    else if (value.is_array() && mine.is_array())
      take_larger_moments(mine, value);
    else if (value.is_number() && mine.is_number() && value.get<double>() > mine.get<double>())
      mine = value;
  }
}

std::string joined_ranks(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace

const Record& value_at(const Record& json, const std::string& key) {
  static const Record none;
  if (!json.is_object()) return none;
  const auto it = json.find(key);
  return it == json.end() ? none : *it;
}

std::vector<std::string> names_in(const std::vector<const RankPart*>& ranks, const char* group) {
  std::vector<std::string> names;
  for (const RankPart* rank : ranks)
    for (const auto& item : value_at(rank->part, group).items())
      if (std::find(names.begin(), names.end(), item.key()) == names.end()) names.push_back(item.key());
  return names;
}

Record largest_of(const std::vector<const RankPart*>& ranks, const char* group) {
  Record largest;
  for (const RankPart* rank : ranks) {
    const Record& own = value_at(rank->part, group);
    if (largest.is_null())
      largest = own;
    else
      take_larger(largest, own);
  }
  return largest;
}

Record merged_verify(const std::vector<const RankPart*>& ranks) {
  const auto first_with = [&](const char* status) {
    return std::find_if(ranks.begin(), ranks.end(), [&](const RankPart* rank) {
      return value_at(value_at(rank->part, "verify"), "status") == status;
    });
  };
  for (const char* status : {"wrong_result", "not checked"}) {
    const auto found = first_with(status);
    if (found == ranks.end()) continue;
    Record verify = (*found)->part["verify"];
    // What every rank leaves unchecked is said once and of all of them.
    const bool everywhere = std::all_of(ranks.begin(), ranks.end(),
                                        [&](const RankPart* rank) { return value_at(rank->part, "verify") == verify; });
    if (!everywhere || verify["status"] == "wrong_result")
      verify["text"] = with_rank(**found, verify.value("text", ""));
    return verify;
  }
  const auto found = first_with("ok");
  return found == ranks.end() ? Record() : (*found)->part["verify"];
}

std::string with_rank(const RankPart& rank, const std::string& text) {
  const std::string named = rank_name(rank.rank);
  const bool is_named =
      text.starts_with(named) && (text.size() == named.size() || text[named.size()] < '0' || text[named.size()] > '9');
  if (is_named) return text;
  return rank_name(rank.rank, rank.host) + ": " + text;
}

std::vector<std::string> device_notes(const std::vector<const RankPart*>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> names;                      // in the order of the ranks
  std::map<std::pair<std::string, std::string>, std::pair<std::string, int>> gpus;  // host, id -> ordinal, ranks
  for (const RankPart* rank : ranks) {
    const Record& device = value_at(rank->part, "device");
    if (!device.is_object()) continue;
    const std::string name = device.value("name", "");
    auto known = std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.first == name; });
    if (known == names.end()) known = names.insert(names.end(), {name, {}});
    known->second.push_back(rank->rank);
    const std::string ordinal = value_at(device, "ordinal").dump();
    if (device.value("kind", "") == "cuda")
      ++gpus.try_emplace({rank->host, rank->device_id.empty() ? ordinal : rank->device_id}, ordinal, 0)
            .first->second.second;
  }
  std::vector<std::string> notes;
  if (names.size() > 1) {
    std::string text;
    for (const auto& [name, of] : names)
      text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", joined_ranks(of), name);
    notes.push_back("the ranks' devices differ: " + text);
  }
  for (const auto& [gpu, sharing] : gpus)
    if (const auto& [ordinal, count] = sharing; count > 1)
      notes.push_back(
          fmt::format("{} ranks share GPU {} of host {}: good for correctness, says nothing about bandwidth or overlap",
                      count, ordinal, gpu.first));
  return notes;
}

void RankNotes::add(int rank, const std::string& text) {
  const auto known = std::find_if(notes_.begin(), notes_.end(), [&](const auto& note) { return note.first == text; });
  if (known == notes_.end())
    notes_.push_back({text, {rank}});
  else if (known->second.back() != rank)
    known->second.push_back(rank);
}

Record RankNotes::texts(int first_rank) const {
  Record texts = Record::array();
  for (const auto& [text, ranks] : notes_)
    texts.push_back(ranks.front() == first_rank ? text : joined_ranks(ranks) + ": " + text);
  return texts;
}

}  // namespace assay::host
