/* assay/graph_events.h - the events that a captured step records (assay.capture/1), and a switch for them: each event
 * is a separate node of the device's graph and takes time. An optional extension of the device table:
 * assay_device_api.get_extension() gives NULL for a backend that does not offer it.
 *
 * The rules of assay/device.h: every function that returns a status leaves its text in error_text().
 */
#ifndef ASSAY_GRAPH_EVENTS_H
#define ASSAY_GRAPH_EVENTS_H
#include <assay/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_graph_events {
  size_t struct_size;
  /* About how many nanoseconds each event adds to a replay; above 0. */
  double event_ns;
  /* [measure-thread] Whether graphs record, from their next launch on, the events for which event_record() was called
   * while they were captured: 1 (the default of an opened device) or 0. Nothing else of a graph changes. With 0, the
   * last time of such an event stays. The first launch with 0 may take memory, and be slow. */
  assay_status (*record)(struct assay_device*, int32_t on) ASSAY_NOEXCEPT;
} assay_graph_events;
#define ASSAY_EXT_GRAPH_EVENTS "assay.graph_events/1"

#ifdef __cplusplus
}
#endif
#endif
