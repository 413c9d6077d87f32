#include "run/rank_report.hpp"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "common/rank_name.hpp"
#include "record/json.hpp"
#include "record/merge.hpp"
#include "run/thread_plan.hpp"
#include "worker/answer.hpp"

namespace assay::host::run {
namespace {

using Json = nlohmann::ordered_json;
using record::Status;

constexpr double mib = 1024.0 * 1024.0;

record::Status status_after(launch::WorkerStatus status) {
  switch (status) {
    case launch::WorkerStatus::finished: return Status::ok;
    case launch::WorkerStatus::timeout: return Status::timeout;
    case launch::WorkerStatus::crashed: return Status::crashed;
    case launch::WorkerStatus::oom: return Status::oom;
    case launch::WorkerStatus::interrupted:
    case launch::WorkerStatus::ended: return Status::failed;  // it was asked to end, and left no result
  }
  return Status::failed;
}

record::CaseResult result_of_lost_worker(const launch::WorkerOutcome& outcome) {
  record::CaseResult result;
  result.status = status_after(outcome.status);
  result.reason = outcome.reason;
  result.stage = outcome.where.stage;
  result.phase = outcome.phase;
  result.part = outcome.where.part;
  result.step = static_cast<std::int64_t>(outcome.where.step);
  record::Memory& memory = result.memory.emplace();
  memory.peak_mib.emplace();
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (outcome.where.peak_bytes[k] > 0)
      memory.peak_mib->emplace_back(memory_kind_name(k), static_cast<double>(outcome.where.peak_bytes[k]) / mib);
  memory.process_peak_mib = static_cast<double>(outcome.peak_rss_bytes) / mib;
  result.wall.case_s = outcome.wall_s;
  result.log_tail = outcome.log_tail;
  return result;
}

// The worker's answer, or what is known of a worker that gave none.
worker::CaseAnswer answer_of(const launch::WorkerOutcome& outcome) {
  if (outcome.events.result &&
      (outcome.status == launch::WorkerStatus::finished || outcome.status == launch::WorkerStatus::ended))
    if (auto answer = worker::case_answer_from(*outcome.events.result)) {
      for (const std::string& event : outcome.events.others)
        if (auto teardown = worker::teardown_from(event)) worker::add_teardown(answer->result, std::move(*teardown));
      // The worker knows of the largest process that it has waited for, and of none that still runs.
      if (answer->result.memory && outcome.peak_with_children_bytes > 0)
        answer->result.memory->process_peak_mib = std::max(answer->result.memory->process_peak_mib.value_or(0),
                                                           static_cast<double>(outcome.peak_with_children_bytes) / mib);
      return std::move(*answer);
    }
  worker::CaseAnswer lost{result_of_lost_worker(outcome)};
  lost.asked_to_end = outcome.status == launch::WorkerStatus::crashed && outcome.signal == SIGTERM;
  return lost;
}

// A rank that has reported its failure itself does not know the end of its log, nor does one that ended badly after its
// result.
void add_log_tail(record::CaseResult& result, const launch::WorkerOutcome& worker) {
  if ((!result.is_ok() || !worker.end_note.empty()) && result.log_tail.empty()) result.log_tail = worker.log_tail;
}

// Whether the culprit of one machine explains that of another. Ranks that wait for one another are overdue
// together: the one that stopped first has kept the others.
bool explains(const RankReport& a, const RankReport& b) {
  if (*a.failure != *b.failure) return *a.failure < *b.failure;
  return std::tuple(a.waited, a.last_sign_s) < std::tuple(b.waited, b.last_sign_s);
}

// Finds the rank that the record speaks of when not all are ok: the most likely culprit of all machines, else the
// first rank that is not ok.
std::size_t culprit_among(const std::vector<RankReport>& reports) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (reports[i].failure && (!found || explains(reports[i], reports[*found]))) found = i;
  if (found) return *found;
  return static_cast<std::size_t>(std::find_if_not(reports.begin(), reports.end(), is_ok) - reports.begin());
}

}  // namespace

bool is_ok(const RankReport& report) { return report.result.is_ok(); }

std::vector<RankReport> reports_of(const launch::GroupOutcome& outcome, const std::vector<worker::CaseSpec>& here,
                                   std::chrono::steady_clock::time_point begin) {
  const std::chrono::nanoseconds begin_ns = begin.time_since_epoch();  // the board's clock is the same, on Linux
  std::vector<RankReport> reports;
  for (std::size_t i = 0; i < outcome.workers.size(); ++i) {
    const launch::WorkerOutcome& worker = outcome.workers[i];
    const worker::RankSpec& rank = here[i].ranks;
    worker::CaseAnswer answer = answer_of(worker);
    RankReport report{rank.rank, rank.host_name,     std::move(answer.result), std::nullopt, worker.where.waits,
                      0,         answer.asked_to_end};
    if (worker.where.last_beat_ns > 0)
      report.last_sign_s =
          1e-9 * static_cast<double>(static_cast<std::int64_t>(worker.where.last_beat_ns) - begin_ns.count());
    // A rank that is alone, and came to its end at its very deadline, has its result.
    const bool made_it = here[i].is_alone() && worker.status == launch::WorkerStatus::finished;
    if (outcome.failure && outcome.failure->worker == i && !made_it) {
      report.failure = outcome.failure->kind;
      // Whatever it said after it was asked to end is not why it was ended.
      if (*report.failure == launch::FailureKind::silent || *report.failure == launch::FailureKind::overdue) {
        report.result = result_of_lost_worker(worker);
        report.asked_to_end = false;
        report.result.status = record::Status::timeout;
        if (worker.status != launch::WorkerStatus::timeout) report.result.reason = outcome.failure->reason;
      }
    }
    if (!here[i].is_alone() || !worker.end_note.empty()) add_log_tail(report.result, worker);
    for (const std::string* note : {&worker.end_note, &worker.left_note, &worker.log_note})
      if (!note->empty()) report.result.note(*note);
    add_threads(here[i], report.result);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string named_reason(const RankReport& report) {
  return rank_name(report.rank, report.host) + ": " + report.result.reason;
}

std::string to_text(const RankReport& report) {
  Json json = {{"rank", report.rank},
               {"host", report.host},
               {"result", record::to_json(report.result)},
               {"waited", report.waited},
               {"last_sign_s", report.last_sign_s},
               {"asked_to_end", report.asked_to_end}};
  if (report.failure) json.emplace("failure", static_cast<int>(*report.failure));
  return record::json_text(json);
}

RankReport rank_report_from_text(const std::string& text) {
  const Json json = Json::parse(text);
  std::optional<record::CaseResult> result = record::result_from_json(json.at("result"));
  if (!result) throw std::invalid_argument("a report without a result: " + text);
  RankReport report{json.at("rank"),   json.at("host"),        std::move(*result),     {},
                    json.at("waited"), json.at("last_sign_s"), json.at("asked_to_end")};
  if (json.contains("failure")) report.failure = static_cast<launch::FailureKind>(json.at("failure").get<int>());
  return report;
}

launch::ResultVerdict judge_result(const std::string& result_line) {
  const std::optional<worker::CaseAnswer> answer = worker::case_answer_from(result_line);
  if (!answer || answer->result.is_ok()) return {};
  return {answer->of_another_rank ? launch::ResultVerdict::Kind::victim : launch::ResultVerdict::Kind::failed,
          answer->result.reason};
}

bool is_asked_to_end(const std::vector<RankReport>& reports) {
  const std::size_t culprit = culprit_among(reports);
  return culprit < reports.size() && reports[culprit].asked_to_end;
}

record::CaseResult combine(std::vector<RankReport> reports, double confidence) {
  const bool all_ok = std::all_of(reports.begin(), reports.end(), is_ok);
  const std::size_t culprit = all_ok ? 0 : culprit_among(reports);
  std::vector<record::RankPart> parts;
  for (RankReport& report : reports) {
    std::string device_id = report.result.device ? report.result.device->bus_address : std::string();
    parts.push_back({report.rank, std::move(report.host), std::move(report.result), std::move(device_id)});
  }
  return all_ok ? record::merge_ranks(parts, confidence) : record::merge_failed_ranks(parts, culprit);
}

}  // namespace assay::host::run
