#include "launch/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include "launch/close_from.hpp"
#include "launch/keeper.hpp"
#include "launch/reap.hpp"

namespace assay::host::launch {
namespace {

// Descriptors that the child moves into place must not lie where they go to.
constexpr int first_free_fd = 10;
constexpr int child_error_fd = 6;

Fd moved_up(Fd fd, const char* what) {
  if (!fd) throw LaunchError::from_errno(fmt::format("cannot open {}", what));
  Fd high(fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free_fd));
  if (!high) throw LaunchError::from_errno(fmt::format("cannot duplicate the descriptor of {}", what));
  return high;
}

struct Pipe {
  Fd read, write;
};
Pipe make_pipe(const char* what) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw LaunchError::from_errno(fmt::format("cannot create {}", what));
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  pipe.read = moved_up(std::move(pipe.read), what);
  pipe.write = moved_up(std::move(pipe.write), what);
  return pipe;
}

// A sealed memory file: no size limit as with arguments, no file to clean up, and the worker cannot change it.
Fd make_spec(const std::string& text) {
  Fd fd = moved_up(Fd(memfd_create(spec_file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), "the worker's case text (memfd)");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = pwrite(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw LaunchError::from_errno(fmt::format("cannot write the worker's case text of {} bytes", text.size()));
    done += static_cast<std::size_t>(n);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw LaunchError::from_errno("cannot seal the worker's case text");
  return fd;
}

std::vector<std::string> environment_of(const SpawnRequest& request, const std::string& tag) {
  auto changes = request.environment;
  changes[worker_tag_variable] = tag;
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    if (value) entries.push_back(name + "=" + *value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Sets of processors, as large as the kernel asks for: a cpu_set_t ends at 1024.
struct ProcessorSets {
  std::vector<cpu_set_t> wanted, found;  // both empty: not bound
  std::size_t bytes() const { return wanted.size() * sizeof(cpu_set_t); }
};
ProcessorSets processor_sets(const std::vector<int>& processors) {
  if (processors.empty()) return {};
  constexpr int processors_max = 8 * CPU_SETSIZE;
  for (const int processor : processors)
    if (processor < 0 || processor >= processors_max)
      throw LaunchError(
          fmt::format("cannot bind a worker to processor {}; expected 0 to {}", processor, processors_max - 1));
  ProcessorSets sets{std::vector<cpu_set_t>(processors_max / CPU_SETSIZE),
                     std::vector<cpu_set_t>(processors_max / CPU_SETSIZE)};
  for (const int processor : processors) CPU_SET_S(processor, sets.bytes(), sets.wanted.data());
  return sets;
}

enum class ChildStep : int { fork, descriptors, group, parent_death, limits, processors, exec };
const char* describe(ChildStep step) {
  switch (step) {
    case ChildStep::fork: return "there can be no further process; the limit on them (ulimit -u) may be reached";
    case ChildStep::descriptors: return "its descriptors could not be put in place";
    case ChildStep::group: return "it could not get its own process group";
    case ChildStep::parent_death: return "it could not be tied to the host's life";
    case ChildStep::limits: return "its core file limit could not be set";
    case ChildStep::processors: return "it could not be bound to its processors";
    case ChildStep::exec: return "the executable could not be run";
  }
  return "unknown step";
}

struct ChildFailure {
  int error;
  ChildStep step;
};

struct ChildPlan {
  const char* executable;
  char* const* arguments;
  char* const* environment;
  int null_fd, log_fd, event_fd, spec_fd, board_fd, error_fd, channel_fd;
  const cpu_set_t* processors;  // null: not bound
  cpu_set_t* processors_found;
  std::size_t processor_bytes;
};

[[noreturn]] void fail_child(int fd, ChildStep step) {
  const ChildFailure failure{errno, step};
  // A failure to report the failure shows as a worker that ended with code 127 and no result.
  [[maybe_unused]] const ssize_t n = write(fd, &failure, sizeof failure);
  _exit(127);
}

// The kernel leaves out processors that do not exist or are not allowed, as long as one remains: here that is an error.
bool bind_to_processors(const ChildPlan& plan) {
  if (sched_setaffinity(0, plan.processor_bytes, plan.processors) != 0) return false;
  if (sched_getaffinity(0, plan.processor_bytes, plan.processors_found) != 0) return false;
  errno = EINVAL;
  return CPU_EQUAL_S(plan.processor_bytes, plan.processors, plan.processors_found);
}

// Between fork and exec: async-signal-safe calls alone, since another thread may have held any lock at the fork.
[[noreturn]] void become_worker(const ChildPlan& plan, pid_t keeper) {
  int error_fd = plan.error_fd;
  if (setpgid(0, 0) != 0) fail_child(error_fd, ChildStep::group);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail_child(error_fd, ChildStep::parent_death);
  // The parent may have died before the line above took effect.
  if (getppid() != keeper) _exit(127);

  if (dup2(plan.null_fd, 0) < 0 || dup2(plan.log_fd, 1) < 0 || dup2(plan.log_fd, 2) < 0 ||
      dup2(plan.event_fd, worker_event_fd) < 0 || dup2(plan.spec_fd, worker_spec_fd) < 0 ||
      dup2(plan.board_fd, worker_board_fd) < 0 || dup3(error_fd, child_error_fd, O_CLOEXEC) < 0)
    fail_child(error_fd, ChildStep::descriptors);
  error_fd = child_error_fd;
  close_from(child_error_fd + 1);

  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) fail_child(error_fd, ChildStep::limits);
  if (plan.processors && !bind_to_processors(plan)) fail_child(error_fd, ChildStep::processors);
  // Best effort: some containers forbid it, and the case can run without.
  if (const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] const ssize_t n = write(fd, "800", 3);
    close(fd);
  }

  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  execve(plan.executable, plan.arguments, plan.environment);
  fail_child(error_fd, ChildStep::exec);
}

// All signals are held back over the fork, so that no handler of the host runs in the child. A keeper keeps it so.
pid_t fork_keeper(const ChildPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0)
    run_keeper(
        {plan.channel_fd, plan.null_fd,
         [](const void* context, pid_t keeper) { become_worker(*static_cast<const ChildPlan*>(context), keeper); },
         [](const void* context) { fail_child(static_cast<const ChildPlan*>(context)->error_fd, ChildStep::fork); },
         &plan});
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

// Where SIGCHLD is ignored, as some batch systems start their jobs, the kernel throws exit statuses away.
void keep_exit_statuses() {
  struct sigaction current {};
  sigaction(SIGCHLD, nullptr, &current);
  if (current.sa_handler != SIG_IGN && !(current.sa_flags & SA_NOCLDWAIT)) return;
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, nullptr);
}

// Two ends between which messages stay apart: the host's, and the keeper's.
std::pair<Fd, Fd> make_channel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError::from_errno("cannot create the channel to the worker's keeper");
  std::pair<Fd, Fd> channel{Fd(ends[0]), Fd(ends[1])};
  channel.first = moved_up(std::move(channel.first), "the channel to the worker's keeper");
  channel.second = moved_up(std::move(channel.second), "the channel to the worker's keeper");
  return channel;
}

// The next message; nothing when the keeper is gone, or said nothing until the deadline.
std::optional<KeeperMessage> next_message(int channel_fd, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd watched{channel_fd, POLLIN, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    KeeperMessage message;
    const ssize_t n = recv(channel_fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n != static_cast<ssize_t>(sizeof message)) return std::nullopt;
    return message;
  }
}

Exit exit_of(int status, std::uint64_t peak_rss_bytes) {
  Exit exit;
  exit.by_signal = WIFSIGNALED(status);
  exit.number = exit.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
  exit.peak_rss_bytes = peak_rss_bytes;
  return exit;
}

std::string details_of(ChildStep step, const SpawnRequest& request) {
  if (step != ChildStep::processors) return "";
  return fmt::format(" {} (do they exist, and may this process use them? taskset -p $$ shows which)",
                     fmt::join(request.processors, ","));
}

// The host's process first: pid_of_host() reads it.
std::string new_tag() {
  static std::atomic<unsigned> count{0};  // distinguishes it from other workers of this host
  return fmt::format("{}-{}", getpid(), count.fetch_add(1));
}

}  // namespace

pid_t pid_of_host() {
  const char* tag = std::getenv(worker_tag_variable);
  return tag ? static_cast<pid_t>(std::strtol(tag, nullptr, 10)) : 0;
}

Process::Process(pid_t keeper_pid, std::string tag, Fd channel, std::unique_ptr<WorkerLog> log)
    : keeper_pid_(keeper_pid), tag_(std::move(tag)), channel_(std::move(channel)), log_(std::move(log)) {}

Process::Process(Process&& other) noexcept
    : keeper_pid_(std::exchange(other.keeper_pid_, -1)),
      pid_(std::exchange(other.pid_, -1)),
      tag_(std::move(other.tag_)),
      channel_(std::move(other.channel_)),
      event_fd_(std::move(other.event_fd_)),
      log_(std::move(other.log_)) {}

Process::~Process() {
  try {
    kill_and_reap(std::chrono::seconds(5));
  } catch (...) {  // out of memory while looking for descendants: the worker itself is tied to the host's life
  }
}

bool Process::has_ended() const {
  if (pid_ < 0) return true;
  pollfd watched{channel_.get(), POLLIN, 0};
  return poll(&watched, 1, 0) > 0;
}

bool Process::is_exiting() const {
  if (pid_ < 0) return true;
  std::ifstream in(fmt::format("/proc/{}/stat", pid_));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // The name may hold blanks and brackets. What follows its last bracket: the state, five numbers, the flags.
  const std::size_t name_end = text.rfind(')');
  unsigned long flags = 0;
  constexpr unsigned long exiting = 0x4;  // PF_EXITING
  return name_end != std::string::npos &&
         std::sscanf(text.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 &&
         (flags & exiting) != 0;
}

void Process::signal_group(int signal) const noexcept {
  if (pid_ > 0) kill(-pid_, signal);
}

void Process::continue_keeper() const noexcept {
  if (keeper_pid_ > 0) kill(keeper_pid_, SIGCONT);
}

std::uint64_t Process::rss_bytes() const {
  if (pid_ < 0) return 0;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/statm", static_cast<int>(pid_));
  const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  if (!fd || read(fd.get(), text, sizeof text - 1) <= 0) return 0;
  unsigned long long size_pages = 0, resident_pages = 0;
  if (std::sscanf(text, "%llu %llu", &size_pages, &resident_pages) != 2) return 0;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<Exit> Process::kill_and_reap(std::chrono::milliseconds patience) {
  if (keeper_pid_ < 0) return std::nullopt;
  const std::optional<Exit> exit = reap(patience);
  log_->finish();
  return exit;
}

void Process::await_start() {
  // It reports as soon as it has forked; a machine that is very busy gets time.
  const auto message = next_message(channel_.get(), std::chrono::steady_clock::now() + std::chrono::minutes(1));
  if (message && message->word == KeeperWord::started) pid_ = message->worker;
}

std::optional<Exit> Process::reap(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  continue_keeper();
  KeeperMessage request;
  request.word = KeeperWord::end_all;
  send(channel_.get(), &request, sizeof request, MSG_NOSIGNAL);
  std::optional<KeeperMessage> message;
  do message = next_message(channel_.get(), deadline);
  while (message && message->word != KeeperWord::gone);
  // The keeper goes on where the kernel does not let the worker die, and ends by itself: it stays a child of the host.
  const bool is_late = !message && std::chrono::steady_clock::now() >= deadline;
  channel_.reset();
  const pid_t keeper = std::exchange(keeper_pid_, -1);
  if (is_late) {
    pid_ = -1;
    return std::nullopt;
  }
  while (waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {  // it has reported all, or was killed
  }
  if (!message) return reap_without_keeper(patience);
  pid_ = -1;
  Exit exit = exit_of(message->status, message->peak_rss_bytes);
  exit.left_running = message->left.count;
  for (std::size_t i = 0; i < std::min<std::size_t>(exit.left_running, LeftRunning::names_max); ++i)
    exit.left_names.emplace_back(message->left.names[i].data());
  return exit;
}

// The keeper was killed, and the worker with it; both are the host's to reap.
std::optional<Exit> Process::reap_without_keeper(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  if (pid_ < 0) return std::nullopt;
  signal_group(SIGKILL);
  int status = 0;
  rusage usage{};
  pid_t reaped = 0;
  while ((reaped = wait4(pid_, &status, WNOHANG, &usage)) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (reaped == 0) {  // in the kernel's hands; it stays a child of the host
    pid_ = -1;
    return std::nullopt;
  }
  reap_descendants(pid_, tag_, patience);
  pid_ = -1;
  Exit exit = exit_of(status, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
  if (reaped < 0) exit.by_signal = false, exit.number = -1;
  return exit;
}

Process spawn(const SpawnRequest& request) {
  if (request.board_fd < 0) throw LaunchError("a worker needs a progress board; ProgressBoard::create() makes one");
  auto log = std::make_unique<WorkerLog>(request.log_file, request.log_limit_bytes);
  Fd output = moved_up(log->take_write_end(), "the pipe of the worker's log");
  Fd null = moved_up(Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)), "/dev/null");
  Fd board = moved_up(Fd(fcntl(request.board_fd, F_DUPFD_CLOEXEC, first_free_fd)), "the progress board");
  Fd spec = make_spec(request.spec);
  Pipe events = make_pipe("the worker's event pipe");
  Pipe errors = make_pipe("the worker's start-up pipe");
  auto [channel, keepers_end] = make_channel();

  const std::string tag = new_tag();
  std::vector<std::string> arguments = request.arguments;
  arguments.insert(arguments.begin(), request.executable.string());
  std::vector<std::string> environment = environment_of(request, tag);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  ProcessorSets processors = processor_sets(request.processors);
  keep_exit_statuses();
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  const pid_t keeper = fork_keeper(
      {request.executable.c_str(), argument_pointers.data(), environment_pointers.data(), null.get(), output.get(),
       events.write.get(), spec.get(), board.get(), errors.write.get(), keepers_end.get(),
       processors.wanted.empty() ? nullptr : processors.wanted.data(), processors.found.data(), processors.bytes()});
  if (keeper < 0)
    throw LaunchError::from_errno(
        "cannot start a worker process (fork); the limit on processes (ulimit -u) may be reached");
  Process process(keeper, tag, std::move(channel), std::move(log));
  keepers_end.reset();
  output.reset();

  errors.write.reset();
  ChildFailure failure{};
  ssize_t n = 0;
  do n = read(errors.read.get(), &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure))
    throw LaunchError::from_errno(fmt::format("cannot start the worker {}: {}{}", request.executable.string(),
                                              describe(failure.step), details_of(failure.step, request)),
                                  failure.error);

  process.await_start();
  if (process.pid_ < 0)
    throw LaunchError(fmt::format("cannot start the worker {}: its keeper was killed", request.executable.string()));
  fcntl(events.read.get(), F_SETFL, O_NONBLOCK);
  fcntl(events.read.get(), F_SETPIPE_SZ, 1 << 20);  // best effort: a worker should not have to wait for its parent
  process.event_fd_ = std::move(events.read);
  return process;
}

}  // namespace assay::host::launch
