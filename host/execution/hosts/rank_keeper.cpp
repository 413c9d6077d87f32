#include "hosts/rank_keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/exit_code.hpp"
#include "common/fd.hpp"
#include "common/host_name.hpp"
#include "common/process_tree.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "hosts/host_check.hpp"
#include "launch/signals.hpp"

namespace assay::host::hosts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds grace{5};  // from SIGTERM to SIGKILL
constexpr std::size_t most_pending = std::size_t{1} << 20;

// What a rank prints, as whole lines: a character of several bytes is not cut.
struct Output {
  Fd fd;
  int number = 1;  // 1: standard output; 2: error
  std::string unfinished;
};

struct Rank {
  std::int64_t number = 0;
  pid_t pid = -1;
  bool has_ended = false;
  int status = 0;
  std::array<Output, 2> outputs;
};

class RankKeeper {
 public:
  int run() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    std::error_code error;
    program_ = fs::read_symlink("/proc/self/exe", error).string();
    pending_ += keeper_greeting;
    say({{"assay", keeper_protocol}, {"program", sha256_of_file("/proc/self/exe")}, {"host_name", host_name()}});
    while (!is_over()) turn();
    kill_all();
    return has_failed_ ? exit_failed : exit_ok;
  }

 private:
  bool is_over() const {
    if (is_gone_) return !has_live_rank();
    return is_ending_ && !has_live_rank() && pending_.empty();
  }

  bool has_live_rank() const {
    for (const auto& rank : ranks_)
      if (!rank->has_ended) return true;
    return false;
  }

  void turn() {
    std::vector<pollfd> watched;
    if (!is_gone_) watched.push_back({STDIN_FILENO, POLLIN, 0});
    if (!is_gone_ && !pending_.empty()) watched.push_back({STDOUT_FILENO, POLLOUT, 0});
    if (pending_.size() < most_pending)
      for (const auto& rank : ranks_)
        for (const Output& output : rank->outputs)
          if (output.fd) watched.push_back({output.fd.get(), POLLIN, 0});
    if (!is_ending_) watched.push_back({interrupts_.wake_fd(), POLLIN, 0});
    poll(watched.data(), watched.size(), 50);
    read_input();
    if (pending_.size() < most_pending)
      for (const auto& rank : ranks_)
        for (Output& output : rank->outputs) read_output(*rank, output);
    reap();
    write_pending();
    if (!is_ending_ && interrupts_.count()->load() > 0) end("this host ends the session");
    if (!is_ending_ && Clock::now() - last_heard_ > silence_) {
      end(
          fmt::format("the machine that started the ranks was silent for {} s, and the ranks here were ended; finished "
                      "cases are kept; {}",
                      silence_.count(), remedy_));
      write_pending();  // it may have been suspended alone, and read this later
      is_gone_ = has_failed_ = true;
    }
    if (is_ending_ && Clock::now() > kill_at_) kill_all();
  }

  void say(const Json& message) {
    if (!is_gone_) pending_ += message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  void write_pending() {
    while (!is_gone_ && !pending_.empty()) {
      const ssize_t n = write(STDOUT_FILENO, pending_.data(), pending_.size());
      if (n > 0)
        pending_.erase(0, static_cast<std::size_t>(n));
      else if (errno == EAGAIN)
        return;
      else if (errno != EINTR)
        lose();
    }
    if (is_gone_) pending_.clear();
  }

  // The connection is gone.
  void lose() {
    is_gone_ = has_failed_ = true;
    end("");
  }

  void read_input() {
    std::array<char, 65536> block;
    while (!is_gone_) {
      const ssize_t n = read(STDIN_FILENO, block.data(), block.size());
      if (n == 0) return is_ending_ ? void(is_gone_ = true) : lose();
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) return lose();
      input_.append(block.data(), static_cast<std::size_t>(n));
      last_heard_ = Clock::now();
    }
    std::size_t begin = 0;
    for (std::size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1)
      obey(Json::parse(input_.substr(begin, end - begin)));
    input_.erase(0, begin);
  }

  void obey(const Json& order) {
    const std::string what = order.at("do");
    if (what == "time") say({{"time_s", seconds_since_1970()}});
    if (what == "check") {
      shared_ = order.at("shared").get<std::string>();
      if (order.at("write").get<bool>()) shared_name_ = order.at("shared_name");
      say(answer(order));
    }
    if (what == "alive") silence_ = std::chrono::seconds(order.at("silence_s").get<std::int64_t>());
    if (what == "checked") remove_shared_file(shared_, std::exchange(shared_name_, ""));
    if (what == "start") start(order);
    if (what == "detach") detach(order);
    if (what == "interrupt")
      for (const auto& rank : ranks_)
        if (!rank->has_ended) kill(rank->pid, SIGINT);
    if (what == "end") end("");
  }

  void start(const Json& order) {
    const std::string folder = order.at("folder");
    if (chdir(folder.c_str()) != 0) has_failed_ = true;  // checked before
    std::map<std::string, std::string> environment;
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : order.at("environment").items()) environment[name] = value;
    const std::vector<std::string> arguments = order.at("arguments");
    remedy_ = order.at("remedy");
    for (const Json& each : order.at("ranks")) {
      auto of_rank = environment;
      for (const auto& [name, value] : each.at("environment").items()) of_rank[name] = value;
      ranks_.push_back(started(each.at("rank"), arguments, of_rank));
    }
  }

  // A program that outlives this keeper and its session.
  void detach(const Json& order) {
    const std::string folder = order.at("folder"), log = order.at("log");
    const std::vector<std::string> arguments = order.at("arguments");
    std::vector<char*> argv{const_cast<char*>(program_.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const auto& [name, value] : order.at("environment").items())
      setenv(name.c_str(), value.get<std::string>().c_str(), 1);
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start a program");
    if (pid != 0) return;
    setsid();
    for (const int number : {SIGINT, SIGTERM, SIGPIPE}) signal(number, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    const int nothing = open("/dev/null", O_RDONLY), out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (nothing < 0 || out < 0 || chdir(folder.c_str()) != 0) _exit(1);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }

  std::unique_ptr<Rank> started(std::int64_t number, const std::vector<std::string>& arguments,
                                const std::map<std::string, std::string>& environment) const {
    auto rank = std::make_unique<Rank>();
    rank->number = number;
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
    std::vector<char*> argv{const_cast<char*>(program_.c_str())}, envp;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    for (const std::string& entry : entries) envp.push_back(const_cast<char*>(entry.c_str()));
    argv.push_back(nullptr), envp.push_back(nullptr);
    std::array<Fd, 2> writers;
    for (std::size_t i = 0; i < 2; ++i) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
      rank->outputs[i].fd = Fd(ends[0]), rank->outputs[i].number = static_cast<int>(i) + 1, writers[i] = Fd(ends[1]);
      fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const pid_t keeper = getpid();
    rank->pid = fork();
    if (rank->pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start a rank");
    if (rank->pid == 0) {
      setpgid(0, 0);
      // A keeper that is killed takes the ranks with it, and they their workers.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != keeper) _exit(1);
      for (const int number_of_signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number_of_signal, SIG_DFL);
      dup2(nothing.get(), STDIN_FILENO);
      for (std::size_t i = 0; i < 2; ++i) dup2(writers[i].get(), static_cast<int>(i) + 1);
      execve("/proc/self/exe", argv.data(), envp.data());
      _exit(127);
    }
    return rank;
  }

  void read_output(const Rank& rank, Output& output) {
    std::array<char, 65536> block;
    while (output.fd && pending_.size() < most_pending) {
      const ssize_t n = read(output.fd.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        output.fd.reset();
        break;
      }
      output.unfinished.append(block.data(), static_cast<std::size_t>(n));
    }
    const std::size_t last = output.unfinished.find_last_of("\n\r");
    std::size_t ready = last == std::string::npos ? 0 : last + 1;
    if (!output.fd || output.unfinished.size() - ready > most_pending) ready = output.unfinished.size();
    if (ready == 0) return;
    say({{"out", output.number}, {"rank", rank.number}, {"text", output.unfinished.substr(0, ready)}});
    output.unfinished.erase(0, ready);
  }

  void reap() {
    for (const auto& rank : ranks_)
      if (!rank->has_ended && waitpid(rank->pid, &rank->status, WNOHANG) == rank->pid) {
        rank->has_ended = true;
        for (Output& output : rank->outputs) {  // what a process that it has left running prints is not waited for
          read_output(*rank, output);
          output.fd.reset();
          read_output(*rank, output);
        }
        Json ended{{"ended", rank->number}};
        if (WIFEXITED(rank->status))
          ended["code"] = WEXITSTATUS(rank->status);
        else
          ended["signal"] = WTERMSIG(rank->status);
        say(ended);
      }
  }

  void end(const std::string& reason) {
    if (is_ending_) return;
    is_ending_ = true;
    kill_at_ = Clock::now() + grace;
    remove_shared_file(shared_, std::exchange(shared_name_, ""));
    if (!reason.empty()) say({{"problem", reason}});
    for (const auto& rank : ranks_)
      if (!rank->has_ended) kill(rank->pid, SIGTERM);
  }

  // The ranks and whatever they have started, also what has its own session: orphans come to this process.
  void kill_all() {
    if (ranks_.empty()) return;  // what was detached goes on
    for (int i = 0; i < 1000; ++i) {
      for (const pid_t left : descendants_of(getpid(), getpid(), "")) kill(left, SIGKILL);
      reap();
      // The status of a rank is for reap().
      if (!has_live_rank()) {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
      }
      poll(nullptr, 0, 1);
    }
  }

  launch::InterruptHandler interrupts_;
  std::string program_, input_, pending_, remedy_ = "--resume runs the rest";
  std::vector<std::unique_ptr<Rank>> ranks_;
  fs::path shared_;
  std::string shared_name_;  // of the file that this host has written; "" without one
  bool is_gone_ = false, is_ending_ = false, has_failed_ = false;
  Clock::time_point last_heard_ = Clock::now(), kill_at_{};
  std::chrono::seconds silence_{60};
};

}  // namespace

int keep_ranks() { return RankKeeper().run(); }

}  // namespace assay::host::hosts
