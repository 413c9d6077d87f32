#include "workload.hpp"

#include <assay/comm.h>

#include <array>
#include <charconv>
#include <cmath>

#include "processors.hpp"
#include "rank_variables.hpp"

namespace command {
namespace {

// A program that writes more in one step than this has lost its way.
constexpr std::uint64_t most_lines_a_step = 100'000;
constexpr int most_questions_after_end = 1000;
// The program's own threads, and those of the driver and of assay that wait.
constexpr int processors_a_busy_rank = 4;
constexpr std::chrono::milliseconds time_to_die{1000};

std::string number(double value) {
  std::array<char, 40> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

// The first one is step 1, as the host's messages count.
std::string number_of(const assay::Launch& launch) { return "step " + std::to_string(launch.iteration() + 1); }

}  // namespace

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      names_(host_.extension<assay_names>(ASSAY_EXT_NAMES)),
      settings_(c),
      has_gpu_(c.device_kind() == "cuda") {
  const auto* comm = host_.extension<assay_comm>(ASSAY_EXT_COMM);
  if (comm && comm->rank_count > 1) is_to_end_ = [comm] { return comm->aborted(comm) != 0; };
}

void Workload::plan(const assay::Planning&) const {
  throw assay::Error(ASSAY_INTERNAL, "what a program takes is not known before it runs");
}

void Workload::fail(const std::string& text) const { throw assay::Error(ASSAY_INTERNAL, "the program " + text); }

void Workload::start() {
  program_.reset();
  has_greeted_ = has_asked_ = false;
  open_phases_.clear();
  program_ = std::make_unique<Program>(settings_, waiting_, rank_variables(host_, starts_++));
}

// Whether each rank has processors enough to wait busily, and the program its own threads.
Waiting Workload::settled_waiting() const {
  const Waiting wanted = settings_.waiting.value_or(has_gpu_ ? Waiting::busy : Waiting::asleep);
  if (wanted == Waiting::asleep) return wanted;
  const Share share = share_of_processors(host_);
  if (share.processors >= processors_a_busy_rank * share.ranks) return wanted;
  const std::string few = number(share.processors) + " processors are few for " + std::to_string(share.ranks) +
                          (share.ranks == 1 ? " rank" : " ranks");
  if (settings_.waiting) {
    host_.warn("waiting = \"busy\" keeps a processor of each rank busy beside its program, and " + few +
               ": steps may take longer for it; compare with waiting = \"asleep\"");
    return wanted;
  }
  host_.warn("waiting = \"auto\" sleeps between reported steps, as " + few +
             " with a GPU: each step has the waking up of two processes in it; waiting = \"busy\" leaves that out");
  return Waiting::asleep;
}

void Workload::setup(const assay::LaunchOf<Workload>& launch) {
  if (settings_.step_is == StepIs::program) return;
  waiting_ = settled_waiting();
  if (waiting_ == Waiting::busy) launch.report(waited, waiting_);
  start();
  if (!hear(launch, false)) {
    // Its pipe closes a moment before it can be waited for.
    program_->wait_for_end(time_to_die);
    // One that has failed has said why.
    const bool is_silent = !has_greeted_ && program_->ended_well();
    fail(program_->how_it_ended() +
         (has_greeted_ ? "\nIt never asked for a step"
          : !is_silent
              ? ""
              : "\nIt reported nothing: let it report its steps (docs/command.md), or set step_is = \"program\" "
                "to time it as a whole"));
  }
}

void Workload::run(const assay::Launch& launch) {
  if (launch.stage() == ASSAY_STAGE_MEASURE) ++measured_steps_;
  if (settings_.step_is == StepIs::program) return run_whole(launch);
  if (!program_ || !has_asked_) fail("has asked for no step");
  has_asked_ = false;
  // The time of such a step would begin before it is asked for, and be none.
  if (program_->has_said_more())
    fail("wrote more to ASSAY_FD after it had asked for a step; it is to wait for the answer");
  const char* kind = launch.stage() == ASSAY_STAGE_MEASURE ? "measure " : "warmup ";
  if (!program_->say(kind + std::to_string(launch.iteration()) + '\n') || !hear(launch, true)) fail_by_its_end(launch);
}

void Workload::fail_by_its_end(const assay::Launch& launch) const {
  if (!program_->wait_for_end(time_to_die))
    fail("has closed its end of ASSAY_FD in " + number_of(launch) +
         " and is still running; keep it open, and ask for the next step until the answer is end");
  if (!program_->ended_well()) fail("in " + number_of(launch) + " " + program_->how_it_ended());
  const std::string said = program_->what_it_said();
  fail("exited (status 0) during " + number_of(launch) + said + (said.find('\n') == std::string::npos ? ". " : "\n") +
       "Keep iterating assay.steps() until it stops.");
}

void Workload::run_whole(const assay::Launch& launch) {
  start();
  while (hear(launch, true))
    if (!program_->say("whole\n")) break;
  if (!program_->has_ended()) fail_by_its_end(launch);
  if (!program_->ended_well()) fail("in " + number_of(launch) + " " + program_->how_it_ended());
  ++ended_steps_;
}

bool Workload::hear(const assay::Launch& launch, bool in_step) {
  for (std::uint64_t lines = 0;; ++lines) {
    switch (program_->wait(is_to_end_)) {
      case Program::Event::ended: return false;
      case Program::Event::closed:
        // One that is timed as a whole may do without it.
        if (settings_.step_is == StepIs::program && program_->wait_for_end(time_to_die)) continue;
        return false;
      case Program::Event::asked: throw assay::Error(ASSAY_COMM_ERROR, "another rank has failed");
      case Program::Event::line: break;
    }
    if (lines >= most_lines_a_step)
      fail("wrote more than " + std::to_string(most_lines_a_step) + " lines to ASSAY_FD without asking for a step");
    const Report report = report_in(program_->next_line());
    if (report.kind == Report::Kind::greeting) {
      has_greeted_ = true;
      continue;
    }
    if (!has_greeted_)
      fail(std::string("did not begin with the line \"") + greeting + "\", which says the version that it speaks");
    if (report.kind != Report::Kind::step) {
      take(report, launch, in_step);
      continue;
    }
    if (!open_phases_.empty()) fail("asked for a step within the phase '" + open_phases_.back() + "'; end it before");
    if (in_step && settings_.step_is == StepIs::reported) ++ended_steps_;
    return has_asked_ = true;
  }
}

void Workload::take(const Report& report, const assay::Launch& launch, bool in_step) {
  const auto check = [](assay_status status) {
    if (status != ASSAY_OK) throw assay::Error(status, "");  // the host has the text
  };
  switch (report.kind) {
    case Report::Kind::fail: throw assay::Error(report.status, report.text);
    case Report::Kind::begin: {
      if (!phases_.count(report.name))
        check(names_->phase(names_, {report.name.data(), report.name.size()}, &phases_[report.name]));
      open_phases_.push_back(report.name);
      if (in_step) launch.abi()->phase_begin(launch.abi(), phases_[report.name]);
      return;
    }
    case Report::Kind::end:
      if (open_phases_.empty() || open_phases_.back() != report.name)
        fail("ended the phase '" + report.name + "', but " +
             (open_phases_.empty() ? std::string("none is open")
                                   : "'" + open_phases_.back() + "' is the innermost open one"));
      open_phases_.pop_back();
      if (in_step) launch.abi()->phase_end(launch.abi(), phases_[report.name]);
      return;
    case Report::Kind::metric:
      if (!in_step)
        fail("reported the metric '" + report.name + "' outside of the steps; use result for a figure of the case");
      [[fallthrough]];
    default: return take_figure(report, launch);
  }
}

void Workload::take_figure(const Report& report, const assay::Launch& launch) {
  const bool is_of_step = report.kind == Report::Kind::metric;
  if (report.name == waited.row.name)
    fail("reported '" + report.name + "', a metric of assay's own; give it another name");
  auto found = figures_.find(report.name);
  if (found == figures_.end()) {
    assay_metric row{};
    row.struct_size = sizeof row;
    row.name = report.name.c_str();
    row.unit = report.unit.empty() ? nullptr : report.unit.c_str();
    row.help = "as the program reports it";
    row.direction = report.better;
    row.scope = is_of_step ? ASSAY_PER_STEP : ASSAY_PER_CASE;
    std::uint32_t index = 0;
    if (const assay_status status = names_->metric(names_, &row, &index); status != ASSAY_OK)
      throw assay::Error(status, "");
    found = figures_.emplace(report.name, Figure{index, is_of_step, report.unit, report.better}).first;
  }
  const Figure& figure = found->second;
  if (figure.is_of_step != is_of_step || figure.unit != report.unit || figure.better != report.better)
    fail("reported '" + report.name + "' with another unit, direction or kind (metric, result) than before");
  launch.abi()->metric(launch.abi(), figure.index, report.value);
  if (!is_of_step || launch.stage() == ASSAY_STAGE_MEASURE)
    last_values_[report.name] = {report.value, is_of_step ? measured_steps_ : 0};
}

assay::Verified Workload::verify(const assay::Launch& launch) {
  if (settings_.step_is == StepIs::reported) {
    int questions = 0;
    do {
      if (!program_->say("end\n")) break;
      if (++questions > most_questions_after_end) fail("asks for steps again and again after the answer was end");
    } while (hear(launch, false));
    // With its end of the descriptor closed it may still have something to do.
    while (!program_->has_ended() && !program_->wait_for_end(time_to_die))
      if (is_to_end_ && is_to_end_()) throw assay::Error(ASSAY_COMM_ERROR, "another rank has failed");
    if (!program_->ended_well()) fail("after its last step " + program_->how_it_ended());
  }
  if (settings_.verify_metric.empty())
    throw assay::Error(ASSAY_UNSUPPORTED, "the right result of the program is unknown: verify_metric names no metric");
  const auto found = last_values_.find(settings_.verify_metric);
  if (found == last_values_.end()) {
    std::string names;
    for (const auto& value : last_values_) names += (names.empty() ? "" : ", ") + value.first;
    fail("never reported '" + settings_.verify_metric + "', which verify_metric names; it reported " +
         (names.empty() ? "no metric" : names));
  }
  const auto [value, step] = found->second;
  const std::string range = (settings_.verify_min > -no_bound ? "at least " + number(settings_.verify_min) : "") +
                            (settings_.verify_min > -no_bound && settings_.verify_max < no_bound ? " and " : "") +
                            (settings_.verify_max < no_bound ? "at most " + number(settings_.verify_max) : "");
  // A program may report a metric in some of its steps alone: then it is not said to be the last step's.
  const std::string when = step == 0 || step == measured_steps_
                               ? " in the end"
                               : " in step " + std::to_string(step) + " of " + std::to_string(measured_steps_) +
                                     ", the last that reported it";
  const std::string text = settings_.verify_metric + " is " + number(value) + when;
  if (!(value >= settings_.verify_min && value <= settings_.verify_max))
    throw assay::Error(ASSAY_WRONG_RESULT, text + "; expected " + range);
  return text + ", as declared " + range + "; nothing else of the program was checked";
}

}  // namespace command
