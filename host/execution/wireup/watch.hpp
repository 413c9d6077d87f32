// What happened in a KeyValueStore, for a loop that polls descriptors.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::wireup {

// One thing that happened under a watched prefix.
struct Change {
  enum class Kind { set, joined, left, lost };
  Kind kind = Kind::set;
  std::string name;        // set: the key; otherwise the group
  std::int32_t rank = -1;  // of the member; -1: a key was set
  std::string text;        // joined, left: the member's host; lost: why
};

// Made by KeyValueStore::watch, and alive as long as somebody holds it. Thread-safe.
class Watch {
 public:
  // Throws WireupError when the system has no descriptor left.
  explicit Watch(std::string prefix);

  // Readable while take() has something to give. Never read from it.
  int fd() const noexcept { return event_.get(); }
  // What happened since the last call, in order. A key that was set several times in between comes once: ask the store
  // for its value.
  std::vector<Change> take();

  // For the store.
  void note(const Change& change);

 private:
  const std::string prefix_;
  Fd event_;
  std::mutex mutex_;
  std::vector<Change> changes_;
  std::set<std::string, std::less<>> keys_set_;  // of changes_
};

}  // namespace assay::host::wireup
