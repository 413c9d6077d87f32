#include "ab/session.hpp"

namespace assay::host::ab {
namespace {

class Session {
 public:
  Session(const SessionPlan& plan, const SessionParts& parts) : plan_(plan), parts_(parts), looks_(plan.looks) {}

  SessionResult run() {
    do {
      if (!run_pair()) break;
    } while (!is_over());
    result_.seconds = parts_.seconds();
    return std::move(result_);
  }

 private:
  // False: the session ends with it.
  bool run_pair() {
    const std::int64_t repeat = result_.runs + 1;
    const std::size_t first = repeat % 2 == 1 ? 0 : 1;
    for (const std::size_t side : {first, 1 - first}) {
      const TurnEnd end = parts_.run(side, repeat);
      if (!end.interrupted && end.failure.empty()) continue;
      result_.end = end.interrupted ? End::interrupted : End::failed;
      result_.failed_side = side, result_.failure = end.failure;
      result_.judgement.verdict = Verdict::cannot_tell;
      return false;
    }
    ++result_.runs;
    return true;
  }

  bool is_over() {
    const bool runs_spent = result_.runs >= plan_.looks.max_runs;
    const bool time_spent = parts_.seconds() >= plan_.max_time_s;
    const bool is_last = runs_spent || time_spent;
    const bool is_look = looks_.is_due(result_.runs) || is_last;
    result_.confidence = looks_.confidence_at(result_.runs);
    result_.comparison = parts_.compare(result_.confidence);
    const Judgement judgement = judge(*result_.comparison, plan_.looks.min_runs);
    parts_.report({result_.runs, is_look, parts_.seconds(), *result_.comparison});
    if (!judgement.problem.empty()) {
      result_.end = End::failed, result_.failed_side = 1, result_.failure = judgement.problem;
      result_.failed_both = judgement.is_of_both;
      return true;
    }
    if (!is_look) return false;
    looks_.looked(result_.runs);
    result_.judgement = judgement;
    const bool is_clear = judgement.open == 0 || (plan_.stops_at_worse && judgement.worse > 0);
    result_.end = is_clear ? End::clear : runs_spent ? End::runs_spent : End::time_spent;
    return is_clear || is_last;
  }

  const SessionPlan& plan_;
  const SessionParts& parts_;
  Looks looks_;
  SessionResult result_;
};

}  // namespace

SessionResult run_session(const SessionPlan& plan, const SessionParts& parts) { return Session(plan, parts).run(); }

}  // namespace assay::host::ab
