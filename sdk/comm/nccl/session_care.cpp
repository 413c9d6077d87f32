// The caretaker's thread of a session, a watchdog: it ends collectives that wait for a lost rank, and says which.
#include "session_calls.hpp"

#include <algorithm>

namespace assay::comm::nccl {

void Session::care() noexcept {
  try {
    library_->enter_thread(true);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failure_ = Failure{ASSAY_DEVICE_ERROR, error.what()};
    dead_ = true;
  }
  std::unique_lock lock(mutex_);
  while (!closing_ && !failure_) {
    (void)changed_.wait_for(lock, timing_.interval);
    if (closing_ || failure_) break;
    lock.unlock();
    std::optional<Failure> found = look();
    lock.lock();
    if (!found || failure_) continue;
    failure_ = std::move(found);
    dead_ = true;
  }
  const bool healthy = !failure_;
  lock.unlock();
  if (!healthy || !finish_politely()) abort_all();
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

std::optional<Failure> Session::look() {
  try {
    std::optional<Flight> oldest;
    std::optional<Call> call;
    bool running = false;
    {
      const std::lock_guard lock(mutex_);
      call = call_;
      if (const Flight* flight = ring_.oldest_unfinished()) {
        oldest = *flight;
        running = library_->happened(flight->begin);
      }
    }
    if (aborted()) return given_up(oldest ? describe(*oldest) : call ? describe(call->flight) : "what comes next");
    if (const std::uint64_t calls = calls_of_series_.load(std::memory_order_relaxed); calls != watched_calls_) {
      watched_calls_ = calls;
      series_went_on_ = Clock::now();
    }
    if (call && Clock::now() - std::max(call->since, series_went_on_) > timeout_)
      return late(describe(oldest ? *oldest : call->flight));
    if (!oldest) return std::nullopt;
    // Who holds NCCL at this moment is a call of the user's thread, which learns of errors by itself.
    if (const std::unique_lock nccl(nccl_, std::try_to_lock); nccl && child_)
      if (const Answer answer = library_->state(child_); answer.kind == Answer::Kind::failed)
        return failed(describe(*oldest), answer.text);
    // The time before a collective could start belongs to the compute stream and to those before it.
    if (!running) return std::nullopt;
    if (oldest->ticket != watched_) {
      watched_ = oldest->ticket;
      watched_since_ = Clock::now();
    }
    if (Clock::now() - watched_since_ > timeout_) return late(describe(*oldest));
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{error.status(), error.what()};
  } catch (const std::exception& error) {
    return Failure{ASSAY_INTERNAL, error.what()};
  }
}

bool Session::await_idle() {
  const Clock::time_point until = Clock::now() + timing_.leave;
  for (Backoff backoff;; backoff.pause()) {
    {
      const std::lock_guard lock(mutex_);
      if (!ring_.oldest_unfinished()) return true;
    }
    if (Clock::now() > until || aborted()) return false;
  }
}

bool Session::finish_politely() {
  try {
    if (!await_idle()) return false;
    await_end_of_graphs();
    const std::lock_guard lock(nccl_);
    for (const Registered& memory : registered_)
      if (memory.kind == Registration::symmetric)
        library_->deregister_window(child_, memory.handle);
      else
        library_->deregister_memory(child_, memory.handle);
    registered_.clear();
    const Clock::time_point until = Clock::now() + timing_.finish;
    return finish(child_, until) && finish(root_, until);
  } catch (const std::exception&) {
    return false;
  }
}

bool Session::finish(Comm& comm, Clock::time_point until) {
  if (!comm) return true;
  Answer answer = library_->finalize(comm);
  for (Backoff backoff; answer.kind == Answer::Kind::in_progress; answer = library_->state(comm)) {
    if (Clock::now() > until || aborted()) return false;
    backoff.pause();
  }
  if (answer.kind == Answer::Kind::failed) return false;
  library_->destroy_comm(std::exchange(comm, nullptr));
  return true;
}

void Session::abort_all() noexcept {
  bool connected = false;
  {
    const std::lock_guard lock(mutex_);
    connected = connected_;
  }
  // Until then the user's thread may be asking for the root's state, which it soon gives up.
  if (connected && root_) library_->abort(std::exchange(root_, nullptr));
  {
    const std::lock_guard nccl(nccl_);
    if (root_) library_->abort(std::exchange(root_, nullptr));
  }
  if (*live_graphs_ > 0) {  // whose owner may be waiting for this
    {
      const std::lock_guard lock(mutex_);
      released_ = true;
    }
    changed_.notify_all();
    await_end_of_graphs();
  }
  const std::lock_guard nccl(nccl_);
  if (child_) library_->abort(std::exchange(child_, nullptr));
}

// ---- texts ---------------------------------------------------------------------------------------------------------

std::string Session::describe(const Flight& flight) const {
  std::string what = flight.what;
  if (flight.is_replay)
    what += fmt::format(" of {} collective{}", flight.collectives, flight.collectives == 1 ? "" : "s");
  else if (flight.collectives > 1)
    what += fmt::format(" and {} more", flight.collectives - 1);
  return fmt::format("{} (collective {}, {} bytes)", what, flight.ticket, flight.bytes);
}

Failure Session::failed(const std::string& what, const std::string& nccl_text) const {
  return {ASSAY_COMM_ERROR, fmt::format("{} failed on rank {}: NCCL: {}", what, ranks_.rank, nccl_text)};
}

Failure Session::late(const std::string& what) const {
  return {ASSAY_COMM_ERROR,
          fmt::format("{} did not finish on rank {} within {} ms of its start: another rank is late, stuck or gone",
                      what, ranks_.rank, timeout_.count())};
}

Failure Session::given_up(const std::string& what) const {
  return {ASSAY_COMM_ERROR,
          fmt::format("{} was given up on rank {}: the case is being ended because another rank failed", what,
                      ranks_.rank)};
}

}  // namespace assay::comm::nccl
