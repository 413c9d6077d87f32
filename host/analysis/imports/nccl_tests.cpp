// What the programs of nccl-tests print: a line of `#` for each rank and for the columns, then a row for each size,
// with the mean time of an operation in microseconds out of place and in place.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "common/filter.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The columns of the table, by its line of names: those of the operation, then two groups that begin with `time`.
struct Columns {
  std::vector<std::string> operation;  // "size", "count", "type", "redop", "root"
  std::vector<std::string> group;      // "time", "algbw", "busbw", "#wrong"
};

std::optional<Columns> columns_in(const std::vector<std::string>& words) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "size") return std::nullopt;
  Columns columns;
  std::size_t i = 1;
  for (; i < words.size() && words[i] != "time"; ++i) columns.operation.push_back(words[i]);
  for (; i < words.size() && (columns.group.empty() || words[i] != "time"); ++i) columns.group.push_back(words[i]);
  return columns.group.empty() ? std::nullopt : std::optional(columns);
}

struct Preamble {
  std::string collective, device, host;
  int ranks = 0;
  std::optional<std::int64_t> iterations;
  Columns columns;
};

// "all_reduce" of "all_reduce_perf", with whatever stands around it.
std::string collective_in(const std::string& text) {
  const std::size_t end = text.find("_perf");
  if (end == std::string::npos) return "";
  std::size_t begin = end;
  while (begin > 0 && (std::islower(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_')) --begin;
  return text.substr(begin, end - begin);
}

void read_comment(const std::string& line, const std::vector<std::string>& words, Preamble& preamble) {
  if (const auto columns = columns_in(words)) preamble.columns = *columns;
  if (preamble.collective.empty() && line.find("starting") != std::string::npos)
    preamble.collective = collective_in(line);
  const auto after = [&words](const char* word) {
    const auto found = std::find(words.begin(), words.end(), word);
    return found == words.end() || found + 1 == words.end() ? std::string() : *(found + 1);
  };
  if (words.size() > 2 && words[1] == "Rank") {
    ++preamble.ranks;
    // "... on HOST device 0 [0x18] NVIDIA H100 80GB HBM3"
    if (preamble.host.empty()) preamble.host = after("on");
    if (const std::size_t bracket = line.find("] "); preamble.device.empty() && bracket != std::string::npos)
      preamble.device = line.substr(bracket + 2);
  }
  if (line.find("warmup iters:") != std::string::npos)
    for (std::size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == "iters:" && words[i - 1] != "warmup" && words[i - 1] != "agg")
        preamble.iterations = count_of(number_in(words[i + 1]));
}

record::CaseRecord record_of_group(const Preamble& preamble, const std::vector<std::string>& words, bool in_place,
                                   std::size_t index) {
  record::CaseRecord record = new_record("nccl-tests:" + preamble.collective, index);
  const auto in_operation = [&](const char* name) -> std::string {
    const auto& names = preamble.columns.operation;
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? "" : words[static_cast<std::size_t>(found - names.begin())];
  };
  const std::size_t first = preamble.columns.operation.size() + (in_place ? preamble.columns.group.size() : 0);
  const auto in_group = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names)
      for (std::size_t i = 0; i < preamble.columns.group.size(); ++i)
        if (preamble.columns.group[i] == name) return words[first + i];
    return "";
  };
  record.identity.ranks = preamble.ranks;
  record.identity.params = {{"bytes", count_of(number_in(in_operation("size"))).value_or(0)},
                            {"type", in_operation("type")},
                            {"in_place", in_place}};
  for (const char* name : {"redop", "root"})
    if (const std::string value = in_operation(name); !value.empty()) record.identity.params.emplace_back(name, value);

  const std::string wrong = in_group({"#wrong", "error"});
  if (const auto count = number_in(wrong); count && in_group({"#wrong"}) == wrong) {
    if (*count > 0) {
      record.result.status = record::Status::wrong_result;
      record.result.reason = fmt::format("nccl-tests found {} wrong elements", wrong);
      record.result.verify = record::VerificationResult{record::Verification::wrong_result, record.result.reason};
      return record;  // a number only if correct
    }
    record.result.verify = record::VerificationResult{record::Verification::ok, "by nccl-tests: no element is wrong"};
  }
  const auto time_us = number_in(in_group({"time"}));
  if (!time_us || !(*time_us > 0)) {
    record.result.status = record::Status::failed;
    record.result.reason = fmt::format("the time is '{}'", in_group({"time"}));
    return record;
  }
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step_of_mean(*time_us / 1e3, std::nullopt, preamble.iterations));
  for (const char* name : {"algbw", "busbw"})
    if (const auto bandwidth = number_in(in_group({name})))
      add_metric(record, std::string(name) + "_gbytes_per_s", *bandwidth, "GB/s", Direction::higher_is_better);
  return record;
}

}  // namespace

ImportedRun read_nccl_tests(std::string_view text, const ImportOptions& options) {
  Preamble preamble;
  ImportedRun run;
  std::istringstream stream{std::string(text)};
  preamble.collective = options.name;
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0].front() == '#') {
      read_comment(line, words, preamble);
      continue;
    }
    const std::size_t whole = preamble.columns.operation.size() + 2 * preamble.columns.group.size();
    // Between the rows other programs may speak: NCCL itself, mpirun.
    if (!preamble.columns.group.empty() && words.size() == whole && count_of(number_in(words[0])))
      rows.push_back(words);
  }
  if (preamble.columns.group.empty())
    throw ImportError(
        "there is no line of columns; expected the whole output of a program of nccl-tests, from its first line");
  if (preamble.collective.empty()) preamble.collective = collective_in(options.file_name);
  if (preamble.collective.empty())
    throw ImportError(
        "it does not say which collective it is of; give --name all_reduce, or a file named all_reduce_perf.txt");
  if (rows.empty()) throw ImportError("there is no row of figures; did the program end before its first size?");
  if (preamble.ranks == 0)
    throw ImportError("there is no line of a rank ('#  Rank  0 ...'); expected the whole output, from its first line");
  for (const auto& words : rows)
    for (const bool in_place : {false, true})
      run.records.push_back(record_of_group(preamble, words, in_place, run.records.size()));
  for (record::CaseRecord& record : run.records) {
    record.result.device.emplace();
    record.result.device->kind = "cuda";
    record.result.device->name = preamble.device;
  }
  set_axes(run.records);
  run.host = preamble.host;
  run.name = folder_name("nccl-tests-" + preamble.collective);
  return run;
}

}  // namespace assay::host::imports
