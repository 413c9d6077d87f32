#include "launch/supervise_group.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "common/rank_name.hpp"
#include "launch/oom_kills.hpp"
#include "launch/reason.hpp"
#include "launch/watched_worker.hpp"

namespace assay::host::launch {
namespace {

using std::chrono::milliseconds;
using TimePoint = WatchClock::time_point;

// The time in which whatever is left of an ended worker has to die. While it does, nobody looks after the other ranks;
// a worker that stands alone and ended by itself keeps nobody waiting.
constexpr milliseconds reap_patience{1000};
constexpr milliseconds reap_patience_alone{5000};

struct Failure {
  FailureKind kind;
  TimePoint at;
  std::string reason;
};

struct GroupMember {
  GroupMember(std::int32_t of_rank, const WorkerRequest& request, std::uint64_t oom_kills)
      : rank(of_rank), worker(request, oom_kills) {}
  bool running() const { return !outcome; }

  std::int32_t rank;
  WatchedWorker worker;
  bool judged = false;
  std::optional<Failure> failure;  // the first one of this rank
  std::optional<WorkerOutcome> outcome;
};

class Group {
 public:
  Group(const GroupRequest& request, const GroupProgress& on_progress, const std::atomic<int>* interrupted)
      : request_(request), on_progress_(on_progress), interrupts_(interrupted, request.wake_fd) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // All at once first: the members' destructors wait for one after the other.
  ~Group() {
    for (GroupMember& member : members_) member.worker.kill();
  }

  void start() {
    const std::uint64_t oom_kills = oom_kill_count();
    for (std::size_t i = 0; i < request_.workers.size(); ++i) try {
        members_.emplace_back(request_.ranks[i], request_.workers[i], oom_kills);
      } catch (const LaunchError& e) {
        throw WorkerStartError(request_.ranks[i], e.what());
      }
  }

  GroupOutcome run() {
    for (now_ = WatchClock::now(); any_running(); now_ = WatchClock::now()) {
      notice_interrupt();
      enforce_limits();
      if (now_ - ticked_at_ >= watch_tick) tick();
      if (settling_is_over()) settle();
      wait();
      judge_and_conclude();
    }
    if (!settled_ && first_failure_at_) settle();
    for (GroupMember& member : members_) outcome_.workers.push_back(std::move(*member.outcome));
    // Overdue in what followed their results, which are kept: nobody failed.
    if (outcome_.failure && outcome_.failure->kind == FailureKind::overdue &&
        std::all_of(outcome_.workers.begin(), outcome_.workers.end(),
                    [&](const auto& worker) { return is_good(worker); }))
      outcome_.failure.reset();
    return std::move(outcome_);
  }

 private:
  bool any_running() const {
    return std::any_of(members_.begin(), members_.end(), [](const GroupMember& m) { return m.running(); });
  }

  void notice_interrupt() {
    const auto grace = interrupts_.notice();
    if (!grace) return;
    // The rank that failed first stays the cause; what is left of the settling and the grace is cut short.
    if (first_failure_at_ && !settled_) settle();
    outcome_.interrupted = !outcome_.failure;
    settled_ = true;
    for (GroupMember& member : members_)
      if (member.running()) member.worker.interrupt(now_, *grace);
  }

  void enforce_limits() {
    for (GroupMember& member : members_) {
      if (!member.running()) continue;
      const bool on_its_own = !member.worker.end_reason();
      if (!member.worker.enforce(now_))
        conclude(member);
      else if (on_its_own && member.worker.end_reason() && !member.worker.result())
        note(member, FailureKind::killed, *member.worker.end_reason());
    }
  }

  // A process that was killed closes its connections before it can be seen to have ended, and with much memory to give
  // back the time between can be long: such a one is waited for, up to half of the grace.
  bool settling_is_over() const {
    if (settled_ || !first_failure_at_) return false;
    const auto passed = now_ - *first_failure_at_;
    if (passed < request_.settle) return false;
    return passed >= request_.end_grace / 2 || std::none_of(members_.begin(), members_.end(), [](const GroupMember& m) {
             return m.running() && !m.worker.result() && m.worker.is_exiting();
           });
  }

  // Looks after everything that need not be looked at more often.
  void tick() {
    ticked_at_ = now_;
    const GroupMember* const last = furthest_behind();
    if (last && on_progress_) on_progress_(last->rank, last->worker.read_board());
    if (settled_) return;
    if (request_.poll_outside && !outside_ && (outside_ = request_.poll_outside())) note_failure();
    if (overdue_ == Overdue::no) overdue_ = find_overdue();
    if (overdue_ == Overdue::no || first_failure_at_) return;
    // The ranks do nothing by themselves that ends a silence: there is nothing to wait for.
    note_failure();
    settle();
  }

  enum class Overdue { no, timeout, stall };
  Overdue find_overdue() {
    if (std::all_of(members_.begin(), members_.end(),
                    [](const GroupMember& m) { return !m.running() || m.worker.is_in_teardown(); }))
      return Overdue::no;
    if (request_.timeout.count() > 0 && now_ - started_ >= request_.timeout) return Overdue::timeout;
    if (request_.stall_timeout.count() == 0) return Overdue::no;
    const GroupMember* const last = furthest_behind();
    if (!last) return Overdue::no;
    // A rank may take its time in set-up or verification, and the others wait for it there.
    const Stage stage = last->worker.read_board().stage;
    if (stage != Stage::warmup && stage != Stage::measure) return Overdue::no;
    for (const GroupMember& member : members_)
      if (member.running() && silence_of(member) < request_.stall_timeout) return Overdue::no;
    return Overdue::stall;
  }

  WatchClock::duration silence_of(const GroupMember& member) const {
    return now_ - member.worker.last_sign_of_life(member.worker.read_board());
  }

  // Looks at the running ranks for which `counts` holds; null when there is none.
  template <typename Predicate>
  GroupMember* furthest_behind_of(Predicate counts) {
    GroupMember* found = nullptr;
    // Among ranks at the same step, one that waits is not what the others wait for.
    std::tuple<Stage, std::uint64_t, bool, TimePoint> least;
    for (GroupMember& member : members_) {
      if (!member.running() || !counts(member)) continue;
      const BoardView view = member.worker.read_board();
      const std::tuple progress(view.stage, view.step, view.waits, member.worker.last_sign_of_life(view));
      if (found && progress >= least) continue;
      found = &member;
      least = progress;
    }
    return found;
  }
  // A rank that has given its result is behind only when all the others have, too.
  GroupMember* furthest_behind() {
    GroupMember* const found = furthest_behind_of([](const GroupMember& m) { return !m.worker.result(); });
    return found ? found : furthest_behind_of([](const GroupMember&) { return true; });
  }

  void note_failure() {
    if (!first_failure_at_) first_failure_at_ = now_;
  }
  void note(GroupMember& member, FailureKind kind, std::string reason) {
    if (settled_ || member.failure) return;
    member.failure = Failure{kind, now_, std::move(reason)};
    note_failure();
  }

  void wait() {
    std::vector<WatchedWorker*> running;
    for (GroupMember& member : members_)
      if (member.running()) running.push_back(&member.worker);
    wait_for(running, interrupts_.wake_fd());
  }

  void judge_and_conclude() {
    now_ = WatchClock::now();
    for (GroupMember& member : members_) {
      if (!member.running()) continue;
      if (member.worker.result()) judge(member, *member.worker.result());
      if (member.worker.has_ended()) conclude(member);
    }
  }

  // A rank that was asked to end may still give a result, which says that it has not come through.
  bool is_good(const WorkerOutcome& worker) const {
    return worker.status == WorkerStatus::finished &&
           (!request_.judge_result || request_.judge_result(*worker.events.result).kind == ResultVerdict::Kind::ok);
  }

  void judge(GroupMember& member, const std::string& result) {
    if (settled_ || !request_.judge_result || std::exchange(member.judged, true)) return;
    ResultVerdict verdict = request_.judge_result(result);
    if (verdict.kind == ResultVerdict::Kind::ok) return;
    note(member, verdict.kind == ResultVerdict::Kind::victim ? FailureKind::victim : FailureKind::reported,
         std::move(verdict.reason));
  }

  void conclude(GroupMember& member) {
    const bool on_its_own = !member.worker.end_reason();
    member.outcome = member.worker.conclude(on_its_own && members_.size() == 1 ? reap_patience_alone : reap_patience);
    WorkerOutcome& outcome = *member.outcome;
    if (outcome.events.result) judge(member, *outcome.events.result);
    if (outcome.status == WorkerStatus::finished) return;
    const bool killed = outcome.status == WorkerStatus::oom || (on_its_own && outcome.signal == SIGKILL);
    note(member, killed ? FailureKind::killed : FailureKind::died, outcome.reason);
  }

  // Chooses the culprit, reports it, and ends the others.
  void settle() {
    settled_ = true;
    const Candidate culprit = choose_culprit();
    GroupFailure& failure = outcome_.failure.emplace();
    failure.kind = culprit.kind;
    failure.reason = culprit.reason;
    failure.for_others = culprit.member ? rank_name(culprit.member->rank) + ": " + culprit.reason : culprit.reason;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (&members_[i] == culprit.member) failure.worker = i;
    if (request_.on_failure) request_.on_failure(failure);
    const auto left = std::chrono::duration_cast<milliseconds>(*first_failure_at_ + request_.end_grace - now_);
    for (GroupMember& member : members_)
      if (member.running()) end(member, culprit, failure, std::max(left, milliseconds(0)));
  }

  struct Candidate {
    FailureKind kind;
    TimePoint at;
    const GroupMember* member;  // null: outside
    std::string reason;
  };

  // There is one: settle() is called after a failure was noted.
  Candidate choose_culprit() {
    std::vector<Candidate> found;
    for (const GroupMember& member : members_)
      if (member.failure) found.push_back({member.failure->kind, member.failure->at, &member, member.failure->reason});
    if (overdue_ != Overdue::no) add_overdue(found);
    if (outside_) found.push_back({FailureKind::outside, now_, nullptr, *outside_});
    add_silent(found);
    return *std::min_element(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.kind, a.at) < std::tuple(b.kind, b.at);
    });
  }

  void add_overdue(std::vector<Candidate>& found) {
    const GroupMember* const last = furthest_behind();
    if (!last) return;
    found.push_back({FailureKind::overdue, now_, last,
                     overdue_ == Overdue::timeout
                         ? last->worker.describe_timeout(request_.timeout, now_)
                         : fmt::format("no rank has shown a sign of life for {} ([run] stall_timeout), and this one is "
                                       "the furthest behind: {}",
                                       duration_text(request_.stall_timeout), last->worker.describe_silence(now_))});
  }

  // A rank that hangs lets its peers run into the limits of their communicators long before a timeout passes.
  void add_silent(std::vector<Candidate>& found) {
    for (const GroupMember& victim : members_) {
      if (!victim.failure || victim.failure->kind != FailureKind::victim) continue;
      const GroupMember* const last = furthest_behind_of([&](const GroupMember& m) {
        return !m.failure && !m.worker.result() &&
               m.worker.last_sign_of_life(m.worker.read_board()) < victim.failure->at;
      });
      if (!last) continue;
      found.push_back({FailureKind::silent, victim.failure->at, last,
                       fmt::format("no sign of life since {} reported that it had lost a rank: {}",
                                   rank_name(victim.rank), last->worker.describe_silence(now_))});
    }
  }

  void end(GroupMember& member, const Candidate& culprit, const GroupFailure& failure, milliseconds grace) {
    const bool hangs = culprit.kind == FailureKind::overdue || culprit.kind == FailureKind::silent;
    if (&member == culprit.member && hangs)
      return member.worker.end(WorkerStatus::timeout, culprit.reason, now_, grace);
    const std::string place = member.worker.position() + member.worker.log_suffix();
    const std::string why = member.failure
                                ? fmt::format("ended after it had reported a failure ({})", member.failure->reason)
                                : fmt::format("ended because another rank failed ({})", failure.for_others);
    member.worker.end(WorkerStatus::ended, fmt::format("{}; it was in {}", why, place), now_, grace);
  }

  const GroupRequest& request_;
  const GroupProgress& on_progress_;
  InterruptWatch interrupts_;
  const TimePoint started_ = WatchClock::now();
  std::deque<GroupMember> members_;
  TimePoint now_ = started_;
  TimePoint ticked_at_ = started_;
  std::optional<TimePoint> first_failure_at_;
  Overdue overdue_ = Overdue::no;
  std::optional<std::string> outside_;
  bool settled_ = false;  // the culprit is chosen, or nobody looks for one any longer
  GroupOutcome outcome_;
};

}  // namespace

const char* name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::killed: return "killed";
    case FailureKind::died: return "died";
    case FailureKind::reported: return "reported";
    case FailureKind::overdue: return "overdue";
    case FailureKind::outside: return "outside";
    case FailureKind::silent: return "silent";
    case FailureKind::victim: return "victim";
  }
  return "unknown";
}

GroupOutcome supervise_group(const GroupRequest& request, const GroupProgress& on_progress,
                             const std::atomic<int>* interrupted) {
  Group group(request, on_progress, interrupted);
  group.start();
  return group.run();
}

}  // namespace assay::host::launch
