// What collectives take beside the computation: what workloads on several ranks report of it.
#pragma once
#include <algorithm>
#include <assay/comm/message.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/plugin.hpp>
#include <cstddef>

namespace assay::parallel {

inline constexpr auto communication_ms_metric =
    Metric::per_case("communication_ms")
        .unit("ms")
        .lower_is_better()
        .help(
            "time that collectives were under way, mean of the measured steps; includes waiting for ranks that come "
            "later");
// On the CPU, exposed_ms covers the caller's wait, and communication_ms the collective itself, on the communicator's
// thread. Waking that thread for a collective, and the caller after it, counts in exposed_ms alone. Where nothing is
// hidden, most of all on busy processors, exposed_ms is the longer of the two. It is not capped: that time is lost. On
// a GPU both lie between events, and a wait itself costs a few microseconds.
inline constexpr auto exposed_ms_metric =
    Metric::per_case("exposed_ms")
        .unit("ms")
        .lower_is_better()
        .help(
            "time that the computation waited for collectives, mean of the measured steps; includes the waking of "
            "threads, so that it can exceed communication_ms");
inline constexpr auto overlap_share_metric =
    Metric::per_case("overlap_share").higher_is_better().help("1 - exposed_ms / communication_ms, not below 0");

inline constexpr auto communication_bytes_metric =
    Metric::per_case("communication_bytes")
        .unit("bytes")
        .lower_is_better()
        .help("of a rank in a step: the larger of what each collective sends and receives, summed");
// Libraries send small messages in another way than large ones (Gloo here: all of them to every rank), so that the mean
// of both stands for neither.
using comm::small_message_bytes;
inline constexpr auto small_collectives_metric =
    Metric::per_case("small_collectives").help("those of the collectives of a step that are of at most 16 KiB");
inline constexpr auto small_communication_bytes_metric =
    Metric::per_case("small_communication_bytes").unit("bytes").help("of the small collectives of a step, summed");
inline constexpr auto messages_metric = Metric::per_case("messages").help("collectives of a rank in a step");

// Of the averages over the replicas of a model that ranks share.
inline constexpr auto replica_communication_bytes_metric =
    Metric::per_case("replica_communication_bytes")
        .unit("bytes")
        .lower_is_better()
        .help("of communication_bytes those between replicas: the averages of gradients");
inline constexpr auto replica_messages_metric =
    Metric::per_case("replica_messages").help("of messages those between replicas");
inline constexpr auto replica_metrics = table(replica_communication_bytes_metric, replica_messages_metric);

// Of workloads whose collectives run beside the computation.
inline constexpr auto communication_metrics =
    table(communication_ms_metric, exposed_ms_metric, overlap_share_metric, communication_bytes_metric);

// Reports all of these; leaves out the times if they are unknown.
template <class Launch>
void report_communication(const Launch& launch, const StepCommunication& of) {
  launch.report(communication_bytes_metric, of.bytes);
  if (!of.times) return;
  launch.report(communication_ms_metric, of.times->busy_ms);
  launch.report(exposed_ms_metric, of.times->exposed_ms);
  if (of.times->busy_ms > 0)
    launch.report(overlap_share_metric, std::max(0.0, 1.0 - of.times->exposed_ms / of.times->busy_ms));
}

// Reports how many of the collectives whose sizes these are are small, and how large together.
template <class Launch, class Sizes>
void report_small_messages(const Launch& launch, const Sizes& sizes_bytes) {
  double count = 0, bytes = 0;
  for (const std::size_t size : sizes_bytes)
    if (size <= small_message_bytes) ++count, bytes += static_cast<double>(size);
  launch.report(small_collectives_metric, count);
  launch.report(small_communication_bytes_metric, bytes);
}

}  // namespace assay::parallel
