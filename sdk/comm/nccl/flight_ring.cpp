#include "flight_ring.hpp"

#include <algorithm>
#include <utility>

namespace assay::comm::nccl {

FlightRing::FlightRing(Library& library, std::size_t capacity) : library_(library), flights_(capacity) {
  for (Flight& flight : flights_) make_events(flight);
}

FlightRing::~FlightRing() {
  for (const Flight& flight : flights_)
    for (const Event event : {flight.begin, flight.end, flight.wait_begin, flight.wait_end})
      if (event) library_.destroy_event(event);
}

void FlightRing::make_events(Flight& flight) {
  for (Event* event : {&flight.begin, &flight.end, &flight.wait_begin, &flight.wait_end})
    *event = library_.make_event(true);
}

Flight& FlightRing::take() {
  if (count_ == flights_.size() && !retire_first()) grow();
  Flight& flight = at(count_);
  flight.ticket = next_ticket_;
  flight.collectives = 1;
  flight.counted = flight.alone = true;
  flight.waited = flight.is_replay = false;
  return flight;
}

Ticket FlightRing::publish() {
  ++count_;
  return next_ticket_++;
}

Flight* FlightRing::find(Ticket ticket) {
  if (count_ == 0 || ticket < at(0).ticket || ticket >= next_ticket_) return nullptr;
  return &at(static_cast<std::size_t>(ticket - at(0).ticket));  // tickets follow each other without gaps
}

Flight* FlightRing::newest() { return count_ ? &at(count_ - 1) : nullptr; }

const Flight* FlightRing::oldest_unfinished() {
  while (finished_ < count_ && library_.happened(at(finished_).end)) ++finished_;
  return finished_ < count_ ? &at(finished_) : nullptr;
}

bool FlightRing::retire_first() {
  const Flight& flight = at(0);
  if (!library_.happened(flight.end) || (flight.waited && !library_.happened(flight.wait_end))) return false;
  account(flight);
  first_ = (first_ + 1) % flights_.size();
  --count_;
  if (finished_ > 0) --finished_;
  return true;
}

void FlightRing::account(const Flight& flight) {
  if (flight.counted) {
    totals_.collectives += flight.collectives;
    totals_.bytes += flight.bytes;
    if (flight.alone)
      totals_.busy_ms += library_.elapsed_ms(flight.begin, flight.end);
    else
      totals_.untimed += flight.collectives;
  }
  if (flight.waited) totals_.exposed_ms += library_.elapsed_ms(flight.wait_begin, flight.wait_end);
}

void FlightRing::grow() {
  std::vector<Flight> larger;
  larger.reserve(2 * flights_.size());
  for (std::size_t i = 0; i < count_; ++i) larger.push_back(at(i));
  larger.resize(2 * flights_.size());
  // The old flights' events are owned twice for a moment: the vectors change places before anything can throw.
  flights_.swap(larger);
  first_ = 0;
  for (std::size_t i = count_; i < flights_.size(); ++i) make_events(flights_[i]);
}

Totals FlightRing::drain() {
  for (std::size_t i = 0; i < count_; ++i) account(at(i));
  first_ = count_ = finished_ = 0;
  return std::exchange(totals_, {});
}

}  // namespace assay::comm::nccl
