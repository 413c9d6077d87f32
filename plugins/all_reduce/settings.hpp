// The workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/comm/memory_kinds.hpp>
#include <assay/comm/message.hpp>
#include <assay/plugin.hpp>
#include <assay/workload/execution.hpp>
#include <optional>
#include <string>

namespace all_reduce {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error
  void take(assay::comm::MemoryKind kind);  // and no other

  assay::comm::Collective collective = assay::comm::Collective::all_reduce;
  std::string collective_name, backend;
  assay::compute::DType dtype = assay::compute::DType::f32;
  assay::comm::Reduction reduction = assay::comm::Reduction::sum;
  std::string reduction_name;
  bool in_place = true;  // false where the collective has two buffers
  std::int32_t root = 0;
  std::int32_t rank = 0, ranks = 1;
  std::int32_t next_rank = 0, previous_rank = 0;  // of send_receive
  assay::comm::Options options;
  assay::comm::Message message;
  bool graph = false;
  assay::comm::Registration registration = assay::comm::Registration::none;  // at best
  std::optional<assay::comm::MemoryKind> kind;                               // named, or found by measuring
  bool measures_kinds = false;
  std::int64_t repeats = 1;     // of the collective in a step
  bool waits_for_each = false;  // of them
};

inline constexpr auto collectives = [] {
  using enum assay::comm::Collective;
  return assay::choices<assay::comm::Collective>({{"all_reduce", all_reduce},
                                                  {"reduce_scatter", reduce_scatter},
                                                  {"all_gather", all_gather},
                                                  {"broadcast", broadcast},
                                                  {"all_to_all", all_to_all},
                                                  {"send_receive", send_receive}});
}();
inline constexpr auto dtypes = assay::choices<assay::compute::DType>({{"fp32", assay::compute::DType::f32},
                                                                      {"bf16", assay::compute::DType::bf16},
                                                                      {"fp16", assay::compute::DType::f16}});
inline constexpr auto reductions = assay::choices<assay::comm::Reduction>({{"sum", assay::comm::Reduction::sum},
                                                                           {"average", assay::comm::Reduction::average},
                                                                           {"max", assay::comm::Reduction::max}});
inline constexpr auto backend_names = assay::names("auto", "nccl", "gloo");
enum class Stream { own, compute };
inline constexpr auto streams = assay::choices<Stream>({{"own", Stream::own}, {"compute", Stream::compute}});

// How the memory of the buffers is named.
enum class Mode { settings, any_memory, registered, windows, copy_engines, measured };
inline constexpr auto modes = assay::choices<Mode>({{"settings", Mode::settings},
                                                    {"any_memory", Mode::any_memory},
                                                    {"registered", Mode::registered},
                                                    {"windows", Mode::windows},
                                                    {"copy_engines", Mode::copy_engines},
                                                    {"measured", Mode::measured}});

enum class Wait { step, each };
inline constexpr auto waits = assay::choices<Wait>({{"step", Wait::step}, {"each", Wait::each}});

using assay::Param;
inline constexpr auto params = assay::table(
    Param::choice("collective", assay::comm::Collective::all_reduce, collectives)
        .help("what a step does, once; send_receive: to the next rank, from the one before"),
    Param::choice("backend", "auto", backend_names).help("auto: nccl on cuda, gloo on the CPU"),
    Param::choice("dtype", assay::compute::DType::f32, dtypes).help("of the elements; gloo reduces no fp16"),
    Param::real("size_mb", 1)
        .at_least(0)
        .at_most(1 << 20)
        .unit("MiB")
        .help("size of the larger buffer of a rank, in units of 2^20 bytes"),
    Param::integer("size_bytes", 0)
        .at_least(0)
        .at_most(double(std::int64_t{1} << 40))
        .unit("bytes")
        .help("the same in bytes; 0: as size_mb says"),
    Param::boolean("in_place", true)
        .help("one buffer, send and receive at once; broadcast always has one, all_to_all and send_receive have two"),
    Param::choice("reduction", assay::comm::Reduction::sum, reductions).help("of all_reduce and reduce_scatter"),
    Param::integer("root", 0).at_least(0).at_most(65535).help("of broadcast: the rank whose data all get"),
    Param::integer("max_channels", 0)
        .at_least(0)
        .at_most(64)
        .help("nccl: the most thread blocks that a collective may take; 0: as many as NCCL likes"),
    Param::choice("stream", Stream::own, streams)
        .help("nccl: own: beside the computation, as in training; compute: on its stream, as nccl-tests does; a graph "
              "is always on it"),
    Param::choice("execution", assay::workload::Execution::eager, assay::workload::executions)
        .help("eager: each collective is enqueued; graph: nccl: a step's collectives are captured once and replayed"),
    Param::boolean("registered", false)
        .help("nccl: buffers are the library's memory and registered, as symmetric windows where it has them; false: "
              "any memory, not registered, as nccl-tests does"),
    Param::boolean("windows", true)
        .help("with registered = true: symmetric windows where the library has them; false: each rank registers its "
              "own memory"),
    Param::choice("mode", Mode::settings, modes)
        .help("kind of memory. settings: as registered and windows say; any_memory, registered, windows: that kind, or "
              "unsupported; copy_engines: windows, gathered by the GPU's copy engines (all_gather); measured: the "
              "fastest of them, timed in set-up once a machine"),
    Param::integer("repeats", 1)
        .at_least(1)
        .at_most(10'000)
        .help("times that a step does the collective, one after the other"),
    Param::choice("wait", Wait::step, waits)
        .help("what the caller waits for. step: the last collective of a step; each: every one of them, before it "
              "enqueues the next, as nccl-tests -z 1 does"));

}  // namespace all_reduce
