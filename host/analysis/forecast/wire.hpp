// The cost of a message between ranks: a latency for each step of the collective's algorithm, a time for each message
// that a rank sends where it sends many at once, and a time for each byte of them. The model is Hockney's (1994), with
// the overhead of LogP (Culler et al. 1993); steps and volumes of ring and tree are those of Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH" (2005), those of direct are sdk/comm/gloo's.
#pragma once
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::forecast {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send_receive };
std::optional<Collective> collective_named(std::string_view name);

// ring: each rank passes parts on to its neighbour, which takes a step for each other rank. tree: halves meet, which
// takes a step for each doubling of the ranks. Both send as many bytes. With two ranks they are the same.
// direct: each rank sends to every other one at once, which takes a step or two whatever the number of ranks, but a
// message to each; and of small messages all of it to each.
enum class Algorithm { ring, tree, direct };
const char* name_of(Algorithm algorithm);

// How the library knows the memory of a message.
enum class MessageMemory { any, registered, windows };

// Which device and library, and what lies between the ranks: measurements of one link do not apply to another.
struct Link {
  std::string device, library;
  bool between_machines = false;  // ranks on several machines; else on one
  bool in_graph = false;          // collectives of a graph, which start sooner than those of a stream
  MessageMemory memory = MessageMemory::any;

  auto operator<=>(const Link&) const = default;
  std::string text() const;  // "NVIDIA H200, nccl, in graphs", "AMD EPYC, gloo, between machines"
  // That the library has.
  std::vector<Algorithm> algorithms() const;
};

// What one rank does in one collective.
struct Demand {
  double steps = 0;     // messages that wait for one another
  double messages = 0;  // of direct: that a rank sends. Of the others each step is one, and this is the collective: 1
  double bytes = 0;     // that a rank sends, heads of direct messages included
};
// `bytes` is the size of the message as the workload all_reduce counts it.
Demand demand_of(Algorithm algorithm, Collective collective, double bytes, int ranks);

// What messages of a direct all-reduce have in common up to this size: all of it goes to each rank.
// As sdk/comm/include/assay/comm/message.hpp has it.
constexpr double small_message_bytes = 16 * 1024;

struct WirePoint {
  Link link;
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  double bytes = 0, seconds = 0;  // the size as the workload all_reduce counts it; of one collective
};

// How much longer than by the model collectives of one kind took, by what a rank sends, from the least bytes on.
struct MeasuredCurve {
  std::vector<double> sent_bytes, of_model;
};

struct Wire {
  Algorithm algorithm = Algorithm::ring;
  // For each step, for each message (of ring and tree: for each collective, which must be started), for each byte.
  double latency_s = 0, message_s = 0, seconds_per_byte = 0;
  double worst = 0;  // the largest relative difference between a point and the model
  std::size_t points = 0, sizes = 0, rank_counts = 0;
  bool has_latency = false;  // there were several sizes: bytes are separated from latency and messages
  std::map<Collective, MeasuredCurve> curves;  // on the most ranks that were measured
};

// The latency, the time of a message and that of a byte, none below 0, with the least sum of squares of relative
// differences. Points of one rank, which has no link, do not count; nothing where none is left. All are of one link.
//
// NCCL within a machine: points of one number of ranks do not separate a step from a start. Their sum is then divided
// as NCCL's own model of its costs has it.
//
// With the direct algorithm, ranks on one machine have no latency: what they wait for is each other's work. Between
// machines points of one number of ranks are taken for latency alone; of several the time of a message is taken where
// they show it.
std::optional<Wire> fitted(Algorithm algorithm, std::span<const WirePoint> points);

// Measurements fit the other algorithm much better.
bool is_refuted(const Wire& wire, const Wire& other);

// By the model, as far from it as the measured collectives of this kind and size were (of all-reduces, where none of
// the kind was measured).
double seconds_of(const Wire& wire, Collective collective, double bytes, int ranks);

}  // namespace assay::host::forecast
