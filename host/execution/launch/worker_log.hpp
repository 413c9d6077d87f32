// A worker's log: what it and its descendants write to standard output and error, whole up to a limit, and beyond it
// the beginning and the end, with a line between them that says how much was dropped.
//
// The worker writes into a pipe, and a thread of the host carries that to the file. Why so:
// - A file that the worker wrote itself could be bounded by nothing but RLIMIT_FSIZE, which hits every file of the
//   worker, or by cutting it now and then, between which a worker at 2 GB/s fills a disk. Behind a pipe the limit holds
//   to the byte, and a full disk is the host's trouble: the worker neither stops nor notices.
// - Bytes in a pipe outlive their writer: what a worker wrote before it was killed is in its log.
// - A thread, because the loop that watches the workers also reads results and writes to a terminal, which may be
//   slow: meanwhile a talkative worker would wait. It sleeps as long as nobody writes. After a little text it naps for
//   5 ms, so that a line a step does not wake it each step; while much comes it naps for 0.05 ms, and keeps up with
//   GB/s.
// - The end is not awaited, since a descendant that escaped may hold the pipe open for ever: finish() takes what is in
//   the pipe at that moment. Whoever writes later gets SIGPIPE.
// When the host is killed, what the pipe and the kept end hold is lost; its workers are killed with it.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::launch {

constexpr std::uint64_t default_log_limit_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t least_log_limit_bytes = 2;  // a beginning and an end

class WorkerLog {
 public:
  // Appends to `file`, which is made when missing; what it held before does not count. A limit below
  // least_log_limit_bytes counts as that much. Throws LaunchError.
  WorkerLog(const std::filesystem::path& file, std::uint64_t limit_bytes);
  WorkerLog(const WorkerLog&) = delete;
  WorkerLog& operator=(const WorkerLog&) = delete;
  ~WorkerLog() { finish(); }

  // The worker gets it as its standard output and error; the host must not keep it.
  Fd take_write_end() { return std::move(write_end_); }
  std::uint64_t begin_offset() const { return begin_offset_; }  // the size of the file before

  // Completes the file with what has been written so far, and takes nothing more. Call it once the writers are gone.
  void finish() noexcept;
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }  // after finish()

 private:
  void carry();
  bool waits_for_stop(std::chrono::nanoseconds time) const;  // whether it came
  std::size_t take(std::size_t bytes_max);  // moves what is there, stops at what is not; the number of bytes
  void keep(const char* bytes, std::size_t count);
  void keep_in_end(const char* bytes, std::size_t count);
  void complete();
  void write_out(const char* bytes, std::size_t count);

  const std::uint64_t limit_bytes_;
  Fd file_, read_end_, write_end_, stop_;
  std::uint64_t begin_offset_ = 0;

  // The thread's alone while it runs.
  const std::size_t end_bytes_max_;     // how much is kept of the end
  std::uint64_t beginning_bytes_left_;  // until the end begins
  bool line_is_open_ = false;           // the beginning does not end with a line
  std::vector<char> buffer_;
  std::vector<char> end_;        // a ring of end_bytes_max_, made when it is needed
  std::size_t end_place_ = 0;    // where its next byte goes
  std::uint64_t end_bytes_ = 0;  // that were put into it in all
  std::uint64_t dropped_bytes_ = 0;
  bool is_closed_ = false;  // nobody holds the write end any longer

  std::thread thread_;
};

}  // namespace assay::host::launch
