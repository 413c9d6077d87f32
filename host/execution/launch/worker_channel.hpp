// The worker's side: the case it is to run, the board it shows its progress on, the pipe it answers through.
#pragma once
#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "launch/board.hpp"

namespace assay::host::launch {

class WorkerChannel {
 public:
  // Takes over the descriptors that spawn() left and moves the pipe far away from the numbers that a plugin may close
  // or write to by mistake. Ignores SIGPIPE, and makes standard output flush at each line, so that what a plugin
  // printed before a crash is in the log. Throws LaunchError when this process was not started by spawn().
  WorkerChannel();

  // The JSON text of the case.
  const std::string& read_spec() const { return spec_; }
  // One event: a JSON object in one line, without its newline. Blocks while the parent is behind. Ends the process
  // quietly when the parent is gone: nobody is left to read it.
  void send(std::string_view json_line);
  ProgressBoard& board() { return board_; }

 private:
  struct Descriptors {
    int events, spec, board;
  };
  static Descriptors find_descriptors();
  explicit WorkerChannel(const Descriptors& fds);

  ProgressBoard board_;
  std::string spec_;
  Fd events_;
};

}  // namespace assay::host::launch
