#include "wireup/key_value_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "common/rank_name.hpp"
#include "wireup/seconds_text.hpp"

namespace assay::host::wireup {
namespace {

// More than a machine park has; keeps a wrong number from reserving the memory.
constexpr std::int32_t ranks_max = 1 << 20;
constexpr std::size_t missing_described = 8;
// std::future adds the timeout to the clock: the sum must fit.
constexpr KeyValue::Timeout wait_max = std::chrono::hours(24 * 365);

std::shared_ptr<const std::vector<std::string>> one_value(std::string_view value) {
  return std::make_shared<const std::vector<std::string>>(1, std::string(value));
}

WaitOutcome failure(std::string text) { return {nullptr, std::move(text)}; }

// Calls act(iterator) for every entry whose name starts with the prefix; act returns the iterator to go on with.
template <typename Map, typename Act>
void for_prefix(Map& map, std::string_view prefix, Act act) {
  for (auto entry = map.lower_bound(prefix); entry != map.end() && entry->first.starts_with(prefix);)
    entry = act(entry);
}

}  // namespace

void KeyValueStore::set(std::string_view key, std::string_view value) {
  std::lock_guard lock(mutex_);
  values_.insert_or_assign(std::string(key), std::string(value));
  if (const auto waiting = gets_.find(key); waiting != gets_.end()) {
    std::vector<WaitId> waits = std::move(waiting->second);
    gets_.erase(waiting);
    end_all(std::move(waits), {one_value(value), {}});
  }
  announce({Change::Kind::set, std::string(key), -1, {}});
}

std::int64_t KeyValueStore::add(std::string_view key, std::int64_t delta) {
  std::lock_guard lock(mutex_);
  std::int64_t& counter = counters_.try_emplace(std::string(key), 0).first->second;
  // A sum that wraps around is a caller's mistake, but must not be undefined behaviour.
  counter = static_cast<std::int64_t>(static_cast<std::uint64_t>(counter) + static_cast<std::uint64_t>(delta));
  return counter;
}

std::optional<std::string> KeyValueStore::find(std::string_view key) const {
  std::lock_guard lock(mutex_);
  const auto entry = values_.find(key);
  if (entry == values_.end()) return std::nullopt;
  return entry->second;
}

std::string KeyValueStore::get(std::string_view key, Timeout timeout) {
  const WaitOutcome outcome = wait_for(timeout, [&](Done done) { return begin_get(key, timeout, std::move(done)); });
  if (!outcome.values) throw WireupError(outcome.error);
  return outcome.values->front();
}

std::vector<std::string> KeyValueStore::exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                                 std::string_view value, Timeout timeout) {
  const WaitOutcome outcome =
      wait_for(timeout, [&](Done done) { return begin_exchange(name, rank, count, value, timeout, std::move(done)); });
  if (!outcome.values) throw WireupError(outcome.error);
  return *outcome.values;
}

WaitOutcome KeyValueStore::wait_for(Timeout timeout, const std::function<WaitId(Done)>& begin) {
  // Shared with the callback, which may still be in set_value when the waiting side has the outcome already.
  const auto promise = std::make_shared<std::promise<WaitOutcome>>();
  std::future<WaitOutcome> outcome = promise->get_future();
  const WaitId wait = begin([promise](WaitOutcome&& result) { promise->set_value(std::move(result)); });
  if (outcome.wait_for(std::min(timeout, wait_max)) != std::future_status::ready) expire(wait);
  return outcome.get();
}

KeyValueStore::WaitId KeyValueStore::begin_get(std::string_view key, Timeout timeout, Done done) {
  std::lock_guard lock(mutex_);
  const WaitId id = ++last_wait_;
  if (const auto entry = values_.find(key); entry != values_.end()) {
    done({one_value(entry->second), {}});
  } else if (const auto loss = loss_under(key)) {
    done(failure(fmt::format("'{}' will not come: {}", key, *loss)));
  } else {
    waits_.emplace(id, Wait{std::string(key), false, timeout, std::move(done)});
    gets_[std::string(key)].push_back(id);
  }
  return id;
}

KeyValueStore::WaitId KeyValueStore::begin_exchange(std::string_view name, std::int32_t rank, std::int32_t count,
                                                    std::string_view value, Timeout timeout, Done done) {
  std::lock_guard lock(mutex_);
  const WaitId id = ++last_wait_;
  if (count < 1 || count > ranks_max || rank < 0 || rank >= count) {
    done(failure(fmt::format("exchange '{}' was called as rank {} of {}; expected a rank from 0 below the count", name,
                             rank, count)));
    return id;
  }
  const auto place = exchanges_.try_emplace(std::string(name)).first;
  Exchange& exchange = place->second;
  if (exchange.values.empty()) exchange.values.resize(static_cast<std::size_t>(count));
  std::optional<std::string>& mine =
      exchange.values[std::min(static_cast<std::size_t>(rank), exchange.values.size() - 1)];
  if (exchange.values.size() != static_cast<std::size_t>(count)) {
    done(failure(fmt::format("exchange '{}': rank {} says that there are {} ranks, others said {}", name, rank, count,
                             exchange.values.size())));
  } else if (!exchange.broken.empty()) {
    done(failure(exchange.broken));
  } else if (mine) {
    done(failure(fmt::format("exchange '{}' was called twice by rank {}; a name serves once", name, rank)));
  } else {
    mine = value;
    ++exchange.present;
    waits_.emplace(id, Wait{std::string(name), true, timeout, std::move(done)});
    exchange.waits.push_back(id);
    if (exchange.present == count) {
      auto all = std::make_shared<std::vector<std::string>>();
      all->reserve(exchange.values.size());
      // The values stay behind as empty texts: they show that the rank was here.
      for (auto& each : exchange.values) all->push_back(std::exchange(*each, {}));
      exchange.finished = true;
      end_all(std::exchange(exchange.waits, {}), {std::move(all), {}});
    } else if (const auto loss = loss_in(name, exchange)) {
      break_exchange(place->first, exchange, *loss);
    }
  }
  return id;
}

void KeyValueStore::expire(WaitId id) {
  std::lock_guard lock(mutex_);
  const auto entry = waits_.find(id);
  if (entry == waits_.end()) return;
  const Wait& wait = entry->second;
  if (wait.for_exchange) {
    const auto place = exchanges_.find(wait.name);
    break_exchange(place->first, place->second, missing_text(place->first, place->second, wait.timeout));
    return;
  }
  const auto waiting = gets_.find(wait.name);
  std::erase(waiting->second, id);
  if (waiting->second.empty()) gets_.erase(waiting);
  end(id, failure(fmt::format("nobody set '{}' within {}", wait.name, seconds_text(wait.timeout))));
}

void KeyValueStore::cancel(WaitId id) {
  std::lock_guard lock(mutex_);
  const auto entry = waits_.extract(id);
  if (entry.empty()) return;
  const Wait& wait = entry.mapped();
  if (wait.for_exchange) {
    std::erase(exchanges_.find(wait.name)->second.waits, id);
    return;
  }
  const auto waiting = gets_.find(wait.name);
  std::erase(waiting->second, id);
  if (waiting->second.empty()) gets_.erase(waiting);
}

std::size_t KeyValueStore::waits() const {
  std::lock_guard lock(mutex_);
  return waits_.size();
}

void KeyValueStore::erase_prefix(std::string_view prefix) {
  std::lock_guard lock(mutex_);
  const WaitOutcome erased = failure(fmt::format("the keys under '{}' were erased during the wait", prefix));
  const auto erase = [](auto& map) { return [&map](auto entry) { return map.erase(entry); }; };
  for_prefix(values_, prefix, erase(values_));
  for_prefix(counters_, prefix, erase(counters_));
  for_prefix(losses_, prefix, erase(losses_));
  for_prefix(gets_, prefix, [&](auto entry) {
    end_all(std::move(entry->second), erased);
    return gets_.erase(entry);
  });
  for_prefix(exchanges_, prefix, [&](auto entry) {
    end_all(std::move(entry->second.waits), erased);
    return exchanges_.erase(entry);
  });
  for_prefix(members_, prefix, [&](auto entry) {
    for (const auto& [rank, present] : entry->second) member_by_id_.erase(present.id);
    return members_.erase(entry);
  });
}

KeyValueStore::MemberId KeyValueStore::join(const Member& member) {
  std::lock_guard lock(mutex_);
  if (const auto losses = losses_.find(member.group); losses != losses_.end()) {
    if (const auto loss = losses->second.find(member.rank); loss != losses->second.end())
      throw WireupError(fmt::format("rank {} cannot join '{}' again: {}", member.rank, member.group, loss->second));
  }
  auto& group = members_[member.group];
  const auto [place, fresh] = group.try_emplace(member.rank);
  if (!fresh)
    throw WireupError(
        fmt::format("rank {} of '{}' is there already, on host {}; two processes were given the same rank", member.rank,
                    member.group, place->second.host));
  const MemberId id = ++last_member_;
  place->second = {id, member.host};
  member_by_id_.emplace(id, member);
  announce({Change::Kind::joined, member.group, member.rank, member.host});
  return id;
}

void KeyValueStore::leave(MemberId id) {
  std::lock_guard lock(mutex_);
  const auto entry = member_by_id_.extract(id);
  if (entry.empty()) return;
  const Member& member = entry.mapped();
  members_[member.group].erase(member.rank);
  announce({Change::Kind::left, member.group, member.rank, member.host});
}

void KeyValueStore::lose(MemberId id, std::string_view reason) {
  std::lock_guard lock(mutex_);
  const auto entry = member_by_id_.extract(id);
  if (entry.empty()) return;
  const Member& member = entry.mapped();
  members_[member.group].erase(member.rank);
  const std::int32_t ranks[] = {member.rank};
  // Who ended the rank may have said why before its connection closed.
  if (const auto losses = losses_.find(member.group); losses != losses_.end() && losses->second.contains(member.rank))
    return;
  lose_locked(member.group, ranks, fmt::format("rank {} on host {} is gone: {}", member.rank, member.host, reason));
}

void KeyValueStore::lose(std::string_view group, std::span<const std::int32_t> ranks, std::string_view text) {
  std::lock_guard lock(mutex_);
  lose_locked(group, ranks, text);
}

void KeyValueStore::lose_locked(std::string_view group, std::span<const std::int32_t> ranks, std::string_view text) {
  if (ranks.empty()) return;
  Losses& losses = losses_[std::string(group)];
  for (const std::int32_t rank : ranks) losses.insert_or_assign(rank, std::string(text));
  for_prefix(gets_, group, [&](auto entry) {
    end_all(std::move(entry->second), failure(fmt::format("'{}' will not come: {}", entry->first, text)));
    return gets_.erase(entry);
  });
  for_prefix(exchanges_, group, [&](auto entry) {
    Exchange& exchange = entry->second;
    if (!exchange.finished && exchange.broken.empty()) {
      if (const auto loss = loss_in(entry->first, exchange)) break_exchange(entry->first, exchange, *loss);
    }
    return std::next(entry);
  });
  for (const std::int32_t rank : ranks) announce({Change::Kind::lost, std::string(group), rank, std::string(text)});
}

std::shared_ptr<Watch> KeyValueStore::watch(std::string_view prefix) {
  auto made = std::make_shared<Watch>(std::string(prefix));
  std::lock_guard lock(mutex_);
  watches_.push_back(made);
  return made;
}

void KeyValueStore::end(WaitId id, WaitOutcome outcome) {
  if (auto entry = waits_.extract(id)) entry.mapped().done(std::move(outcome));
}

void KeyValueStore::end_all(std::vector<WaitId> waits, const WaitOutcome& outcome) {
  for (const WaitId id : waits) end(id, outcome);
}

void KeyValueStore::break_exchange(const std::string& name, Exchange& exchange, std::string text) {
  exchange.broken = fmt::format("exchange '{}': {}", name, text);
  end_all(std::exchange(exchange.waits, {}), failure(exchange.broken));
}

std::optional<std::string> KeyValueStore::loss_under(std::string_view key) const {
  for (const auto& [group, losses] : losses_)
    if (key.starts_with(group)) return losses.begin()->second;
  return std::nullopt;
}

std::optional<std::string> KeyValueStore::loss_in(std::string_view name, const Exchange& exchange) const {
  for (const auto& [group, losses] : losses_) {
    if (!name.starts_with(group)) continue;
    for (const auto& [rank, text] : losses) {
      const auto index = static_cast<std::size_t>(rank);
      if (rank >= 0 && index < exchange.values.size() && !exchange.values[index]) return text;
    }
  }
  return std::nullopt;
}

std::string KeyValueStore::missing_text(std::string_view name, const Exchange& exchange, Timeout timeout) const {
  std::vector<std::int32_t> missing;
  for (std::size_t rank = 0; rank < exchange.values.size(); ++rank)
    if (!exchange.values[rank]) missing.push_back(static_cast<std::int32_t>(rank));
  const std::string text = fmt::format("{} of {} did not come within {}", ranks_text(missing), exchange.values.size(),
                                       seconds_text(timeout));
  // A rank that is connected is stuck; one that never joined did not start. That is worth knowing.
  const auto group = std::find_if(members_.begin(), members_.end(), [&](const auto& entry) {
    return name.starts_with(entry.first) && !entry.second.empty();
  });
  if (group == members_.end()) return text;
  std::string details;
  for (std::size_t i = 0; i < std::min(missing.size(), missing_described); ++i) {
    const auto present = group->second.find(missing[i]);
    details += fmt::format(
        "{}rank {} {}", i > 0 ? ", " : "", missing[i],
        present == group->second.end() ? "is not connected" : "is connected from host " + present->second.host);
  }
  return fmt::format("{} ({}{})", text, details, missing.size() > missing_described ? ", ..." : "");
}

void KeyValueStore::announce(const Change& change) {
  std::erase_if(watches_, [&](const std::weak_ptr<Watch>& each) {
    const auto watch = each.lock();
    if (watch) watch->note(change);
    return !watch;
  });
}

}  // namespace assay::host::wireup
