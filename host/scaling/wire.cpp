#include "scaling/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace assay::host::scaling {
namespace {

constexpr std::array<std::pair<std::string_view, Collective>, 6> names{{
    {"all_reduce", Collective::all_reduce},
    {"reduce_scatter", Collective::reduce_scatter},
    {"all_gather", Collective::all_gather},
    {"broadcast", Collective::broadcast},
    {"all_to_all", Collective::all_to_all},
    {"send_receive", Collective::send_receive},
}};

double doublings(int ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }

}  // namespace

std::optional<Collective> collective_named(std::string_view name) {
  for (const auto& [text, collective] : names)
    if (text == name) return collective;
  return std::nullopt;
}

const char* name_of(Algorithm algorithm) { return algorithm == Algorithm::ring ? "ring" : "tree"; }

double steps_of(Algorithm algorithm, Collective collective, int ranks) {
  const double once = algorithm == Algorithm::ring ? ranks - 1 : doublings(ranks);
  switch (collective) {
    case Collective::all_reduce: return 2 * once;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::broadcast: return once;
    case Collective::all_to_all: return ranks - 1;  // a message to each
    case Collective::send_receive: break;
  }
  return 1;
}

double volume_of(Collective collective, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce: return 2 * others;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return others;
    case Collective::broadcast:
    case Collective::send_receive: break;
  }
  return 1;
}

std::optional<Wire> fitted(Algorithm algorithm, std::span<const WirePoint> points) {
  // Of t = latency s + per_byte v, divided by the t that was measured.
  double ss = 0, sv = 0, vv = 0, s1 = 0, v1 = 0;
  std::size_t count = 0;
  std::set<double> sizes;
  const auto terms = [&](const WirePoint& p) {
    return std::pair(steps_of(algorithm, p.collective, p.ranks) / p.seconds,
                     volume_of(p.collective, p.ranks) * p.bytes / p.seconds);
  };
  const auto counts = [](const WirePoint& p) { return p.ranks > 1 && p.seconds > 0 && p.bytes > 0; };
  for (const WirePoint& p : points) {
    if (!counts(p)) continue;
    const auto [s, v] = terms(p);
    ss += s * s, sv += s * v, vv += v * v, s1 += s, v1 += v;
    ++count;
    sizes.insert(p.bytes);
  }
  if (count == 0) return std::nullopt;
  Wire wire{.algorithm = algorithm, .points = count, .sizes = sizes.size()};
  // Of one size and one number of ranks nothing tells the two apart: it is taken for all bytes.
  const double determinant = ss * vv - sv * sv;
  wire.tells_latency = determinant > 1e-9 * ss * vv;
  if (wire.tells_latency) {
    wire.latency_s = (s1 * vv - v1 * sv) / determinant;
    wire.seconds_per_byte = (v1 * ss - s1 * sv) / determinant;
  }
  if (!wire.tells_latency || wire.latency_s < 0) wire.latency_s = 0, wire.seconds_per_byte = v1 / vv;
  if (wire.seconds_per_byte < 0) wire.seconds_per_byte = 0, wire.latency_s = s1 / ss;
  for (const WirePoint& p : points)
    if (counts(p))
      wire.worst = std::max(wire.worst, std::abs(seconds_of(wire, p.collective, p.bytes, p.ranks) / p.seconds - 1));
  return wire;
}

bool is_refuted(const Wire& wire, const Wire& other) { return wire.worst > 1.5 * other.worst + 0.1; }

double seconds_of(const Wire& wire, Collective collective, double bytes, int ranks) {
  if (ranks < 2) return 0;
  return wire.latency_s * steps_of(wire.algorithm, collective, ranks) +
         wire.seconds_per_byte * volume_of(collective, ranks) * bytes;
}

}  // namespace assay::host::scaling
