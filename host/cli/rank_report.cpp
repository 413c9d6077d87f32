#include "cli/rank_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "results/merge_ranks.hpp"

namespace assay::host {
namespace {

Record part_of_lost_worker(const WorkerOutcome& outcome) {
  Record part = {{"status", outcome.status == WorkerStatus::ended ? "failed" : name_of(outcome.status)},
                 {"reason", outcome.reason},
                 {"stage", name_of(outcome.where.stage)},
                 {"phase", outcome.phase},
                 {"step", outcome.where.step}};
  Record held = Record::object();
  for (std::size_t k = 0; k < memory_kind_count; ++k)
    if (outcome.where.peak_bytes[k] > 0)
      held[memory_kind_name(k)] = static_cast<double>(outcome.where.peak_bytes[k]) / (1024.0 * 1024.0);
  part["memory"] = {{"peak_mib", held},
                    {"process_peak_mib", static_cast<double>(outcome.peak_rss_bytes) / (1024.0 * 1024.0)}};
  part["wall_s"] = {{"case", outcome.wall_s}};
  if (!outcome.log_tail.empty()) part["log_tail"] = outcome.log_tail;
  return part;
}

void add_log_note(Record& part, const WorkerOutcome& worker) {
  if (!worker.log_note.empty()) part["notes"].push_back(worker.log_note);
}

std::optional<Record> record_in(const std::string& result_line) {
  Record event = Record::parse(result_line, nullptr, false);
  if (!event.is_object() || !event.contains("record")) return std::nullopt;
  return event["record"];
}

// The record names rank and host in front of the reason; the group that was watched named the rank alone.
void drop_rank(Record& part, std::int32_t rank) {
  const std::string named = fmt::format("rank {}: ", rank);
  if (const std::string reason = part.value("reason", ""); reason.starts_with(named))
    part["reason"] = reason.substr(named.size());
}

// A rank that has told of its failure by itself does not know the end of its log.
void add_log_tail(Record& part, const WorkerOutcome& worker) {
  if (part.value("status", "") != "ok" && !part.contains("log_tail") && !worker.log_tail.empty())
    part["log_tail"] = worker.log_tail;
}

bool is_ok(const RankReport& report) { return report.part.value("status", "") == "ok"; }

// Of two machines' culprits, the one that explains the other. Ranks that wait for one another are overdue together: the
// one that stopped first has kept the others.
bool explains(const RankReport& a, const RankReport& b) {
  if (*a.failure != *b.failure) return *a.failure < *b.failure;
  return std::tuple(a.waited, a.last_sign_s) < std::tuple(b.waited, b.last_sign_s);
}

// The rank that the record speaks of when not all are ok: of the machines' culprits the most telling one, else the
// first rank that is not ok.
std::size_t culprit_among(const std::vector<RankReport>& reports) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (reports[i].failure && (!found || explains(reports[i], reports[*found]))) found = i;
  if (found) return *found;
  return static_cast<std::size_t>(std::find_if_not(reports.begin(), reports.end(), is_ok) - reports.begin());
}

}  // namespace

Record part_of(const WorkerOutcome& outcome) {
  if (outcome.events.result && (outcome.status == WorkerStatus::finished || outcome.status == WorkerStatus::ended))
    if (auto record = record_in(*outcome.events.result)) return std::move(*record);
  return part_of_lost_worker(outcome);
}

std::vector<RankReport> reports_of(const GroupOutcome& outcome, const std::vector<std::int32_t>& ranks,
                                   const std::string& host, std::chrono::steady_clock::time_point begin) {
  const std::chrono::nanoseconds begin_ns = begin.time_since_epoch();  // the board's clock is the same, on Linux
  std::vector<RankReport> reports;
  for (std::size_t i = 0; i < outcome.workers.size(); ++i) {
    const WorkerOutcome& worker = outcome.workers[i];
    RankReport report{ranks[i], host, part_of(worker), std::nullopt, worker.where.waits, 0};
    if (worker.where.last_beat_ns > 0)
      report.last_sign_s =
          1e-9 * static_cast<double>(static_cast<std::int64_t>(worker.where.last_beat_ns) - begin_ns.count());
    if (outcome.failure && outcome.failure->worker == i) {
      report.failure = outcome.failure->kind;
      // What it may have said after it was told to end is not why it was ended.
      if (*report.failure == FailureKind::silent || *report.failure == FailureKind::overdue) {
        report.part = part_of_lost_worker(worker);
        report.part["status"] = "timeout";
        report.part["reason"] = outcome.failure->reason;
      }
    }
    drop_rank(report.part, report.rank);
    add_log_tail(report.part, worker);
    add_log_note(report.part, worker);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string named_reason(const RankReport& report) {
  return fmt::format("rank {} on {}: {}", report.rank, report.host, report.part.value("reason", ""));
}

Record to_record(const RankReport& report) {
  Record record = {{"rank", report.rank},
                   {"host", report.host},
                   {"part", report.part},
                   {"waited", report.waited},
                   {"last_sign_s", report.last_sign_s}};
  if (report.failure) record["failure"] = static_cast<int>(*report.failure);
  return record;
}

RankReport rank_report_from(const Record& record) {
  RankReport report{record.at("rank").get<std::int32_t>(), record.at("host").get<std::string>(),  record.at("part"), {},
                    record.at("waited").get<bool>(),       record.at("last_sign_s").get<double>()};
  if (record.contains("failure")) report.failure = static_cast<FailureKind>(record["failure"].get<int>());
  return report;
}

ResultVerdict judge_result(const std::string& result_line) {
  const std::optional<Record> record = record_in(result_line);
  if (!record || record->value("status", "") == "ok") return {};
  const bool of_another = record->value("of_another_rank", false);
  return {of_another ? ResultVerdict::Kind::victim : ResultVerdict::Kind::failed, record->value("reason", "")};
}

Record combine(std::vector<RankReport> reports, double confidence) {
  std::vector<RankPart> parts;
  for (RankReport& report : reports) {
    report.part.erase("of_another_rank");
    const Record device = report.part.value("device", Record::object());
    parts.push_back({report.rank, report.host, report.part, device.value("bus_address", "")});
  }
  if (std::all_of(reports.begin(), reports.end(), is_ok)) return merge_ranks(parts, confidence);
  return merge_failed_ranks(parts, culprit_among(reports));
}

}  // namespace assay::host
