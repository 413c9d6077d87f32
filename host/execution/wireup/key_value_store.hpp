// The keys, counters, exchanges and members themselves, in the process that everyone's requests reach.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wireup/key_value.hpp"
#include "wireup/watch.hpp"

namespace assay::host::wireup {

// "rank r of group g on host h". A group is named by a prefix of keys: what is stored under it belongs to it.
struct Member {
  std::string group;
  std::int32_t rank = 0;
  std::string host;
};

// How a wait ended: with values (one for get, one for each rank for exchange), or with the text of an error.
struct WaitOutcome {
  std::shared_ptr<const std::vector<std::string>> values;  // null: an error
  std::string error;
};

// Thread-safe. Nobody may be waiting in it when it is destroyed.
//
// An exchange ends the same way for all: when the deadline of one waiting rank passes, it is over for every rank that
// waits and for every rank that comes later, with the same text.
class KeyValueStore final : public KeyValue {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Timeout timeout) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::vector<std::string> exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                    std::string_view value, Timeout timeout) override;

  // The value of a key, without waiting.
  std::optional<std::string> find(std::string_view key) const;
  // Forgets keys, counters, exchanges, members and losses under the prefix. Who waits for one of them gets an error.
  void erase_prefix(std::string_view prefix);

  // Throws WireupError when the group has this rank already, or has lost it.
  using MemberId = std::uint64_t;
  MemberId join(const Member& member);
  void leave(MemberId member);  // with a goodbye: nothing is lost
  // Without one: lose() for this member, with a text that names rank, host and reason. Nothing when the member is
  // forgotten (erase_prefix).
  void lose(MemberId member, std::string_view reason);
  // From now until the group's prefix is erased: exchanges under it that these ranks have not come to, and gets of keys
  // under it that have no value, fail at once with `text`. It replaces the text of an earlier loss of the same rank.
  void lose(std::string_view group, std::span<const std::int32_t> ranks, std::string_view text);

  // Reports keys that are set under the prefix, and members that join it, leave it or are lost.
  std::shared_ptr<Watch> watch(std::string_view prefix);

  // The same waits for a caller that must not block. `done` is called once, from any thread or from within the call,
  // with the store locked: it must hand the outcome over and return, and must not call the store. After cancel() it is
  // not called any more. The caller keeps the clock and calls expire() when `timeout`, which is for the text, has
  // passed. Unknown and finished ids are ignored.
  using WaitId = std::uint64_t;
  using Done = std::function<void(WaitOutcome&&)>;
  WaitId begin_get(std::string_view key, Timeout timeout, Done done);
  WaitId begin_exchange(std::string_view name, std::int32_t rank, std::int32_t count, std::string_view value,
                        Timeout timeout, Done done);
  void expire(WaitId wait);
  void cancel(WaitId wait);
  // Waits under way, those of blocked callers included.
  std::size_t waits() const;

 private:
  struct Exchange {
    std::vector<std::optional<std::string>> values;  // by rank
    std::int32_t present = 0;
    std::vector<WaitId> waits;
    bool finished = false;
    std::string broken;  // not empty: why it is over for everybody
  };
  struct Wait {
    std::string name;
    bool for_exchange = false;
    Timeout timeout{};
    Done done;
  };
  struct Present {
    MemberId id = 0;
    std::string host;
  };
  template <typename T>
  using ByName = std::map<std::string, T, std::less<>>;
  using Losses = std::map<std::int32_t, std::string>;  // rank -> text

  // All of these: with mutex_ held.
  void end(WaitId wait, WaitOutcome outcome);
  void end_all(std::vector<WaitId> waits, const WaitOutcome& outcome);
  void break_exchange(const std::string& name, Exchange& exchange, std::string text);
  void lose_locked(std::string_view group, std::span<const std::int32_t> ranks, std::string_view text);
  std::optional<std::string> loss_under(std::string_view key) const;
  std::optional<std::string> loss_in(std::string_view name, const Exchange& exchange) const;
  std::string missing_text(std::string_view name, const Exchange& exchange, Timeout timeout) const;
  void announce(const Change& change);

  WaitOutcome wait_for(Timeout timeout, const std::function<WaitId(Done)>& begin);

  mutable std::mutex mutex_;
  ByName<std::string> values_;
  ByName<std::int64_t> counters_;
  ByName<Exchange> exchanges_;
  ByName<std::vector<WaitId>> gets_;  // waiting, by key
  std::unordered_map<WaitId, Wait> waits_;
  WaitId last_wait_ = 0;
  ByName<std::map<std::int32_t, Present>> members_;  // by group and rank
  std::unordered_map<MemberId, Member> member_by_id_;
  MemberId last_member_ = 0;
  ByName<Losses> losses_;  // by group
  std::vector<std::weak_ptr<Watch>> watches_;
};

}  // namespace assay::host::wireup
