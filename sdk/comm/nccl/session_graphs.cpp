// The collectives of a session in a graph: what a capture takes up, and the graph's replays.
#include "session_calls.hpp"

namespace assay::comm::nccl {

// What is captured runs when nobody is there to wait for it: it has no flight, and events that are edges of the graph.
Ticket Session::enqueue_captured(const Collective& collective, const char* what, std::uint64_t bytes,
                                 std::uint64_t capture) {
  return on_gpu([&] {
    enter_capture(capture);
    follow_compute();
    Flight flight;
    flight.ticket = captured_.collectives + 1;
    flight.what = what;
    flight.bytes = bytes;
    watch_call(flight);
    call(
        child_, [&] { return library_->enqueue(child_, collective, stream_); },
        [&] { return "the capture of " + describe(flight); });
    forget_call();
    if (!is_on_compute_stream_) {
      if (captured_ends_.size() == captured_.collectives) captured_ends_.push_back(library_->make_event(false));
      library_->record(captured_ends_[captured_.collectives], stream_);
    }
    ++captured_.collectives;
    captured_.bytes += bytes;
    return captured_ticket | captured_.collectives;
  });
}

void Session::enter_capture(std::uint64_t capture) {
  if (capture == capture_) return;
  ++*live_graphs_;
  library_->keep_in_graph(compute_, std::shared_ptr<void>(nullptr, [live = live_graphs_](void*) { --*live; }));
  capture_ = capture;
  captured_ = {.alone = is_on_compute_stream_};
  captured_waited_ = 0;
}

void Session::wait_captured(Ticket ticket, std::uint64_t capture) {
  const Ticket number = ticket & ~captured_ticket;
  if (number == ticket || capture != capture_ || number > captured_.collectives)
    throw Error(ASSAY_INVALID_ARGUMENT,
                number == ticket ? fmt::format("wait for collective {} during a capture that it is no part of; wait "
                                               "for it before, or enqueue it in the capture",
                                               number)
                                 : fmt::format("wait for collective {} of a graph outside of its capture; what was "
                                               "captured is over when a replay is",
                                               number));
  if (number <= captured_waited_) return;  // they run one after the other
  captured_waited_ = number;
  if (!is_on_compute_stream_) on_gpu([&] { library_->wait_for(compute_, captured_ends_[number - 1]); });
}

void Session::replay(const CapturedCollectives& captured, compute::Graph& graph) {
  require_usable("the replay of a graph");
  if (in_series_) throw Error(ASSAY_INVALID_ARGUMENT, "the replay of a graph in a series; expected end_series() first");
  // One communicator does one thing after the other, even if its collectives have a separate stream.
  if (const Ticket last = ring_.last_ticket(); last > waited_) wait(last);
  on_gpu([&] {
    Flight& flight = begin_call("graph", captured.bytes, true);
    flight.is_replay = true;
    flight.collectives = captured.collectives;
    flight.alone = captured.alone;
    library_->record(flight.begin, compute_);
    graph.launch();
    library_->record(flight.end, compute_);
    waited_ = end_call();
  });
}

// No deadline: a communicator that refers to a graph cannot be ended, by any means but the end of the process. Whoever
// closes the session does not wait for so long.
void Session::await_end_of_graphs() const {
  for (Backoff backoff; *live_graphs_ > 0;) backoff.pause();
}

}  // namespace assay::comm::nccl
