// The state of a shard's cases, read from its files.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "shard/attempt.hpp"
#include "shard/shard_plan.hpp"

namespace assay::host::shard {

struct CaseTrace {
  std::string status;           // the word of its record; "" without one
  std::int64_t attempt = 0;     // the last that began it, or has its record
  std::int64_t begun = 0;       // how often it was begun
  std::int64_t unfinished = 0;  // begun, and neither ended nor left: it may have taken its job with it
  std::int64_t left = 0;        // begun, and given up because the job was asked to end
  bool is_quarantined = false;
  double last_begin_s = 0;  // seconds since 1970
  bool is_at_hand = false;  // begun by the last attempt, and not ended
};

struct ShardState {
  std::vector<Attempt> attempts;
  std::map<std::int64_t, CaseTrace> cases;  // by index; those that no attempt has begun are absent

  bool is_finished(std::int64_t case_index) const;  // it has a record, or is in quarantine
};

// A case that has taken its job with it so often is not started again.
inline constexpr std::int64_t most_unfinished = 2;

// Throws StorageError.
ShardState read_shard_state(const std::filesystem::path& shard_folder);

}  // namespace assay::host::shard
