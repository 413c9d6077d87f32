#include "forecast/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace assay::host::forecast {
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

double ring_or_tree_steps(Algorithm algorithm, Collective collective, int ranks) {
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

double ring_or_tree_volume(Collective collective, int ranks) {
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

// Headers of a message: Gloo's own, and those of TCP with time stamps and of IP, once more for the acknowledgement.
constexpr double head_bytes = 48 + 2 * (32 + 20);
// Pieces of a broadcast: its root sends the next ones while others pass one on.
constexpr double piece_bytes = 1024 * 1024;

// As sdk/comm/gloo/collectives.cpp sends.
Demand direct(Collective collective, double bytes, int ranks) {
  const double others = ranks - 1, share = bytes / ranks;
  switch (collective) {
    case Collective::all_reduce:
      if (bytes <= small_message_bytes) return {1, others, others * bytes};
      // Shares to the owners of parts, beside which they say that they are ready, and results from them.
      return {2, 3 * others, 2 * others * share};
    case Collective::reduce_scatter:
      // Shares, and that they have been taken.
      return {2, 2 * others, others * share};
    case Collective::all_gather:
    case Collective::all_to_all:
      // That there is room, and what it is for.
      return {2, 2 * others, others * share};
    case Collective::broadcast: {
      // The root sends a part to each of the others, which pass it on.
      const double passed_on = (others - 1) * std::min(piece_bytes, bytes / others);
      return {ranks > 2 ? 3.0 : 2.0, others + 1, bytes + passed_on};
    }
    case Collective::send_receive: break;
  }
  return {2, 2, bytes};
}

constexpr std::size_t most_terms = 3;  // latency, message, byte
using Terms = std::array<double, most_terms>;

Terms terms_of(Algorithm algorithm, const WirePoint& p) {
  const Demand d = demand_of(algorithm, p.collective, p.bytes, p.ranks);
  return {d.steps, d.messages, d.bytes};
}

// The factors of some of the terms (bits of `chosen`) with the least sum of squares, by elimination. Nothing where the
// points do not separate them.
std::optional<Terms> least_squares(unsigned chosen, std::span<const Terms> rows) {
  std::array<std::array<double, most_terms + 1>, most_terms> m{};  // normal equations
  for (const Terms& row : rows)
    for (std::size_t i = 0; i < most_terms; ++i) {
      for (std::size_t j = 0; j < most_terms; ++j) m[i][j] += row[i] * row[j];
      m[i][most_terms] += row[i];
    }
  const auto is_chosen = [chosen](std::size_t i) { return (chosen >> i & 1) != 0; };
  for (std::size_t i = 0; i < most_terms; ++i) {
    if (!is_chosen(i)) continue;
    double own = 0;  // of the term alone, before what earlier ones explain of it
    for (const Terms& row : rows) own += row[i] * row[i];
    if (m[i][i] <= 1e-9 * own) return std::nullopt;
    for (std::size_t k = 0; k < most_terms; ++k) {
      if (k == i || !is_chosen(k)) continue;
      const double factor = m[k][i] / m[i][i];
      for (std::size_t j = 0; j <= most_terms; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  Terms found{};
  for (std::size_t i = 0; i < most_terms; ++i)
    if (is_chosen(i)) found[i] = m[i][most_terms] / m[i][i];
  return found;
}

struct Fit {
  Terms factors{};
  double squares = 0;  // of relative differences
  bool is_any = false;
};

// The best of the terms `allowed`, and of any of them where one would be below 0.
Fit best_fit(unsigned allowed, std::span<const Terms> rows) {
  Fit best;
  for (unsigned chosen = 1; chosen <= allowed; ++chosen) {
    if ((chosen & ~allowed) != 0) continue;
    const auto factors = least_squares(chosen, rows);
    if (!factors || std::any_of(factors->begin(), factors->end(), [](double f) { return f < 0; })) continue;
    Fit fit{*factors, 0, true};
    for (const Terms& row : rows) {
      double off = -1;
      for (std::size_t i = 0; i < most_terms; ++i) off += row[i] * fit.factors[i];
      fit.squares += off * off;
    }
    if (!best.is_any || fit.squares < best.squares) best = fit;
  }
  return best;
}

constexpr unsigned latency_term = 1, message_term = 2, byte_term = 4;
// How many times of what is left of the differences, for each degree of freedom, a term must explain (the F of a test
// of variances) to be taken: it counts twice for each rank more, far beyond those that were measured.
constexpr double least_f = 10;

// A start takes as long as so many steps: base latency over that of a step by NVLink, of NCCL's Simple protocol
// (src/graph/tuning.cc: baseLatencies, hwLatencies), ring and tree.
constexpr double nccl_ring_steps_of_a_start = 8.4 / 3.4, nccl_tree_steps_of_a_start = 8.4 / 4.0;

Fit nccl_fit(Algorithm algorithm, std::size_t rank_counts, std::span<const Terms> rows) {
  if (rank_counts > 1 && rows.size() > most_terms) return best_fit(latency_term | message_term | byte_term, rows);
  const double of_a_start = algorithm == Algorithm::ring ? nccl_ring_steps_of_a_start : nccl_tree_steps_of_a_start;
  std::vector<Terms> together(rows.begin(), rows.end());
  for (Terms& row : together) row[0] += of_a_start * row[1];
  Fit fit = best_fit(latency_term | byte_term, together);
  fit.factors[1] = of_a_start * fit.factors[0];
  return fit;
}

Fit fit_of(Algorithm algorithm, const Link& link, std::size_t rank_counts, std::span<const Terms> rows) {
  if (algorithm != Algorithm::direct)
    return link.library == "nccl" && !link.between_machines ? nccl_fit(algorithm, rank_counts, rows)
                                                            : best_fit(latency_term | byte_term, rows);
  if (!link.between_machines) return best_fit(message_term | byte_term, rows);
  const Fit without = best_fit(latency_term | byte_term, rows);
  if (rank_counts < 2 || rows.size() <= most_terms) return without;
  const Fit with = best_fit(latency_term | message_term | byte_term, rows);
  const double left = with.squares / static_cast<double>(rows.size() - most_terms);
  return without.squares - with.squares > least_f * left ? with : without;
}

double modelled_seconds(const Wire& wire, const Demand& demand) {
  return wire.latency_s * demand.steps + wire.message_s * demand.messages + wire.seconds_per_byte * demand.bytes;
}

bool counts(const WirePoint& p) { return p.ranks > 1 && p.seconds > 0 && p.bytes > 0; }

// Of several measurements of one size the mean.
std::map<Collective, MeasuredCurve> curves_of(const Wire& wire, std::span<const WirePoint> points) {
  std::map<Collective, int> most_ranks;
  for (const WirePoint& p : points)
    if (counts(p)) most_ranks[p.collective] = std::max(most_ranks[p.collective], p.ranks);
  std::map<Collective, std::map<double, std::pair<double, int>>> sums;  // by what is sent: ratios, and how many
  for (const WirePoint& p : points) {
    if (!counts(p) || p.ranks != most_ranks[p.collective]) continue;
    const Demand demand = demand_of(wire.algorithm, p.collective, p.bytes, p.ranks);
    auto& [sum, count] = sums[p.collective][demand.bytes];
    sum += p.seconds / modelled_seconds(wire, demand), ++count;
  }
  std::map<Collective, MeasuredCurve> curves;
  for (const auto& [collective, of_sent] : sums)
    for (const auto& [sent, ratios] : of_sent) {
      curves[collective].sent_bytes.push_back(sent);
      curves[collective].of_model.push_back(ratios.first / ratios.second);
    }
  return curves;
}

// Between two sizes by the logarithm of what is sent; beyond them as the nearest.
double at(const MeasuredCurve& curve, double sent_bytes) {
  const auto above = std::upper_bound(curve.sent_bytes.begin(), curve.sent_bytes.end(), sent_bytes);
  if (above == curve.sent_bytes.begin()) return curve.of_model.front();
  if (above == curve.sent_bytes.end()) return curve.of_model.back();
  const auto i = static_cast<std::size_t>(above - curve.sent_bytes.begin());
  const double share = std::log(sent_bytes / curve.sent_bytes[i - 1]) / std::log(*above / curve.sent_bytes[i - 1]);
  return curve.of_model[i - 1] + share * (curve.of_model[i] - curve.of_model[i - 1]);
}

double longer_than_model(const Wire& wire, Collective collective, double sent_bytes) {
  auto curve = wire.curves.find(collective);
  if (curve == wire.curves.end()) curve = wire.curves.find(Collective::all_reduce);
  return curve == wire.curves.end() ? 1 : at(curve->second, sent_bytes);
}

}  // namespace

std::optional<Collective> collective_named(std::string_view name) {
  for (const auto& [text, collective] : names)
    if (text == name) return collective;
  return std::nullopt;
}

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring: return "ring";
    case Algorithm::tree: return "tree";
    case Algorithm::direct: break;
  }
  return "direct";
}

std::string Link::text() const {
  std::string text = device + ", " + library;
  if (between_machines) text += ", between machines";
  if (in_graph) text += ", in graphs";
  if (memory == MessageMemory::registered) text += ", registered memory";
  if (memory == MessageMemory::windows) text += ", windows";
  return text;
}

std::vector<Algorithm> Link::algorithms() const {
  if (library == "gloo") return {Algorithm::direct};
  return {Algorithm::ring, Algorithm::tree};
}

Demand demand_of(Algorithm algorithm, Collective collective, double bytes, int ranks) {
  if (ranks < 2) return {};
  if (algorithm != Algorithm::direct)
    return {ring_or_tree_steps(algorithm, collective, ranks), 1, ring_or_tree_volume(collective, ranks) * bytes};
  Demand demand = direct(collective, bytes, ranks);
  demand.bytes += head_bytes * demand.messages;
  return demand;
}

std::optional<Wire> fitted(Algorithm algorithm, std::span<const WirePoint> points) {
  std::vector<Terms> rows;  // of t = latency * steps + message * messages + per_byte * bytes, divided by the t measured
  std::set<double> sizes;
  std::set<int> ranks;
  Link link;
  for (const WirePoint& p : points) {
    if (!counts(p)) continue;
    Terms row = terms_of(algorithm, p);
    for (double& term : row) term /= p.seconds;
    rows.push_back(row);
    sizes.insert(p.bytes), ranks.insert(p.ranks);
    link = p.link;
  }
  if (rows.empty()) return std::nullopt;
  Wire wire{.algorithm = algorithm, .points = rows.size(), .sizes = sizes.size(), .rank_counts = ranks.size()};
  const unsigned of_steps = algorithm == Algorithm::direct && !link.between_machines ? message_term : latency_term;
  // One size on one number of ranks does not separate the two: it is taken for all bytes.
  wire.has_latency = least_squares(of_steps | byte_term, rows).has_value();
  const Fit fit = wire.has_latency ? fit_of(algorithm, link, ranks.size(), rows) : best_fit(byte_term, rows);
  wire.latency_s = fit.factors[0], wire.message_s = fit.factors[1], wire.seconds_per_byte = fit.factors[2];
  for (const WirePoint& p : points)
    if (counts(p))
      wire.worst = std::max(
          wire.worst,
          std::abs(modelled_seconds(wire, demand_of(algorithm, p.collective, p.bytes, p.ranks)) / p.seconds - 1));
  wire.curves = curves_of(wire, points);
  return wire;
}

bool is_refuted(const Wire& wire, const Wire& other) { return wire.worst > 1.5 * other.worst + 0.1; }

double seconds_of(const Wire& wire, Collective collective, double bytes, int ranks) {
  const Demand demand = demand_of(wire.algorithm, collective, bytes, ranks);
  return modelled_seconds(wire, demand) * longer_than_model(wire, collective, demand.bytes);
}

}  // namespace assay::host::forecast
