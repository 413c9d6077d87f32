#include "worker/graph_events.hpp"

#include <assay/graph_events.h>

namespace assay::host::worker {

double GraphEvents::ns_of_each(std::int64_t events) const {
  const std::optional<double> us = facts.captured_event_us(events);
  return us ? *us * 1e3 : event_ns;
}

GraphEvents graph_events_of(const plugin::OpenDevice& device, const experiment::DeviceFacts& facts) {
  const auto* events = static_cast<const assay_graph_events*>(device.api().get_extension(ASSAY_EXT_GRAPH_EVENTS));
  if (!events || !ASSAY_HAS(events, assay_graph_events, record) || !events->record || !(events->event_ns > 0))
    return {};
  return {events->event_ns,
          [&device, events](bool on) {
            device.check(events->record(device.handle(), on ? 1 : 0), "switching the events of captured steps");
          },
          facts};
}

}  // namespace assay::host::worker
