// A program as a child process: its end of the descriptor ASSAY_FD, the end of its standard error, and how it ended. It
// gets its own process group, which is ended with it.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "settings.hpp"

namespace command {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Descriptor() { reset(); }
  void reset(int fd = -1);
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The number that ASSAY_FD has in the program: a shell's redirections name it by one digit.
inline constexpr int program_fd = 3;

class Program {
 public:
  // Starts it. `more` is set in its environment, then the settings' own variables. Throws assay::Error where it cannot
  // be started; the text names it. `waiting` is what both sides do until the other one says something.
  Program(const Settings& settings, Waiting waiting, const std::vector<std::pair<std::string, std::string>>& more);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();  // ends what is left of it

  enum class Event {
    line,    // next_line() has one
    closed,  // its end of the descriptor is closed in all processes that had it
    ended,   // and all that it had written was read
    asked,   // `is_to_end` says so
  };
  // Waits for the next of these, busily for the first 0.1 s where the program was started so. `is_to_end` is asked
  // every 100 ms, where it is not empty. Throws assay::Error at a line without an end.
  Event wait(const std::function<bool()>& is_to_end);
  std::string next_line();
  // As wait(), for no longer than this, and for its end alone; false where it goes on.
  bool wait_for_end(std::chrono::milliseconds limit);

  // Says a line to it. False where it has closed its end or is gone.
  bool say(const std::string& line);
  // That nothing more comes from here.
  void hang_up();

  // Whether anything has come that nobody has taken: looks, and does not wait.
  bool has_said_more();
  bool has_ended() const { return status_.has_value(); }
  bool ended_well() const { return status_ && *status_ == 0; }
  // "ended with exit status 3; its last lines on standard error: ...", "was ended by signal 11 (Segmentation fault)"
  std::string how_it_ended() const;
  // " and wrote nothing to standard error", or the end of what it wrote.
  std::string what_it_said() const;

 private:
  void start(const Settings& settings, const std::vector<std::pair<std::string, std::string>>& more);
  void read_lines();
  bool pass_errors_on();  // false where there was nothing
  void pass_last_errors_on();
  void reap();

  std::string name_;
  Waiting waiting_;
  pid_t pid_ = -1;
  Descriptor process_, socket_, errors_;
  std::string unread_;  // what has come and is no line yet, or is one that nobody has asked for
  std::size_t scanned_ = 0;
  bool is_closed_ = false;
  std::chrono::steady_clock::time_point next_question_{};  // whether it is to end
  std::optional<int> status_;                              // of waitpid
  std::string last_errors_;
};

}  // namespace command
