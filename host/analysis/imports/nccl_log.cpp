#include "imports/nccl_log.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "common/filter.hpp"
#include "common/text_format.hpp"
#include "imports/log_text.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

using Words = std::vector<std::string_view>;

bool is_count(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_figure(std::string_view word) { return word == "N/A" || number_in(std::string(word)).has_value(); }

std::optional<NcclColumns> columns_in(const Words& words) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "size") return std::nullopt;
  const auto is_time = [](std::string_view word) { return word == "time" || word == "cputime"; };
  NcclColumns columns;
  std::size_t i = 1;
  for (; i < words.size() && !is_time(words[i]); ++i) columns.operation.emplace_back(words[i]);
  for (; i < words.size() && (columns.group.empty() || words[i] != columns.group[0]); ++i)
    columns.group.emplace_back(words[i]);
  if (columns.group.empty() || i + columns.group.size() > words.size() ||
      !std::equal(columns.group.begin(), columns.group.end(), words.begin() + static_cast<std::ptrdiff_t>(i)))
    return std::nullopt;
  columns.trailing_words = words.size() - i - columns.group.size();
  return columns;
}

// The line below the names has the units, and the form of a time stamp word by word: "%Y-%m-%d %H:%M:%S".
void read_units(const Words& words, NcclColumns& columns) {
  const auto forms = std::count_if(words.begin(), words.end(), [](std::string_view w) { return w.starts_with('%'); });
  if (columns.trailing_words > 0 && forms > 0) columns.trailing_words = static_cast<std::size_t>(forms);
}

std::optional<std::int64_t> number_after(const Words& words, std::string_view word, std::string_view before = "") {
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    if (words[i] == word &&
        (before.empty() ? words[i - 1] != "warmup" && words[i - 1] != "agg" : words[i - 1] == before))
      return count_of(number_in(std::string(words[i + 1])));
  return std::nullopt;
}

// "#  Rank  0 Group  0 Pid 798 on HOST device 0 [0x18] NVIDIA H100 80GB HBM3"
NcclRank rank_in(std::string_view line, const Words& words) {
  NcclRank rank;
  rank.rank = number_after(words, "Rank", "#").value_or(0);
  rank.group = number_after(words, "Group").value_or(0);
  const auto on = std::find(words.begin(), words.end(), "on");
  if (on != words.end() && on + 1 != words.end()) rank.host = std::string(*(on + 1));
  if (const std::size_t bracket = line.find("] "); bracket != line.npos) rank.device = line.substr(bracket + 2);
  while (rank.device.ends_with(' ')) rank.device.pop_back();
  return rank;
}

// A size, a count and a type, somewhere in a line that is no whole row.
std::optional<std::string> torn_row_in(const Words& words) {
  static const std::set<std::string_view> types{"int8",   "uint8",  "int32",    "uint32",  "int64",
                                                "uint64", "half",   "float",    "double",  "bfloat16",
                                                "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"};
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    std::string_view size = words[i];
    // What was printed before may end right at the size.
    const std::size_t digits = size.find_last_not_of("0123456789");
    if (digits != size.npos && i == 0) size.remove_prefix(digits + 1);
    if (is_count(size) && is_count(words[i + 1]) && types.contains(words[i + 2])) return std::string(size) + " bytes";
  }
  return std::nullopt;
}

// The parts of one program's output, line by line. Processes whose lines a launcher marks have one each.
class Reader {
 public:
  void take(std::string_view line, const Words& words) {
    if (words[0].front() == '#') return take_comment(line, words);
    const bool is_failure =
        has(line, "Test NCCL failure") || has(line, "Test CUDA failure") || has(line, "Test failure");
    if (is_failure) return note_error(line);
    if (is_head_) return;
    NcclSection& section = sections_.back();
    const bool is_row = words.size() == section.columns.words() && is_whole(section.columns, words);
    if (is_row) {
      section.rows.emplace_back(words.begin(), words.end());
      open_tear_ = false;
    } else if (const auto torn = torn_row_in(words)) {
      section.torn.push_back(*torn);
      open_tear_ = true;
    } else if (words.size() >= 4 && std::all_of(words.begin(), words.end(), is_figure)) {
      // The rest of a torn row, or of one whose beginning nobody has.
      if (!open_tear_) section.torn.push_back("the end of a row: '" + fit_to_width(std::string(line), 40) + "'");
      open_tear_ = false;
    }
  }

  void finish(NcclLog& log) {
    close_head();
    for (NcclSection& section : sections_) log.sections.push_back(std::move(section));
    log.begun.insert(log.begun.end(), begun_.begin(), begun_.end());
    if (!loose_error_.empty()) log.errors.push_back(loose_error_);
  }

 private:
  struct Head {  // of a job that has not come to its columns
    std::string collective, error;
    bool has_settings = false;
    std::vector<NcclRank> ranks;
    std::optional<std::int64_t> iterations, aggregated;
    bool is_graph = false;
  };

  static bool is_whole(const NcclColumns& columns, const Words& words) {
    const std::size_t first = columns.operation.size();
    if (!is_count(words[0]) || first < 2 || !is_count(words[1])) return false;
    return std::all_of(words.begin() + static_cast<std::ptrdiff_t>(first),
                       words.begin() + static_cast<std::ptrdiff_t>(first + 2 * columns.group.size()), is_figure);
  }

  void take_comment(std::string_view line, const Words& words) {
    if (has(line, "Collective test starting")) {
      const std::string name = nccl_collective_in(line);
      Head& head = head_for([&](const Head& last) { return last.collective.empty() && !last.has_settings; });
      head.collective = name;
    } else if (has(line, "warmup iters:")) {
      Head& head = head_for([&](const Head& last) { return !last.has_settings; });
      head.has_settings = true;
      head.iterations = number_after(words, "iters:");
      head.aggregated = number_after(words, "iters:", "agg");
      head.is_graph = number_after(words, "graph:").value_or(0) > 0;
    } else if (words.size() > 2 && words[1] == "Rank" && is_count(words[2])) {
      add_rank(rank_in(line, words));
    } else if (auto columns = columns_in(words)) {
      take_columns(std::move(*columns));
    } else if (!is_head_ && words.size() > 1 && words[1] == "(B)") {
      read_units(words, sections_.back().columns);
    } else if (!sections_.empty() && !is_head_ && has(line, "Out of bounds values")) {
      NcclSection& section = sections_.back();
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == ":")
          if (const auto count = count_of(number_in(std::string(words[i + 1]))))
            section.out_of_bounds = section.out_of_bounds.value_or(0) + *count;
      section.has_failed = section.has_failed || has(line, "FAILED");
    } else if (!sections_.empty() && !is_head_ && has(line, "Avg bus bandwidth")) {
      sections_.back().is_below_bandwidth = sections_.back().is_below_bandwidth || has(line, "FAILED");
    }
  }

  // The head that a line belongs to: the last one for which `fits` holds, or a new one.
  template <typename Fits>
  Head& head_for(Fits fits) {
    if (!is_head_) {
      close_section();
      is_head_ = true;
      heads_.clear();
    }
    const auto found = std::find_if(heads_.rbegin(), heads_.rend(), fits);
    return found == heads_.rend() ? heads_.emplace_back() : *found;
  }

  void add_rank(NcclRank rank) {
    Head& head = head_for([&](const Head& each) {
      return std::none_of(each.ranks.begin(), each.ranks.end(),
                          [&](const NcclRank& other) { return other.rank == rank.rank; });
    });
    head.ranks.push_back(std::move(rank));
  }

  // Each job prints its columns. Those before the last heads are of jobs that had ended.
  void take_columns(NcclColumns columns) {
    if (!is_head_ && !sections_.empty() && sections_.back().columns == columns &&
        columns_seen_ < sections_.back().jobs.size()) {
      ++columns_seen_;  // of a job beside the first one, whose head stands above
      return;
    }
    NcclSection section;
    section.columns = std::move(columns);
    if (!heads_.empty() && is_head_) {
      const Head& last = heads_.back();
      section.collective = last.collective;
      section.iterations = last.iterations;
      section.aggregated = last.aggregated;
      section.is_graph = last.is_graph;
      for (const Head& head : heads_)
        if (head.collective == last.collective)
          section.jobs.push_back(head.ranks);
        else
          begun_.push_back(head.collective);
    }
    columns_seen_ = 1;
    sections_.push_back(std::move(section));
    is_head_ = false;
    open_tear_ = false;
  }

  // Jobs that began and did not print their columns have no rows.
  void close_section() {
    if (sections_.empty()) return;
    NcclSection& section = sections_.back();
    if (columns_seen_ >= section.jobs.size()) return;
    section.lost_jobs = section.jobs.size() - columns_seen_;
    section.jobs.erase(section.jobs.begin(), section.jobs.begin() + static_cast<std::ptrdiff_t>(section.lost_jobs));
  }

  void close_head() {
    if (!is_head_) return close_section();
    for (const Head& head : heads_) begun_.push_back(head.collective + (head.error.empty() ? "" : ": " + head.error));
  }

  void note_error(std::string_view line) {
    // A rank that prints no head may be the one that says why.
    std::string& error = !is_head_ ? sections_.back().error : heads_.empty() ? loose_error_ : heads_.back().error;
    if (error.empty()) error = fit_to_width(one_line(line), 120);
  }

  bool is_head_ = true, open_tear_ = false;
  std::size_t columns_seen_ = 0;  // of the last section
  std::vector<Head> heads_;
  std::vector<NcclSection> sections_;
  std::vector<std::string> begun_;
  std::string loose_error_;
};

}  // namespace

NcclLog read_nccl_log(std::string_view text) {
  NcclLog log;
  std::map<std::string, Reader, std::less<>> readers;
  Words words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const LogLine line = without_prefixes(text.substr(begin, end - begin));
    begin = end + 1;
    split_words(line.text, words);
    if (words.empty()) continue;
    if (log.started.empty()) log.started = line.time;
    auto reader = readers.find(line.source);
    if (reader == readers.end()) reader = readers.emplace(std::string(line.source), Reader()).first;
    reader->second.take(line.text, words);
  }
  for (auto& [source, reader] : readers) reader.finish(log);
  return log;
}

std::string nccl_collective_in(std::string_view text) {
  const std::size_t end = text.find("_perf");
  if (end == text.npos) return "";
  std::size_t begin = end;
  while (begin > 0 && (std::islower(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_')) --begin;
  return std::string(text.substr(begin, end - begin));
}

}  // namespace assay::host::imports
