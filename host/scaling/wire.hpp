// What a message costs between ranks: a latency for each step of the collective's algorithm, and a time for each byte
// that a rank sends. The model is Hockney's (1994); steps and volumes are those of Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH" (2005).
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::host::scaling {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, send_receive };
std::optional<Collective> collective_named(std::string_view name);

// ring: each rank passes parts on to its neighbour, which takes a step for each other rank. tree: halves meet, which
// takes a step for each doubling of the ranks. Both send as many bytes. With two ranks they are the same.
enum class Algorithm { ring, tree };
const char* name_of(Algorithm algorithm);

// Messages one after the other, and the bytes that a rank sends over the size of the message.
double steps_of(Algorithm algorithm, Collective collective, int ranks);
double volume_of(Collective collective, int ranks);

struct WirePoint {
  std::string link;  // which device and library: points of others say nothing of it
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  double bytes = 0, seconds = 0;  // the size as the workload all_reduce counts it; of one collective
};

struct Wire {
  Algorithm algorithm = Algorithm::ring;
  double latency_s = 0, seconds_per_byte = 0;
  double worst = 0;  // the largest relative difference between a point and the model
  std::size_t points = 0, sizes = 0;
  bool tells_latency = false;  // there were several sizes
};

// The latency and the time of a byte, neither below 0, with the least sum of squares of relative differences. Points of
// one rank, which has no link, do not count; nothing where none is left. All are of one link.
std::optional<Wire> fitted(Algorithm algorithm, std::span<const WirePoint> points);

// Measurements fit the other algorithm much better.
bool is_refuted(const Wire& wire, const Wire& other);

double seconds_of(const Wire& wire, Collective collective, double bytes, int ranks);

}  // namespace assay::host::scaling
