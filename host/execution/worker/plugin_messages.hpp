// What a plugin says beside its statuses: the text of a call that failed, and lines of its log.
#pragma once
#include <assay/abi.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::worker {

// A text that a plugin has passed, which may be null.
inline std::string_view view_of(assay_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }

// The longest text of at most `most_bytes` bytes that does not end within a character, and dots where it was longer.
std::string cut_to(std::string text, std::size_t most_bytes);

// Any thread may call.
class PluginMessages {
 public:
  void set(std::string text);  // of the status that the call in progress returns
  // The text set for the status that a call has just returned; cleared by the reading.
  std::string take();

  // A line of the log, to standard error. `level`: as of assay_host's log.
  void log(std::int32_t level, std::string_view text);
  void warn(std::string text);
  // What the workload has warned of, each text once.
  std::vector<std::string> warnings() const;

 private:
  void keep_warning(std::string text);  // under the lock

  mutable std::mutex mutex_;
  std::string message_;
  std::vector<std::string> warnings_;
};

}  // namespace assay::host::worker
