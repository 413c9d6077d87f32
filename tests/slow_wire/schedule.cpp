#include "slow_wire/schedule.hpp"

#include <algorithm>

namespace assay::slow_wire {

Schedule::Schedule(const Wire& wire, std::size_t hosts) : wire_(wire), hosts_(hosts) {
  for (Host& host : hosts_) host.waiting.resize(hosts);
}

void Schedule::send(std::size_t from, std::size_t to, Packet packet, std::int64_t now_ns) {
  Host& host = hosts_[from];
  if (host.waiting[to].empty()) host.turns.push_back(to);
  host.waiting[to].push_back(std::move(packet));
  if (!host.is_sending) send_next(from, now_ns);
}

void Schedule::push(std::int64_t at_ns, What what, std::size_t host, Packet packet) {
  events_.push({at_ns, count_++, what, host, std::move(packet)});
}

Schedule::Event Schedule::take_next() {
  Event event = std::move(const_cast<Event&>(events_.top()));  // its time and number, by which it is found, stay
  events_.pop();
  return event;
}

void Schedule::happen(Event event) {
  if (event.what == What::cable_free) return send_next(event.host, event.at_ns);
  std::int64_t& free_ns = hosts_[event.host].in_free_ns;
  free_ns = std::max(event.at_ns, free_ns + on_cable_ns(event.packet));
  push(free_ns, What::arrived, event.host, std::move(event.packet));
}

void Schedule::send_next(std::size_t from, std::int64_t at_ns) {
  Host& host = hosts_[from];
  host.is_sending = !host.turns.empty();
  if (!host.is_sending) return;
  const std::size_t to = host.turns.front();
  host.turns.pop_front();
  std::deque<Packet>& waiting = host.waiting[to];
  const std::int64_t left_ns = at_ns + on_cable_ns(waiting.front());
  push(left_ns + wire_.latency_ns, What::at_port, to, std::move(waiting.front()));
  waiting.pop_front();
  if (!waiting.empty()) host.turns.push_back(to);
  push(left_ns, What::cable_free, from);
}

}  // namespace assay::slow_wire
