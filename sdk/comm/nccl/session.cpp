#include "session_calls.hpp"

namespace assay::comm::nccl {
namespace {

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
  for (const Event event : captured_ends_) library_->destroy_event(event);
  if (stream_ && !is_on_compute_stream_) library_->destroy(stream_);
}

std::shared_ptr<Session> Session::open(std::unique_ptr<Library> library, const assay_comm& ranks,
                                       const Members& members, Stream compute, const UniqueId& id,
                                       std::int32_t max_channels, Timing timing, bool on_compute_stream) {
  library->enter_thread(false);
  std::shared_ptr<Session> session(new Session(std::move(library), ranks, compute, timing, on_compute_stream));
  session->stream_ = on_compute_stream ? compute : session->library_->make_stream();
  session->ready_ = session->library_->make_event(false);
  session->word_ = session->library_->allocate_zeroed(sizeof(float), session->stream_);
  session->caretaker_ = std::thread([session] { session->care(); });
  try {
    session->connect(id, members, max_channels);
  } catch (...) {
    session->close();
    throw;
  }
  return session;
}

void Session::connect(const UniqueId& id, const Members& members, std::int32_t max_channels) {
  const auto what = [&] { return fmt::format("the wire-up of {} ranks through NCCL", ranks_.rank_count); };
  call(
      root_, [&] { return library_->start(root_, id, ranks_.rank, ranks_.rank_count, max_channels); }, what);
  call(
      root_, [&] { return library_->split(root_, members.first(), members.rank(), max_channels); }, what);
  const std::lock_guard nccl(nccl_);
  const std::lock_guard lock(mutex_);
  if (!root_) return;  // aborted in between: the next call says why
  child_ = library_->child();
  connected_ = true;
}

// ---- the user's thread ---------------------------------------------------------------------------------------------

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
  (void)changed_.wait_for(lock, timing_.abort, [&] { return ended_ || released_; });
  throw Error(failure_->status, failure_->text);
}

void Session::require_alive() {
  if (dead_) throw_failure();
  if (aborted()) fail(given_up("what comes next"));
}

void Session::require_usable(const char* what) {
  require_alive();
  if (library_->capturing(compute_) != 0)
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("{} through NCCL while the compute stream is being captured, when nothing runs that could "
                            "be waited for; call it before or after",
                            what));
}

void Session::follow_compute() {
  if (is_on_compute_stream_) return;
  library_->record(ready_, compute_);
  library_->wait_for(stream_, ready_);
}

Ticket Session::enqueue(const Collective& collective, const char* what, std::uint64_t bytes, bool after_compute) {
  require_alive();
  if (series_) return add_to_series(collective, bytes);
  if (const std::uint64_t capture = library_->capturing(compute_); capture != 0)
    return enqueue_captured(collective, what, bytes, capture);
  return on_gpu([&] {
    Flight& flight = begin_call(what, bytes, after_compute);
    if (after_compute || capture_ != 0) follow_compute();  // a barrier, too, is behind a replay
    library_->record(flight.begin, stream_);
    call(
        child_, [&] { return library_->enqueue(child_, collective, stream_); }, [&] { return describe(flight); });
    if (in_series_) {
      series_ = &flight;
      return flight.ticket;
    }
    library_->record(flight.end, stream_);
    return end_call();
  });
}

// Where the host's launches decide, even one more look at a clock would show in the time of a collective. So the
// caretaker goes on watching the call that began the series, and sees that others have followed.
Ticket Session::add_to_series(const Collective& collective, std::uint64_t bytes) {
  Flight& flight = *series_;
  ++flight.collectives;
  flight.bytes += bytes;
  calls_of_series_.store(calls_of_series_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  call(
      child_, [&] { return library_->enqueue(child_, collective, stream_); }, [&] { return describe(flight); });
  return flight.ticket;
}

void Session::begin_series() {
  require_usable("begin_series");
  if (in_series_) throw Error(ASSAY_INVALID_ARGUMENT, "begin_series() in a series; expected end_series() first");
  in_series_ = true;
}

Ticket Session::end_series() {
  require_usable("end_series");
  in_series_ = false;
  Flight* const flight = std::exchange(series_, nullptr);
  if (!flight)
    throw Error(ASSAY_INVALID_ARGUMENT, "end_series() of no collective; expected begin_series(), and one at least");
  return on_gpu([&] {
    library_->record(flight->end, stream_);
    return end_call();
  });
}

Flight& Session::begin_call(const char* what, std::uint64_t bytes, bool counted) {
  Flight* flight = nullptr;
  {
    const std::lock_guard lock(mutex_);
    flight = &ring_.take();
    flight->what = what;
    flight->bytes = bytes;
    flight->counted = counted;
  }
  watch_call(*flight);
  return *flight;
}

void Session::watch_call(const Flight& flight) {
  const std::lock_guard lock(mutex_);
  call_ = {flight, Clock::now()};
}

// Not reached where NCCL or the GPU fails the call: that is the end of the session, and nobody asks for call_ again.
void Session::forget_call() {
  const std::lock_guard lock(mutex_);
  call_.reset();
}

Ticket Session::end_call() {
  const std::lock_guard lock(mutex_);
  call_.reset();
  return ring_.publish();
}

Ticket Session::launch(const Collective& collective, std::uint64_t bytes) {
  return enqueue(collective, name_of(collective.operation), bytes, true);
}

void Session::wait(Ticket ticket) {
  require_alive();
  const std::uint64_t capture = library_->capturing(compute_);
  if (capture != 0 || (ticket & captured_ticket) != 0) return wait_captured(ticket, capture);
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

// No event stands behind a collective of a series. The caretaker watches meanwhile: the series is a call that lasts.
void Session::await_series() {
  const auto look_at_nccl = [&] {
    call(
        child_, [&] { return library_->state(child_); }, [&] { return describe(*series_); });
  };
  const LongWait waiting(ranks_);
  require_alive();
  on_gpu([&] {
    for (Backoff backoff; !library_->idle(stream_); backoff.pause()) {
      require_alive();
      if (backoff.waited_for(std::chrono::milliseconds(1))) look_at_nccl();
    }
  });
  if (dead_) throw_failure();  // an abort lets the kernels end, too
  look_at_nccl();
}

void Session::synchronize() {
  if (series_) return await_series();
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
  require_usable("barrier");
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
  if (handle) registered_.push_back({handle, Registration::plain});
  return handle != nullptr;
}

Registration Session::register_together(void* address, std::size_t bytes) {
  require_usable("the registration of memory");
  void* window = nullptr;
  Flight registration;
  registration.what = "the registration of memory";
  registration.bytes = bytes;
  watch_call(registration);
  call(
      child_, [&] { return library_->register_window(child_, address, bytes, window); },
      [&] { return fmt::format("{} ({} bytes)", registration.what, bytes); });
  forget_call();
  if (!window) return register_memory(address, bytes) ? Registration::plain : Registration::none;
  const std::lock_guard lock(nccl_);
  registered_.push_back({window, Registration::symmetric});
  return Registration::symmetric;
}

void* Session::allocate_shared(std::size_t bytes) {
  require_alive();
  return library_->allocate_shared(bytes);
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

}  // namespace assay::comm::nccl
