// What one rank has found by timing, taken over by the ranks with equal devices. For all devices; tested without a GPU.
//
// The first rank that needs an algorithm leads: it chooses as if it were alone and announces each choice as it makes
// it. The others follow: they take the announced choices in whatever order they need them, and choose for themselves
// what the leader does not prepare. The leader waits for nobody, so no order of operations ends in a deadlock.
// Followers are one operation behind it, with their devices idle. They write no file.
#pragma once
#include <assay/compute/algorithm_exchange.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "algorithm_cache.hpp"

namespace assay::compute {

class SharedAlgorithms {
 public:
  // `devices` names all that must be alike where choices are to be; it is asked once, when it is first needed.
  explicit SharedAlgorithms(std::function<std::string()> devices) : ask_devices_(std::move(devices)) {}
  SharedAlgorithms(const SharedAlgorithms&) = delete;
  SharedAlgorithms& operator=(const SharedAlgorithms&) = delete;

  // From here on choices are shared, until it is called with null: a leader then says that it has no more. `with` must
  // live until then. Throws COMM_ERROR.
  void share(AlgorithmExchange* with);

  // Of a follower, what the leader has chosen for `key`: waits until it has, or has ended. Nothing where nothing is
  // shared, on the leader, and where the leader does not prepare `key`. Throws COMM_ERROR, as the exchange does.
  std::optional<CachedAlgorithm> find(const std::string& key);
  // A choice made here; a leader announces it. `microseconds` is 0 if it was not timed.
  void tell(const std::string& key, const CachedAlgorithm& algorithm);

 private:
  enum class Role { undecided, leader, follower };
  void decide();
  void read_next();

  std::function<std::string()> ask_devices_;
  std::string devices_;
  AlgorithmExchange* exchange_ = nullptr;  // null: nothing is shared
  // Of the exchange at hand.
  Role role_ = Role::undecided;
  std::int64_t next_ = 0;  // text to write or to read
  bool has_ended_ = false;
  std::map<std::string, CachedAlgorithm> told_;
};

// "12.3 us, measured by another rank", for the list of primitives.
std::string origin_of_told(const CachedAlgorithm& choice);

}  // namespace assay::compute
