// Rows of the parameter tables of workloads that train on several ranks, and what a case's values make of them.
#pragma once
#include <assay/plugin.hpp>

#include <assay/comm/memory_kinds.hpp>
#include <assay/workload/execution.hpp>
#include <cstddef>
#include <optional>
#include <string>

namespace assay::parallel {

inline constexpr auto rank_precision_names = names("fp32", "bf16", "bf16_pure");
inline constexpr auto comm_names = names("auto", "gloo", "nccl");
inline constexpr double least_bucket_mib = 1.0 / 1024;

inline constexpr auto rank_precision_params =
    table(Param::choice("precision", "fp32", rank_precision_names)
              .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all bf16"));

template <workload::Execution by_default>
consteval auto rank_execution_params_from() {
  return table(Param::choice("execution", by_default, workload::executions)
                   .help("eager: operations and collectives are enqueued one by one; graph: on cuda the whole step, "
                         "collectives included, is captured as one graph"));
}
inline constexpr auto rank_execution_params = rank_execution_params_from<workload::Execution::eager>();
inline constexpr auto library_params = table(
    Param::choice("comm", "auto", comm_names).help("library of the collectives; auto: nccl on cuda, gloo on the cpu"));
// A size of buckets, from `least` on.
constexpr auto bucket_param(const char* name, double by_default, double least) {
  return Param::real(name, by_default).at_least(least).at_most(1 << 20).unit("MiB");
}
inline constexpr auto bucket_params =
    table(bucket_param("bucket_mb", 25, least_bucket_mib)
              .help("size of a bucket of gradients, 0.25 as well as 25; the first one has 1 MiB at most"));
inline constexpr auto last_bucket_params =
    table(bucket_param("last_bucket_mb", 0, 0)
              .help("where it is not 0, buckets shrink towards the end of backward, each half of what is left, from "
                    "bucket_mb down to this: what nothing hides is the last one"));
// Of a workload whose memory does not depend on it.
inline constexpr auto measured_bucket_params =
    table(bucket_param("bucket_mb", 25, 0)
              .help("size of a bucket of gradients, 0.25 as well as 25; the first one has 1 MiB at most; 0: chosen by "
                    "measuring in set-up"));
inline constexpr auto channel_params =
    table(Param::integer("max_channels", 0)
              .at_least(0)
              .at_most(64)
              .help("nccl: the most thread blocks that a collective may take from the GPU; 0: as the library decides"));

inline constexpr auto product_params =
    table(Param::integer("leave_multiprocessors", 0)
              .at_least(0)
              .at_most(64)
              .help("cuda: multiprocessors that the products of a backward beside collectives do not count on; "
                    "with max_channels, which limits what collectives take"));

// How parameters are gathered; empty: chosen by measuring in set-up.
using Gathers = comm::MemoryKind;
inline constexpr auto gather_choices = choices<std::optional<Gathers>>({{"any_memory", Gathers::any_memory},
                                                                        {"registered", Gathers::registered},
                                                                        {"windows", Gathers::windows},
                                                                        {"copy_engines", Gathers::copy_engines},
                                                                        {"measured", std::nullopt}});
inline constexpr auto gather_params =
    table(Param::choice("gathers", Gathers::any_memory, gather_choices)
              .help("how parameters are gathered. any_memory: from and to memory as it is; nccl: registered: memory "
                    "of NCCL's, which each rank registers; windows: the same in symmetric windows; copy_engines (from "
                    "2.28 on): these by the GPU's copy engines, which take no multiprocessors from the products; "
                    "measured: the fastest of them, timed in set-up once a machine"));
// The kind that was named, or chosen.
inline constexpr auto gathers_taken_metric =
    Metric::word("gathers_taken", comm::memory_kinds)
        .help("kind of memory that all-gathers use: the one named, or with gathers = measured the one that was chosen");

// Of workloads whose messages are no buckets, and of those whose are.
inline constexpr auto collective_params = join(library_params, channel_params);
inline constexpr auto communication_params = join(library_params, bucket_params, last_bucket_params, channel_params);
inline constexpr auto measured_communication_params =
    join(library_params, measured_bucket_params, last_bucket_params, channel_params);

// Reads collective_params.
struct CollectiveSettings {
  CollectiveSettings() = default;  // as the rows have it without a value
  explicit CollectiveSettings(const Case& c);
  std::string library = "auto";
  comm::Options options;
};

// Reads communication_params, or measured_communication_params. INVALID_ARGUMENT for a last bucket that is larger.
struct CommunicationSettings : CollectiveSettings {
  explicit CommunicationSettings(const Case& c);
  std::size_t bucket_bytes;       // 0: chosen by measuring
  std::size_t last_bucket_bytes;  // 0: as the others
};

// Reads gather_params, too.
template <class Settings>
struct WithGathers : Settings {
  explicit WithGathers(const Case& c) : Settings(c), gathers(c.choice("gathers", gather_choices)) {
    this->options.copy_engines = gathers == Gathers::copy_engines;
  }
  std::optional<Gathers> gathers;
};

}  // namespace assay::parallel
