// The file of nccl-tests -J, whose rows have the columns of its printed table, and the lines of rccl-tests' JSON, one
// for each size and place.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "common/foreign_json.hpp"
#include "imports/making_records.hpp"
#include "imports/nccl_log.hpp"

namespace assay::host::imports {
namespace {

// "AllReduce" is "all_reduce", as the printed table's program is named.
std::string collective_of(const std::string& experiment) {
  if (experiment == "AlltoAll") return "alltoall";
  if (experiment == "SendRecv") return "sendrecv";
  std::string name;
  for (const char c : experiment) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_upper && !name.empty()) name += '_';
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

// As the printed table writes it.
std::string cell(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) continue;
    if (const auto number = number_of(*found)) return fmt::format("{}", *number);
    if (found->is_string()) {
      const std::string text = found->get<std::string>();
      const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
      return text.substr(begin);
    }
  }
  return "N/A";
}

bool is_true(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && (*found == true || *found == "true" || *found == "OK" || *found == "unchecked");
}

const Json& object_at(const Json& object, const char* key) {
  static const Json none = Json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : none;
}

std::vector<NcclRank> ranks_of(const Json& config) {
  std::vector<NcclRank> ranks;
  if (const auto devices = config.find("devices"); devices != config.end() && devices->is_array())
    for (const Json& device : *devices)
      ranks.push_back({.rank = count_of(number_at(device, "rank")).value_or(0),
                       .group = count_of(number_at(device, "group")).value_or(0),
                       .host = text_at(device, "hostname"),
                       .device = text_at(device, "device_info")});
  const std::int64_t own = std::max<std::int64_t>(
      1, count_of(number_at(config, "ngpus")).value_or(1) * count_of(number_at(config, "nthreads")).value_or(1));
  // A process has several ranks, and names the device of the first: 0, 2, 4 of two ranks each.
  std::int64_t all = own;
  if (!ranks.empty()) {
    bool are_first_ranks = true;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      are_first_ranks = are_first_ranks && ranks[i].rank == static_cast<std::int64_t>(i) * own;
    all = static_cast<std::int64_t>(ranks.size()) * (are_first_ranks ? own : 1);
  }
  constexpr std::int64_t beyond_any = 1 << 20;
  while (static_cast<std::int64_t>(ranks.size()) < std::min(all, beyond_any))
    ranks.push_back({.rank = static_cast<std::int64_t>(ranks.size()), .group = 0, .host = {}, .device = {}});
  return ranks;
}

ImportedRun read_file_of_j(const Json& root, const ImportOptions& options) {
  const auto results = root.find("results");
  if (results == root.end() || !results->is_array() || results->empty())
    throw ImportError("its list \"results\" has no row; did the program end before its first size?");
  const Json& config = object_at(root, "config");
  NcclLog log;
  NcclSection section;
  if (const auto args = root.find("args"); args != root.end() && args->is_array() && !args->empty())
    if (args->front().is_string()) section.collective = nccl_collective_in(args->front().get<std::string>());
  if (section.collective.empty()) section.collective = collective_of(text_at(results->front(), "experiment_name"));
  section.jobs.push_back(ranks_of(config));
  section.iterations = count_of(number_at(config, "iterations"));
  section.aggregated = count_of(number_at(config, "aggregated_iterations"));
  section.is_graph = number_at(config, "graph").value_or(0) != 0;
  section.columns.operation = {"size", "count", "type", "redop", "root"};
  section.columns.group = {"time", "algbw", "busbw", "#wrong"};
  for (const Json& result : *results) {
    std::vector<std::string> row;
    for (const char* key : {"size", "count", "type", "redop", "root"}) row.push_back(cell(result, {key}));
    for (const char* place : {"out_of_place", "in_place"}) {
      const Json& figures = result.is_object() ? object_at(result, place) : result;
      row.push_back(cell(figures, {"time", "cpu_time"}));
      row.push_back(cell(figures, {"alg_bw", "algbw"}));
      row.push_back(cell(figures, {"bus_bw", "busbw"}));
      row.push_back(cell(figures, {"nwrong"}));
    }
    section.rows.push_back(std::move(row));
  }
  if (const Json& verdict = object_at(root, "out_of_bounds"); !verdict.empty()) {
    section.out_of_bounds = count_of(number_at(verdict, "count")).value_or(0);
    section.has_failed = !is_true(verdict, "okay");
  }
  if (const Json& mean = object_at(root, "average_bus_bandwidth"); !mean.empty())
    section.is_below_bandwidth = !is_true(mean, "okay");
  if (const auto errors = root.find("errors"); errors != root.end() && errors->is_array() && !errors->empty())
    section.error = errors->front().dump();
  log.sections.push_back(std::move(section));
  ImportedRun run = run_of_nccl_log(log, options);
  // What changes how NCCL works is part of what was measured. The file has the whole environment, with what differs
  // from run to run and with what is nobody else's.
  std::size_t others = 0;
  if (const auto env = root.find("env"); env != root.end() && env->is_array())
    for (const Json& entry : *env) {
      const std::string text = entry.is_string() ? entry.get<std::string>() : "";
      const std::size_t end = text.find('=');
      if (!text.starts_with("NCCL_") || end == text.npos) {
        ++others;
        continue;
      }
      for (record::CaseRecord& record : run.records)
        record.identity.params.emplace_back(text.substr(0, end), text.substr(end + 1));
    }
  if (others > 0)
    run.notes.push_back(fmt::format("variables of the environment that are not NCCL's, left out: {}", others));
  if (const auto version = number_at(root, "nccl_version"))
    for (record::CaseRecord& record : run.records)
      record.result.libraries.emplace_back("nccl", fmt::format("{}", *version));
  return run;
}

record::CaseRecord record_of_line(const Json& line, std::size_t index) {
  record::CaseRecord record = new_record("nccl-tests:" + collective_of(text_at(line, "name")), index);
  record.identity.params = {{"bytes", size_at(line, "size")},
                            {"type", text_at(line, "type")},
                            {"in_place", number_at(line, "inPlace").value_or(0) != 0}};
  if (const std::string operation = text_at(line, "redop"); !operation.empty())
    record.identity.params.emplace_back("redop", operation);
  if (const auto gpus = count_of(number_at(line, "gpus"))) record.identity.ranks = static_cast<std::int32_t>(*gpus);
  record.result.device.emplace();
  record.result.device->kind = "hip";
  const auto wrong = number_at(line, "#wrong");
  if (wrong && *wrong > 0) {
    record.result.status = record::Status::wrong_result;
    record.result.reason = fmt::format("rccl-tests found {} wrong elements", *wrong);
    record.result.verify = record::VerificationResult{record::Verification::wrong_result, record.result.reason};
    return record;
  }
  if (wrong)
    record.result.verify = record::VerificationResult{record::Verification::ok, "by rccl-tests: no element is wrong"};
  const auto time_us = number_at(line, "time");
  if (!time_us || !is_time_ms(*time_us / 1e3)) {
    fail(record, "it has no time");
    return record;
  }
  record.result.phases.emplace();
  record.result.phases->emplace_back("step", step_of_mean(*time_us / 1e3, std::nullopt, std::nullopt));
  for (const auto& [key, name] : {std::pair{"algBw", "algbw_gbytes_per_s"}, std::pair{"busBw", "busbw_gbytes_per_s"}})
    if (const auto rate = number_at(line, key)) add_bandwidth(record, name, *rate);
  return record;
}

}  // namespace

ImportedRun read_nccl_json(std::string_view text, const ImportOptions& options) {
  if (const Json root = json_or_discarded(text); root.is_object() && root.contains("results"))
    return read_file_of_j(root, options);
  ImportedRun run;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r[],") == std::string::npos) continue;
    while (line.ends_with('\r') || line.ends_with(',')) line.pop_back();
    const Json row = parsed(line);
    if (text_at(row, "name").empty() || !number_at(row, "size"))
      throw ImportError(
          "a line has no name and size; expected the file of nccl-tests -J, or rccl-tests' lines of JSON");
    run.records.push_back(record_of_line(row, run.records.size()));
  }
  if (run.records.empty()) throw ImportError("there is no row of figures in it");
  set_axes(run.records);
  run.name = folder_name(options.name.empty() ? "rccl-tests" : options.name);
  return run;
}

}  // namespace assay::host::imports
