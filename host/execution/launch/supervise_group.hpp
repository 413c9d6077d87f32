// Runs the workers of all ranks of one case that belong to this machine, and says which of them failed first and why. A
// worker that stands alone is a group of one.
//
// A rank that fails takes the others with it: they are asked to end (SIGTERM, so that they can abort their
// communicators), killed when they do not, and gone within 2 s of the first failure. Since a rank that lost its peer
// may report that before the peer's own end can be seen, `settle` passes between the first failure and the choice of
// the culprit.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch_error.hpp"
#include "launch/worker_request.hpp"

namespace assay::host::launch {

// The verdict of a rank's own result on it. `victim`: it failed because another rank was lost, or asked it to abort.
struct ResultVerdict {
  enum class Kind { ok, failed, victim };
  Kind kind = Kind::ok;
  std::string reason;  // the record's, "" when ok
};

// The kinds of failure of a group. Of several failures within `settle`, the one named first here is the cause; among
// equals the one that was noticed first. Hosts of other machines may compare theirs by the same order.
enum class FailureKind {
  killed,    // by SIGKILL from outside, or for its memory: never what the loss of a peer leads to
  died,      // of another signal, or exited without a result or with a code other than 0
  reported,  // its result says that it failed
  overdue,   // the timeout or the stall timeout passed; the rank is the one that is furthest behind
  outside,   // `poll_outside` said so
  silent,    // another rank says that it lost a peer, and this one has shown no sign of life since
  victim,    // its result says that another rank was lost, and none was seen to fail
};
const char* name_of(FailureKind kind);

struct GroupFailure {
  FailureKind kind = FailureKind::died;
  std::optional<std::size_t> worker;  // index of the culprit; nothing when `outside`
  std::string reason;                 // "killed by SIGKILL ..."; poll_outside's text when `outside`
  std::string for_others;             // what the other ranks receive: the reason with the culprit's rank before it
};

// A worker that could not be started.
class WorkerStartError : public LaunchError {
 public:
  WorkerStartError(std::int32_t of_rank, const std::string& what) : LaunchError(what), rank(of_rank) {}
  std::int32_t rank;
};

struct GroupRequest {
  std::vector<WorkerRequest> workers;    // one per local rank
  std::vector<std::int32_t> ranks;       // the rank of each worker, for the words
  int wake_fd = -1;                      // InterruptHandler::wake_fd(): reacts without a tick
  std::chrono::milliseconds timeout{0};  // of the whole group; 0: none

  // 0: none. Ends the group when the rank that is furthest behind is in the stage warmup or measure and no rank has
  // shown a sign of life for this long.
  std::chrono::milliseconds stall_timeout{0};
  // From the first failure to the choice of the culprit; up to half of `end_grace` while a rank's process is just
  // ending.
  std::chrono::milliseconds settle{250};
  std::chrono::milliseconds end_grace{1500};  // from the first failure to SIGKILL of the others

  // All may be empty, and are called on the calling thread.
  // Judges a rank's result as soon as it has come (a line of JSON with "event": "result"). Empty: every result is ok.
  std::function<ResultVerdict(const std::string& result_line)> judge_result;
  // Once, when the culprit is chosen and before the others are asked to end.
  std::function<void(const GroupFailure&)> on_failure;
  // Asked every 50 ms: a text says that a rank on another machine failed, "rank 5: ..."; not asked again after that.
  std::function<std::optional<std::string>()> poll_outside;
};

struct GroupOutcome {
  // In the order of the request. Who watches the group knows which rank each of them is: no reason starts with its own
  // rank. A worker whose result says that it failed has the status `finished` (or `ended`, when it did not end by
  // itself) and its result.
  std::vector<WorkerOutcome> workers;
  std::optional<GroupFailure> failure;  // nothing: all finished well, or the run was interrupted
  bool interrupted = false;             // the host was asked to stop before any rank had failed
};

// Called with the rank that is furthest behind: the earliest stage, the lowest step, not waiting, the oldest
// sign of life.
using GroupProgress = std::function<void(std::int32_t rank, const BoardView&)>;

// Blocks until all workers and everything they started are gone. `on_progress` (may be empty) is called on this thread
// at most every 50 ms. `interrupted` (may be null) counts the signals: 1 ends the workers with 0.5 s of grace, 2 at
// once. Throws WorkerStartError, and whatever the callbacks throw; all workers are gone then, too.
GroupOutcome supervise_group(const GroupRequest& request, const GroupProgress& on_progress,
                             const std::atomic<int>* interrupted);

}  // namespace assay::host::launch
