// The process between the host and a worker. It adopts whatever leaves the worker (setsid, a double fork: it is a
// subreaper, and they have no other ancestor), so that all that the worker has started can be found and ended: when the
// host asks for it, and when the host is gone, however it went.
//
// It is a fork of the host without an exec, so what it does are async-signal-safe calls alone. It leads a separate
// session (a signal to the host's group or terminal does not reach it) and takes no signal but SIGKILL. When it is
// killed, the worker dies with it, and what is left falls to the host.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstdint>

namespace assay::host::launch {

// Keeper and host speak through a pair of sockets that keep messages apart (SOCK_SEQPACKET). The host's end closes with
// the host alone.
enum class KeeperWord : std::int32_t {
  started,  // keeper: the worker's process is there. Once, first
  ended,    // keeper: the worker has ended, and is not reaped yet
  end_all,  // host: end the worker and what it has started
  gone,     // keeper: nothing is left; it exits
};

// LeftRunning names what the worker had left running when it ended, without what was killed with its process group.
struct LeftRunning {
  static constexpr std::size_t names_max = 8;
  std::uint64_t count = 0;
  std::array<std::array<char, 16>, names_max> names;  // of the first ones, as the kernel has them
};

struct KeeperMessage {
  KeeperWord word = KeeperWord::started;
  pid_t worker = 0;                  // `started`
  int status = 0;                    // `gone`: of the worker, as wait() gives it
  std::uint64_t peak_rss_bytes = 0;  // `gone`: of the worker, without what it has started
  LeftRunning left{};                // `gone`
};

// run_keeper() makes a keeper of a forked child of the host. It calls `become_worker` in the worker's process with the
// keeper's process id, which does not return, and `report_failure` in the keeper when there can be no further process.
struct KeeperPlan {
  int channel_fd;  // the keeper's end
  int null_fd;
  void (*become_worker)(const void* context, pid_t keeper);
  void (*report_failure)(const void* context);
  const void* context;
};
[[noreturn]] void run_keeper(const KeeperPlan& plan);

// `ps` shows a keeper by this name.
constexpr const char* keeper_name = "assay-keeper";

}  // namespace assay::host::launch
