// A choice between kinds of a collective that all ranks make together, by timing each as steps use it.
//
// The ranks time one kind after the other, so that only one kind's memory is taken at a time. A collective is over when
// its slowest rank is, so the time of a round is the largest of the ranks', and that of a kind the median of its
// rounds. Rank 0 decides and publishes the decision, which every rank takes. It keeps the decision for later processes
// (compute::KeptChoices), so that a machine is measured once.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/compute/kept_choices.hpp>
#include <assay/plugin.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::comm {

inline constexpr std::size_t timed_rounds = 7;

double steady_seconds();  // of a clock that never goes back

// Seconds of each round on this rank, behind two that warm up. The ranks begin a round together, and it ends when the
// device has done what `enqueue` enqueues. `seconds` reads a clock. Every rank calls it.
std::array<double, timed_rounds> time_rounds(Communicator& communicator, compute::Backend& backend,
                                             const std::function<double()>& seconds,
                                             const std::function<void()>& enqueue);

struct TimedKind {
  std::string name;
  // Takes what the kind needs, times the rounds on this rank, and gives everything back: seconds of each round. Every
  // rank calls it at the same time. UNSUPPORTED or OUT_OF_MEMORY leave the kind out, on all ranks.
  std::function<std::array<double, timed_rounds>()> time;
  // Takes what the kind needs, and gives everything back. Every rank calls it at the same time, before a kept choice of
  // this kind is taken. It throws as `time` does where the kind cannot be had. Empty: it can be had in any case.
  std::function<void()> open = nullptr;
};

struct MeasuredChoice {
  std::size_t kind = 0;
  std::string text;  // what was chosen, the kinds' times, and what was left out: for the log
};

// Whether the device is one that stands in for another (assay/planning.h), on which nothing can be measured or counted.
bool carries_nothing_out(const Host& host);

// Every rank calls it with the same `kinds`, of which there is at least one, and gets the same choice. One kind is
// chosen at once, and nothing is timed or exchanged. `name`: of the choice, once in a case. `key`: what it is a choice
// for, under which it is kept, if `kept` is not null. A kept choice that a rank can no longer open is measured again,
// with a note of the reason. A later kind must be 2% faster to be taken in place of an earlier one. On a device that
// carries nothing out each kind takes its memory once, so that a plan has the largest, and the first that can be opened
// is chosen. Throws assay::Error: UNSUPPORTED where no kind is left, or ASSAY_ALGORITHMS=fixed and none was kept that
// can be opened; what `time` and `open` throw otherwise.
MeasuredChoice choose_by_time(const Host& host, std::string_view name, const std::string& key,
                              compute::KeptChoices* kept, const std::vector<TimedKind>& kinds);

// The key of a collective's choice: `communicator` describes the library, its version and its limits.
std::string choice_key(const Host& host, std::string_view collective, std::string_view communicator, bool graph,
                       std::string_view sizes);

// The first of the shortest times, 2% apart at most; empty where there is no time.
std::optional<std::size_t> fastest(const std::vector<std::optional<double>>& seconds);

}  // namespace assay::comm
