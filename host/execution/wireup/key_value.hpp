// What joins the ranks of a case before they can talk to each other: keys, counters, exchanges.
#pragma once
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::wireup {

// A deadline that passed, a rank that was lost, a service that does not answer. The text names the rank or the key.
class WireupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Keys, counters, exchanges and groups below this belong to the process that holds the store: a client reads and waits
// for them, and is refused when it writes. What others must obey stands there.
inline constexpr std::string_view leader_prefix = "leader/";

// Thread-safe. Implemented by KeyValueStore (in this process) and KeyValueClient (through a socket).
class KeyValue {
 public:
  using Timeout = std::chrono::milliseconds;
  static constexpr Timeout without_end = std::chrono::hours(24 * 365);

  KeyValue() = default;
  KeyValue(const KeyValue&) = delete;
  KeyValue& operator=(const KeyValue&) = delete;
  virtual ~KeyValue() = default;

  virtual void set(std::string_view key, std::string_view value) = 0;
  // Waits until the key has a value.
  virtual std::string get(std::string_view key, Timeout timeout) = 0;
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  // Each of `count` ranks calls it once per name; returns every rank's value, in the order of ranks, when all are
  // there. When the deadline passes, or a member with one of these ranks is lost, the text names the ranks that are
  // missing.
  virtual std::vector<std::string> exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                            std::string_view value, Timeout timeout) = 0;
};

}  // namespace assay::host::wireup
