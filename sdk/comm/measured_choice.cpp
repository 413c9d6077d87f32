#include "assay/comm/measured_choice.hpp"

#include <assay/comm.h>
#include <assay/device.h>
#include <assay/planning.h>

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>

namespace assay::comm {
namespace {

constexpr double least_gain = 0.02;
constexpr int warm_up_rounds = 2;

// What a rank has to say of a kind.
struct Report {
  std::int32_t opened = 0;
  std::int32_t reserved = 0;
  std::array<double, timed_rounds> seconds{};
};

struct Timed {
  std::optional<double> median;                   // of the rounds' slowest ranks; empty: left out
  std::array<double, timed_rounds> slowest_us{};  // by round
  std::string why_not;
};

std::string microseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof text, us < 100 ? "%.2f us" : "%.0f us", us);
  return text;
}

void check(assay_status status) {
  if (status != ASSAY_OK) throw Error(status, "");  // the host has the text
}

// What `make` gives on rank 0, on all ranks. At most 4 KiB.
std::string from_rank_0(const Host& host, const std::string& name, const std::function<std::string()>& make) {
  const assay_comm& ranks = ranks_of(host);
  if (ranks.rank == 0) {
    const std::string text = make();
    check(ranks.set(&ranks, to_abi(name), text.data(), text.size()));
    return text;
  }
  std::string text(4096, '\0');
  std::size_t bytes = 0;
  check(ranks.get(&ranks, to_abi(name), ranks.timeout_ms, text.data(), text.size(), &bytes));
  text.resize(std::min(bytes, text.size()));
  return text;
}

bool leaves_out(assay_status status) { return status == ASSAY_UNSUPPORTED || status == ASSAY_OUT_OF_MEMORY; }

// Returns whether `take` succeeds; if it does not, `why_not` becomes the reason.
bool succeeds(const std::function<void()>& take, std::string& why_not) {
  try {
    take();
    return true;
  } catch (const Error& e) {
    if (!leaves_out(e.status())) throw;
    why_not = e.what();
    return false;
  }
}

Report report_of(const TimedKind& kind, std::string& why_not) {
  Report report;
  report.opened = succeeds([&] { report.seconds = kind.time(); }, why_not) ? 1 : 0;
  return report;
}

bool opened_on_all(const std::vector<Report>& ranks, std::string& why_not) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].opened != 0) continue;
    if (why_not.empty()) why_not = "rank " + std::to_string(rank) + " could not open it";
    return false;
  }
  return true;
}

bool opens_on_all(const Host& host, const std::string& name, const TimedKind& kind, std::string& why_not) {
  if (!kind.open) return true;
  const Report mine{.opened = succeeds(kind.open, why_not) ? 1 : 0};
  return opened_on_all(exchange(host, name, mine), why_not);
}

Timed time_on_all(const Host& host, const std::string& name, const TimedKind& kind) {
  Timed timed;
  const Report mine = report_of(kind, timed.why_not);
  const std::vector<Report> all = exchange(host, name + "/" + kind.name, mine);
  if (!opened_on_all(all, timed.why_not)) return timed;
  for (std::size_t round = 0; round < timed_rounds; ++round)
    for (const Report& of_rank : all)
      timed.slowest_us[round] = std::max(timed.slowest_us[round], 1e6 * of_rank.seconds[round]);
  std::array<double, timed_rounds> sorted = timed.slowest_us;
  std::sort(sorted.begin(), sorted.end());
  timed.median = sorted[timed_rounds / 2];
  return timed;
}

// Memory is taken and given back, so that the plan's peak has the largest.
std::size_t plan_all(const std::vector<TimedKind>& kinds) {
  std::optional<std::size_t> first;
  std::string why_not;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (report_of(kinds[i], why_not).opened != 0 && !first) first = i;
  if (!first) throw Error(ASSAY_UNSUPPORTED, why_not);
  return *first;
}

std::string text_of(const std::vector<TimedKind>& kinds, const std::vector<Timed>& timed, std::size_t chosen) {
  std::string tried, left_out;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (timed[i].median)
      tried += (tried.empty() ? "" : ", ") + kinds[i].name + " " + microseconds(*timed[i].median);
    else
      left_out += "; " + kinds[i].name + " was left out: " + timed[i].why_not;
  }
  return kinds[chosen].name + ", the fastest of those timed: " + tried + left_out;
}

std::optional<std::size_t> place_of(const std::vector<TimedKind>& kinds, std::string_view name) {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].name == name) return i;
  return std::nullopt;
}

// A variable of the library can forbid in a later process the kind that was kept.
void note_closed(const Host& host, std::string_view name, const std::string& key, const compute::KeptChoices& kept,
                 const std::string& kind, const std::string& why_not) {
  const std::string closed =
      std::string(name) + ": " + kind + ", measured before, cannot be opened any more (" + why_not + ")";
  try {
    kept.refuse_to_choose(key);
  } catch (const Error& e) {
    if (e.status() != ASSAY_UNSUPPORTED) throw;
    throw Error(ASSAY_UNSUPPORTED,
                closed + ", and ASSAY_ALGORITHMS=fixed allows no other; unset ASSAY_ALGORITHMS, or what closes it");
  }
  host.warn(closed + "; the kinds are measured again");
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::array<double, timed_rounds> time_rounds(Communicator& communicator, compute::Backend& backend,
                                             const std::function<double()>& seconds,
                                             const std::function<void()>& enqueue) {
  std::array<double, timed_rounds> taken{};
  for (int round = -warm_up_rounds; round < static_cast<int>(timed_rounds); ++round) {
    backend.synchronize();
    communicator.barrier();
    const double begin = seconds();
    enqueue();
    communicator.synchronize();
    backend.synchronize();
    if (round >= 0) taken[static_cast<std::size_t>(round)] = seconds() - begin;
  }
  return taken;
}

bool carries_nothing_out(const Host& host) {
  const auto* device = host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  return device && device->api->get_extension && device->api->get_extension(ASSAY_EXT_PLANNING);
}

std::optional<std::size_t> fastest(const std::vector<std::optional<double>>& seconds) {
  std::optional<double> least;
  for (const std::optional<double>& s : seconds)
    if (s && (!least || *s < *least)) least = s;
  if (!least) return std::nullopt;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (seconds[i] && *seconds[i] <= *least * (1 + least_gain)) return i;
  return std::nullopt;
}

std::string choice_key(const Host& host, std::string_view collective, std::string_view communicator, bool graph,
                       std::string_view sizes) {
  const assay_comm& ranks = ranks_of(host);
  return std::string(collective) + " of " + std::string(sizes) + (graph ? ", in a graph" : "") + ", " +
         std::to_string(ranks.rank_count) + " ranks, " + std::to_string(ranks.local_rank_count) + " on a machine, " +
         std::string(communicator);
}

MeasuredChoice choose_by_time(const Host& host, std::string_view name, const std::string& key,
                              compute::KeptChoices* kept, const std::vector<TimedKind>& kinds) {
  if (kinds.empty()) throw Error(ASSAY_INTERNAL, "a choice of " + std::string(name) + " has no kinds");
  if (kinds.size() == 1) return {0, kinds[0].name + ", the only kind here"};
  if (carries_nothing_out(host)) return {plan_all(kinds), "chosen when it is measured"};

  const std::string road = "choice/" + std::string(name);
  const std::string known = from_rank_0(host, road + "/kept", [&]() -> std::string {
    if (!kept) return "none";
    if (const std::optional<std::string> found = kept->find(key); found && place_of(kinds, *found)) return *found;
    kept->refuse_to_choose(key);
    return "none";
  });
  if (const std::optional<std::size_t> found = place_of(kinds, known)) {
    std::string why_not;
    if (opens_on_all(host, road + "/opens", kinds[*found], why_not)) {
      if (kept) kept->list(key, known);
      return {*found, known + ", measured before"};
    }
    if (ranks_of(host).rank == 0) note_closed(host, name, key, *kept, known, why_not);
  }

  std::vector<Timed> timed;
  for (const TimedKind& kind : kinds) timed.push_back(time_on_all(host, road, kind));
  // The kind's name, a line end, and the text, which has rank 0's reasons.
  const std::string decision = from_rank_0(host, road + "/taken", [&]() -> std::string {
    std::vector<std::optional<double>> medians;
    for (const Timed& t : timed) medians.push_back(t.median);
    const std::optional<std::size_t> best = fastest(medians);
    if (!best) return "\n" + timed.front().why_not;
    if (kept) kept->keep(key, kinds[*best].name, timed[*best].slowest_us);
    return kinds[*best].name + "\n" + text_of(kinds, timed, *best);
  });
  const std::size_t end = decision.find('\n');
  const std::string text = end == std::string::npos ? "" : decision.substr(end + 1);
  const std::optional<std::size_t> taken = place_of(kinds, decision.substr(0, end));
  if (!taken) throw Error(ASSAY_UNSUPPORTED, "no kind of memory could be opened: " + text);
  if (kept) kept->list(key, kinds[*taken].name);
  return {*taken, text};
}

}  // namespace assay::comm
