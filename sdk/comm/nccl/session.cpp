#include "session.hpp"

#include <fmt/format.h>

#include <assay/comm/long_wait.hpp>
#include <utility>

#include "backoff.hpp"

namespace assay::comm::nccl {
namespace {

using Clock = std::chrono::steady_clock;

// Enough for the collectives of a step that is made of buckets; what makes more lets the ring grow.
constexpr std::size_t first_capacity = 64;

}  // namespace

Session::Session(std::unique_ptr<Library> library, const assay_comm& ranks, Stream compute, Timing timing,
                 bool on_compute_stream)
    : library_(std::move(library)),
      ranks_(ranks),
      compute_(compute),
      is_on_compute_stream_(on_compute_stream),
      timing_(timing),
      timeout_(ranks.timeout_ms),
      ring_(*library_, first_capacity) {}

Session::~Session() {
  if (word_) library_->free(word_);
  if (ready_) library_->destroy_event(ready_);
  if (stream_ && !is_on_compute_stream_) library_->destroy(stream_);
}

std::shared_ptr<Session> Session::open(std::unique_ptr<Library> library, const assay_comm& ranks, Stream compute,
                                       const UniqueId& id, std::int32_t max_channels, Timing timing,
                                       bool on_compute_stream) {
  library->enter_thread(false);
  std::shared_ptr<Session> session(new Session(std::move(library), ranks, compute, timing, on_compute_stream));
  session->stream_ = on_compute_stream ? compute : session->library_->make_stream();
  session->ready_ = session->library_->make_event(false);
  session->word_ = session->library_->allocate_zeroed(sizeof(float), session->stream_);
  session->caretaker_ = std::thread([session] { session->care(); });
  try {
    session->connect(id, max_channels);
  } catch (...) {
    session->close();
    throw;
  }
  return session;
}

void Session::connect(const UniqueId& id, std::int32_t max_channels) {
  const auto what = [&] { return fmt::format("the wire-up of {} ranks through NCCL", ranks_.rank_count); };
  call(
      root_, [&] { return library_->start(root_, id, ranks_.rank, ranks_.rank_count, max_channels); }, what);
  call(
      root_, [&] { return library_->split(root_, ranks_.rank, max_channels); }, what);
  const std::lock_guard nccl(nccl_);
  const std::lock_guard lock(mutex_);
  if (!root_) return;  // aborted in between: the next call says why
  child_ = library_->child();
  connected_ = true;
}

// ---- the user's thread ---------------------------------------------------------------------------------------------

template <class What>
std::optional<Failure> Session::settle(const Comm& comm, Answer answer, const What& what) {
  const Clock::time_point until = Clock::now() + timeout_;
  for (Backoff backoff; answer.kind == Answer::Kind::in_progress; answer = library_->state(comm)) {
    backoff.pause();
    if (!backoff.waited_for(std::chrono::milliseconds(1))) continue;
    if (dead_) return std::nullopt;  // the caretaker was first; it waits for NCCL to be left alone
    if (aborted()) return given_up(what());
    if (Clock::now() > until) return late(what());
  }
  if (answer.kind == Answer::Kind::failed) return failed(what(), answer.text);
  return std::nullopt;
}

template <class Start, class What>
void Session::call(const Comm& comm, Start&& start, const What& what) {
  // Also of an enqueue: the first collective of a kind connects to the other ranks.
  const LongWait waiting(ranks_);
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(nccl_);
    if (!dead_) failure = settle(comm, start(), what);
  }
  if (failure) fail(std::move(*failure));
  if (dead_) throw_failure();
}

template <class Body>
auto Session::on_gpu(Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.status() != ASSAY_DEVICE_ERROR && error.status() != ASSAY_OUT_OF_MEMORY) throw;
    fail({error.status(), error.what()});
  }
}

void Session::fail(Failure failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    dead_ = true;
  }
  changed_.notify_all();
  throw_failure();
}

void Session::throw_failure() {
  std::unique_lock lock(mutex_);
  // Who catches the error frees memory that NCCL's kernels use until the abort is through.
  (void)changed_.wait_for(lock, timing_.abort, [&] { return ended_; });
  throw Error(failure_->status, failure_->text);
}

void Session::require_alive() {
  if (dead_) throw_failure();
  if (aborted()) fail(given_up("what comes next"));
}

void Session::require_usable(const char* what) {
  require_alive();
  if (library_->capturing(compute_))
    throw Error(ASSAY_UNSUPPORTED, fmt::format("{} through NCCL while the compute stream is being captured: a captured "
                                               "graph could not be watched or timed; run the step without a graph",
                                               what));
}

Ticket Session::enqueue(const Collective& collective, const char* what, std::uint64_t bytes, bool after_compute) {
  require_usable(what);
  return on_gpu([&] {
    Flight& flight = begin_call(what, bytes, after_compute);
    if (after_compute && !is_on_compute_stream_) {
      library_->record(ready_, compute_);
      library_->wait_for(stream_, ready_);
    }
    library_->record(flight.begin, stream_);
    call(
        child_, [&] { return library_->enqueue(child_, collective, stream_); }, [&] { return describe(flight); });
    library_->record(flight.end, stream_);
    return end_call();
  });
}

Flight& Session::begin_call(const char* what, std::uint64_t bytes, bool counted) {
  const std::lock_guard lock(mutex_);
  Flight& flight = ring_.take();
  flight.what = what;
  flight.bytes = bytes;
  flight.counted = counted;
  call_ = {flight, Clock::now()};
  return flight;
}

// Not reached where the call fails: that is the end of the session, and nobody asks for call_ again.
Ticket Session::end_call() {
  const std::lock_guard lock(mutex_);
  call_.reset();
  return ring_.publish();
}

Ticket Session::launch(const Collective& collective, std::uint64_t bytes) {
  return enqueue(collective, name_of(collective.operation), bytes, true);
}

void Session::wait(Ticket ticket) {
  require_usable("wait");
  Flight* flight = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (ticket == 0 || ticket > ring_.last_ticket())
      throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("wait for collective {}; this communicator has enqueued 1 to {}",
                                                      ticket, ring_.last_ticket()));
    if (ticket <= waited_) return;  // they run one after the other
    flight = ring_.find(ticket);
  }
  waited_ = ticket;
  if (!flight) return;  // retired: the GPU had finished it long ago
  if (is_on_compute_stream_) return;
  on_gpu([&] {
    library_->record(flight->wait_begin, compute_);
    library_->wait_for(compute_, flight->end);
    library_->record(flight->wait_end, compute_);
  });
  const std::lock_guard lock(mutex_);
  flight->waited = true;
}

void Session::wait_until_happened(Event event) {
  on_gpu([&] {
    for (Backoff backoff; !library_->happened(event); backoff.pause()) require_alive();
  });
  // An abort lets the kernels end, too. Then this is no success.
  if (dead_) throw_failure();
}

void Session::synchronize() {
  require_usable("synchronize");
  Event last = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const Flight* flight = ring_.newest()) last = flight->end;
  }
  if (!last) return;
  wait_until_happened(last);
  call(
      child_, [&] { return library_->state(child_); }, [] { return std::string("a collective"); });
}

void Session::barrier() {
  const Collective word{.operation = Operation::all_reduce,
                        .send = word_,
                        .receive = word_,
                        .count = 1,
                        .dtype = compute::DType::f32,
                        .reduction = Reduction::sum};
  (void)enqueue(word, "barrier", sizeof(float), false);
  synchronize();
}

Totals Session::take_totals() {
  synchronize();
  Event last_wait = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const Flight* flight = ring_.find(waited_); flight && flight->waited) last_wait = flight->wait_end;
  }
  // Waits are on the compute stream in the order of the tickets: past the last, it is past all.
  if (last_wait) wait_until_happened(last_wait);
  return on_gpu([&] {
    const std::lock_guard lock(mutex_);
    return ring_.drain();
  });
}

bool Session::register_memory(void* address, std::size_t bytes) {
  require_alive();
  const std::lock_guard lock(nccl_);
  if (dead_) return false;  // the next call says why
  void* const handle = library_->register_memory(child_, address, bytes);
  if (handle) registered_.push_back(handle);
  return handle != nullptr;
}

void Session::close() noexcept {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  if (!caretaker_.joinable()) return;
  const auto longest = timing_.leave + timing_.finish + timing_.abort;
  const bool ended = changed_.wait_for(lock, longest, [&] { return ended_; });
  lock.unlock();
  // One that hangs inside NCCL keeps what it uses; the host ends the process.
  if (ended)
    caretaker_.join();
  else
    caretaker_.detach();
}

// ---- the caretaker's thread ----------------------------------------------------------------------------------------

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
    if (call && Clock::now() - call->since > timeout_) return late(describe(oldest ? *oldest : call->flight));
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
    const std::lock_guard lock(nccl_);
    for (void* const handle : registered_) library_->deregister_memory(child_, handle);
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
  const std::lock_guard nccl(nccl_);
  if (root_) library_->abort(std::exchange(root_, nullptr));
  if (child_) library_->abort(std::exchange(child_, nullptr));
}

// ---- texts ---------------------------------------------------------------------------------------------------------

std::string Session::describe(const Flight& flight) const {
  return fmt::format("{} (collective {}, {} bytes)", flight.what, flight.ticket, flight.bytes);
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
