// Collects the JSON lines that a worker writes to its event pipe.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::launch {

// The lines received so far. An event is one line: a JSON object whose "event" says what it is; the one named "result"
// ends a case.
struct WorkerEvents {
  std::optional<std::string> result;   // the last complete line with "event": "result"
  std::vector<std::string> others;     // every other event, in order
  std::vector<std::string> malformed;  // complete lines that are no events, fit to print, cut after 200 bytes
  std::string torn;                    // what came after the last newline: a worker that died while writing
  std::size_t total_bytes = 0;
};

class EventReader {
 public:
  static constexpr std::size_t total_bytes_max = std::size_t{256} << 20;

  explicit EventReader(std::function<void(const std::string& line)> on_event, std::size_t bytes_max = total_bytes_max)
      : on_event_(std::move(on_event)), bytes_max_(bytes_max) {}

  enum class State { open, closed, overflow };
  // Reads what the non-blocking `fd` has, no more than 4 MiB at a time, so that a worker that floods the pipe does not
  // keep its parent from the clock. `overflow`: more than bytes_max came; nothing further is kept.
  State read_from(int fd);
  void take(std::string_view bytes);
  std::size_t total_bytes() const { return events_.total_bytes; }
  const std::optional<std::string>& result() const { return events_.result; }  // so far
  WorkerEvents finish() &&;

 private:
  void take_line(std::string line);

  std::function<void(const std::string&)> on_event_;
  std::size_t bytes_max_;
  WorkerEvents events_;
  std::string partial_;
};

}  // namespace assay::host::launch
