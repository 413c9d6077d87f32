#include "run/recorded_case.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "common/utc.hpp"
#include "launch/launch_error.hpp"
#include "launch/signals.hpp"
#include "run/build_note.hpp"
#include "run/run_records.hpp"

namespace assay::host::run {
namespace {

// A case whose input changes is of no input that could be named.
std::optional<std::string> change_of_inputs(const CasePlan& planned, TakenFiles& files) {
  for (const std::string& path : planned.inputs)
    if (auto change = files.change_of_input(path)) return change;
  return std::nullopt;
}

CaseOutcome carry_out_with_inputs(const CasePlan& planned, const CaseContext& context) {
  if (const auto change = change_of_inputs(planned, context.files))
    return {record::result_without_worker(record::Status::failed, *change)};
  CaseOutcome outcome = carry_out(planned, context);
  if (const auto change = change_of_inputs(planned, context.files); change && outcome.result)
    outcome.result = record::result_without_worker(record::Status::failed, *change);
  return outcome;
}

CaseOutcome carry_out_or_say_why_not(const CasePlan& planned, const CaseContext& context) try {
  return carry_out_with_inputs(planned, context);
} catch (const launch::LaunchError& e) {
  return {record::result_without_worker(record::Status::failed, e.what())};
}

// A case that was made for several machines measures something else on fewer.
void note_missing_nodes(const CasePlan& planned, const Crew& crew, record::CaseResult& result) {
  const std::int64_t wanted = planned.values.cluster.nodes;
  if (wanted < 2 || planned.refusal) return;
  std::set<std::string> hosts;
  for (const RankPlace& place : crew.places(planned.ranks)) hosts.insert(place.host);
  if (static_cast<std::int64_t>(hosts.size()) < wanted)
    result.note(fmt::format("[cluster] nodes is {}, but its ranks ran on {}", wanted, hosts.size()));
}

// Says whether the case has ended because the run does: its ranks leave it when they are asked to, and say that it
// failed.
bool has_ended_with_the_run(const CaseOutcome& outcome, const launch::InterruptHandler& interrupts) {
  const record::Status status = outcome.result->status;
  if (status != record::Status::failed && status != record::Status::crashed) return false;
  return interrupts.count()->load() > 0 || (outcome.asked_to_end && is_told_to_end(interrupts));
}

}  // namespace

bool is_told_to_end(const launch::InterruptHandler& interrupts) {
  constexpr std::chrono::milliseconds patience{500};
  const auto until = std::chrono::steady_clock::now() + patience;
  while (interrupts.count()->load() == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return interrupts.count()->load() > 0;
}

RecordedCase run_and_record(const CasePlan& planned, const CaseContext& context) {
  const std::string started = utc_text(std::chrono::system_clock::now());
  CaseOutcome outcome;
  if (auto known = context.verified.known_wrong(planned)) {
    outcome.result = std::move(known);
  } else {
    CasePlan decided = planned;
    decided.verification = context.verified.asked_for(planned);
    outcome = carry_out_or_say_why_not(decided, context);
  }
  RecordedCase recorded{std::nullopt, outcome.interrupted};
  if (!outcome.result) return recorded;
  if (has_ended_with_the_run(outcome, context.interrupts)) return {std::nullopt, true};
  note_missing_nodes(planned, context.crew, *outcome.result);
  if (outcome.result->phases && outcome.result->device)
    if (std::string note = note_on_builds(context.target, *outcome.result->device); !note.empty())
      outcome.result->note(std::move(note));
  recorded.record = full_record(planned, context.target, std::move(*outcome.result), started);
  context.verified.add(planned, *recorded.record);
  return recorded;
}

}  // namespace assay::host::run
