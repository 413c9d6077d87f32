// The collectives that were enqueued and not yet accounted for, oldest first, each with its events. A series, and a
// replay of a graph, is one flight.
//
// Events are made ahead and used again. A flight is retired, and its times read, when its place is needed and the GPU
// is past it, or in drain(). When the ring is full of flights that the GPU has not reached, it doubles: that happens in
// the first steps of a workload, and never again.
//
// Threads: guarded by its owner. take() to publish(), and found flights, belong to the one thread that enqueues.
#pragma once
#include <cstdint>
#include <vector>

#include "library.hpp"

namespace assay::comm::nccl {

struct Flight {
  Ticket ticket = 0;
  const char* what = "";                           // the name of the collective
  std::uint64_t bytes = 0;                         // of the larger of send and receive, summed
  std::uint64_t collectives = 1;                   // of a series or a graph
  bool counted = true;                             // in the totals
  bool is_replay = false;                          // of a graph
  bool alone = true;                               // nothing but collectives lies between begin and end
  bool waited = false;                             // wait_begin and wait_end were recorded
  Event begin = nullptr, end = nullptr;            // on the communicator's stream, of a graph on the compute stream
  Event wait_begin = nullptr, wait_end = nullptr;  // on the compute stream
};

class FlightRing {
 public:
  FlightRing(Library& library, std::size_t capacity);  // makes the events of `capacity` flights
  ~FlightRing();
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  Flight& take();               // the next flight, with its ticket; not in the ring before publish()
  Ticket publish();             // all its events are recorded
  Flight* find(Ticket ticket);  // nullptr: retired
  Flight* newest();             // nullptr: none in the ring
  // The first that the GPU has not finished; nullptr: it is done with all. Asks the GPU.
  const Flight* oldest_unfinished();
  Ticket last_ticket() const { return next_ticket_ - 1; }
  std::size_t capacity() const { return flights_.size(); }

  // The totals of all flights that are in the ring or were retired from it since the last drain(). The GPU must be past
  // them, waits included.
  Totals drain();

 private:
  Flight& at(std::size_t index) { return flights_[(first_ + index) % flights_.size()]; }
  bool retire_first();  // false: the GPU is not past it
  void account(const Flight& flight);
  void grow();
  void make_events(Flight& flight);

  Library& library_;
  std::vector<Flight> flights_;
  std::size_t first_ = 0, count_ = 0;
  std::size_t finished_ = 0;  // so many of the first flights are known to be done
  Ticket next_ticket_ = 1;
  Totals totals_;
};

}  // namespace assay::comm::nccl
