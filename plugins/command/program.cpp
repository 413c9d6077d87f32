#include "program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

extern char** environ;

namespace command {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_line_bytes = 64 * 1024, kept_error_bytes = 4096, shown_error_bytes = 1500;
constexpr int shown_error_lines = 12, most_last_reads = 64;
constexpr std::chrono::milliseconds patience{100}, grace{2000};
// So long that waking up late afterwards is little of what was waited for.
constexpr std::chrono::milliseconds busy_for{100};
// When busy, reads the socket alone this many times before also looking at the program's standard error and its end: a
// step then takes one kernel call, where looking at all three and reading takes two.
constexpr unsigned reads_between_looks = 64;

std::string text_of_errno(int error) { return std::strerror(error); }

// The folder of assay.py beside the program that this process runs, PREFIX/bin/assay; "" where it has none.
std::string client_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path().parent_path() / "share" / "assay" / "command";
  return !error && std::filesystem::is_regular_file(folder / "assay.py", error) ? folder.string() : "";
}

// The environment of this process with the variables of the settings, and then with `more`.
std::vector<std::string> environment_of(const Settings& settings,
                                        const std::vector<std::pair<std::string, std::string>>& more) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  // assay's workers look for libraries where those that were taken for the run lie; the program has nothing to do
  // there.
  if (const auto outer = variables.find("ASSAY_OUTER_LIBRARY_PATH"); outer != variables.end()) {
    if (outer->second.empty())
      variables.erase("LD_LIBRARY_PATH");
    else
      variables["LD_LIBRARY_PATH"] = outer->second;
    variables.erase(outer);
  }
  // `import assay` finds the module without a copy of it; what the user's own path has comes first.
  if (const std::string folder = client_folder(); !folder.empty()) {
    std::string& path = variables["PYTHONPATH"];
    path += (path.empty() ? "" : ":") + folder;
  }
  for (const auto& [name, value] : more) variables[name] = value;
  for (const Variable& variable : settings.environment) {
    if (variable.value)
      variables[variable.name] = *variable.value;
    else
      variables.erase(variable.name);
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What of the bytes can stand in a message: no control characters but ends of lines.
std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte == '\n' || byte == '\t' || byte >= 0x20 ? c : '?';
  }
  return text;
}

// The last lines of what a program has said, from the beginning of a line on.
std::string last_lines(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::size_t begin = text.size();
  for (int lines = 0; begin > 0 && text.size() - begin < shown_error_bytes; --begin)
    if (text[begin - 1] == '\n' && ++lines == shown_error_lines) break;
  text.remove_prefix(begin);
  return printable(text);
}

// What a start that failed with `error` has against the program, and the remedy. A name without a slash is looked for
// on the PATH, and nothing is known of it.
std::string why_not_started(int error, const Settings& settings) {
  namespace fs = std::filesystem;
  const std::string& name = settings.command.front();
  std::error_code unknown;
  const fs::path path = name.find('/') == std::string::npos ? fs::path() : fs::path(settings.directory) / name;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::is_directory(status)) return "it is a folder; name a program in it";
  if (error == EACCES && fs::is_regular_file(status))
    return text_of_errno(error) + "; chmod +x " + name + " makes it a program, or start it by its interpreter: sh " +
           name;
  if (error == ENOENT && fs::is_regular_file(status)) {
    std::string first;
    std::getline(std::ifstream(path), first);
    return first.starts_with("#!") ? "the interpreter of its first line is not there: " + printable(first.substr(2)) +
                                         "; correct that line, or install it"
                                   : "the loader that it asks for is not there; it was built for another system";
  }
  if (error == ENOEXEC)
    return text_of_errno(error) + "; it is a script without a first line such as #!/bin/sh, or of another machine";
  return text_of_errno(error) + "; give the name of a program on the PATH, or its path, as the first word of command";
}

// The attributes and file actions of a start, which are freed with it.
struct SpawnPlan {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnPlan() { posix_spawn_file_actions_init(&actions), posix_spawnattr_init(&attributes); }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() { posix_spawn_file_actions_destroy(&actions), posix_spawnattr_destroy(&attributes); }
};

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Program::Program(const Settings& settings, Waiting waiting,
                 const std::vector<std::pair<std::string, std::string>>& more)
    : name_(settings.command.front()), waiting_(waiting) {
  start(settings, more);
}

void Program::start(const Settings& settings, const std::vector<std::pair<std::string, std::string>>& more) {
  std::array<int, 2> sockets{-1, -1}, errors{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0 || pipe2(errors.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    for (const int fd : {sockets[0], sockets[1]})
      if (fd >= 0) close(fd);
    throw assay::Error(ASSAY_INTERNAL, "no descriptors for the program: " + text_of_errno(error));
  }
  socket_.reset(sockets[0]), errors_.reset(errors[0]);
  // Above the numbers that the program gets, so that none is overwritten before it is copied.
  const Descriptor its_socket(fcntl(sockets[1], F_DUPFD_CLOEXEC, 16)),
      its_errors(fcntl(errors[1], F_DUPFD_CLOEXEC, 16));
  close(sockets[1]), close(errors[1]);
  if (!its_socket || !its_errors)
    throw assay::Error(ASSAY_INTERNAL, "copying the descriptors of the program: " + text_of_errno(errno));
  for (const int fd : {socket_.get(), errors_.get()}) fcntl(fd, F_SETFL, O_NONBLOCK);

  SpawnPlan plan;
  if (!settings.directory.empty()) posix_spawn_file_actions_addchdir_np(&plan.actions, settings.directory.c_str());
  posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&plan.actions, its_errors.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, its_socket.get(), program_fd);
  posix_spawn_file_actions_addclosefrom_np(&plan.actions, program_fd + 1);
  posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  sigset_t all{}, none{};
  sigfillset(&all), sigemptyset(&none);
  posix_spawnattr_setsigdefault(&plan.attributes, &all);
  posix_spawnattr_setsigmask(&plan.attributes, &none);

  std::vector<std::string> words = settings.command;
  auto added = more;
  added.emplace_back("ASSAY_FD", std::to_string(program_fd));
  added.emplace_back("ASSAY_WAITING", waitings.name_of(waiting_));
  std::vector<std::string> variables = environment_of(settings, added);
  const int error = posix_spawnp(&pid_, name_.c_str(), &plan.actions, &plan.attributes, pointers_to(words).data(),
                                 pointers_to(variables).data());
  if (error != 0) {
    pid_ = -1;
    const std::string where = settings.directory.empty() ? "" : " in the working folder " + settings.directory;
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "the program '" + name_ + "' cannot be started" + where + ": " +
                                                   why_not_started(error, settings));
  }
  process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));  // glibc 2.36 has no such function for C++
  if (process_) return;
  const int refused = errno;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  throw assay::Error(ASSAY_UNSUPPORTED, "pidfd_open: " + text_of_errno(refused) + "; Linux 5.3 has it");
}

Program::~Program() {
  if (pid_ < 0) return;
  hang_up();
  const auto begin = Clock::now();
  if (!status_) kill(-pid_, SIGTERM);
  while (!status_ && Clock::now() - begin < grace) wait_for_end(patience);
  kill(-pid_, SIGKILL);  // what else is in its group
  if (status_) return;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void Program::hang_up() {
  if (socket_) shutdown(socket_.get(), SHUT_RDWR);
}

bool Program::say(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0)
      rest.remove_prefix(static_cast<std::size_t>(sent));
    else if (sent < 0 && (errno == EAGAIN || errno == EINTR))
      continue;  // a few bytes a step: the buffer is never full of them
    else
      return false;
  }
  return true;
}

void Program::read_lines() {
  std::array<char, 16 * 1024> buffer;  // not cleared: that would take longer than the reading, in each step
  const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got > 0)
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
  else if (got == 0 || (errno != EAGAIN && errno != EINTR))
    is_closed_ = true;
}

bool Program::has_said_more() {
  read_lines();
  return !unread_.empty();
}

bool Program::pass_errors_on() {
  std::array<char, 16 * 1024> buffer{};
  const ssize_t got = read(errors_.get(), buffer.data(), buffer.size());
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) errors_.reset();
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  for (std::size_t done = 0; done < size;) {
    const ssize_t put = write(STDERR_FILENO, buffer.data() + done, size - done);
    if (put < 0 && errno != EINTR) break;  // nobody keeps a log
    if (put > 0) done += static_cast<std::size_t>(put);
  }
  last_errors_.append(buffer.data(), size);
  if (last_errors_.size() > 2 * kept_error_bytes) last_errors_.erase(0, last_errors_.size() - kept_error_bytes);
  return true;
}

// What is left in the pipe of a program that has ended; bounded, as one that it has started may go on writing.
void Program::pass_last_errors_on() {
  for (int reads = 0; reads < most_last_reads && errors_ && pass_errors_on(); ++reads) {
  }
}

void Program::reap() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
}

Program::Event Program::wait(const std::function<bool()>& is_to_end) {
  const auto begin = Clock::now();
  for (unsigned reads = 0;; ++reads) {
    if (is_to_end && Clock::now() >= next_question_) {
      next_question_ = Clock::now() + patience;
      if (is_to_end()) return Event::asked;
    }
    const std::size_t end = unread_.find('\n', scanned_);
    if (end != std::string::npos) return Event::line;
    scanned_ = unread_.size();
    if (unread_.size() > most_line_bytes)
      throw assay::Error(ASSAY_INTERNAL, "the program has written more than " + std::to_string(most_line_bytes) +
                                             " bytes to ASSAY_FD without the end of a line");
    if (status_) {
      // What it had written before it ended is in the socket; another process may hold that open.
      const std::size_t before = unread_.size();
      if (!is_closed_) read_lines();
      if (unread_.size() > before) continue;
      pass_last_errors_on();
      return Event::ended;
    }
    if (is_closed_) return Event::closed;
    const bool is_busy = waiting_ == Waiting::busy && Clock::now() - begin < busy_for;
    if (is_busy && reads % reads_between_looks != reads_between_looks - 1) {
      read_lines();
      continue;
    }
    std::array<pollfd, 3> ends{{{process_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
    const int sleep_ms = is_busy ? 0 : is_to_end ? static_cast<int>(patience.count()) : -1;
    const int ready = poll(ends.data(), ends.size(), sleep_ms);
    if (ready < 0 && errno != EINTR)
      throw assay::Error(ASSAY_INTERNAL, "waiting for the program: " + text_of_errno(errno));
    if (ready <= 0) continue;
    if (ends[2].revents != 0) pass_errors_on();
    if (ends[1].revents != 0) read_lines();
    if (ends[0].revents != 0) reap();
  }
}

std::string Program::next_line() {
  const std::size_t end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  scanned_ = 0;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

bool Program::wait_for_end(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  while (!status_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> ends{{{process_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
    if (poll(ends.data(), ends.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
    if (ends[1].revents != 0) pass_errors_on();
    reap();
  }
  pass_last_errors_on();
  return true;
}

std::string Program::how_it_ended() const {
  std::string text = "is still running";
  if (status_ && WIFEXITED(*status_)) text = "ended with exit status " + std::to_string(WEXITSTATUS(*status_));
  if (status_ && WIFSIGNALED(*status_))
    text = "was ended by signal " + std::to_string(WTERMSIG(*status_)) + " (" + strsignal(WTERMSIG(*status_)) + ")";
  return text + what_it_said();
}

std::string Program::what_it_said() const {
  const std::string said = last_lines(last_errors_);
  if (said.empty()) return " and wrote nothing to standard error";
  const bool lacks_module = last_errors_.find("No module named 'assay'") != std::string::npos;
  return "; the end of its standard error:\n" + said +
         (lacks_module ? "\nassay.py is installed as share/assay/command/assay.py (in the sources: "
                         "plugins/command/client): copy it "
                         "beside the script, or name its folder in PYTHONPATH"
                       : "");
}

}  // namespace command
