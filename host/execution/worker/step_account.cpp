#include "worker/step_account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace assay::host::worker {
namespace {

constexpr std::uint64_t room_for_marks = std::uint64_t{1} << 16;

// A repetition costs at most this, or the warm-up and two measured steps where these are longer.
constexpr double repeated_s = 0.5;
constexpr double fewest_measured = 2;

// A device that does not repeat itself differs from one repetition to the next by about as much as from the timed steps
// to either, and a part of its work left out is far beyond it. Two runs of a step often agree by chance: where a few
// repetitions have not seen enough of the spread, further ones do.
constexpr std::size_t most_repetitions = 5;
constexpr double most_spreads = 8;

// The fastest repetition takes so much longer than the timed steps only where these did not wait for their
// work. What is forgiven are the waits between short steps, which measured ones may not have had.
constexpr double most_times_as_long = 3, forgiven_s = 0.05;

std::size_t marks_of(const StepAccount& account, std::uint64_t steps) {
  return static_cast<std::size_t>(std::min(steps, account.marked_steps()) * account.marks_per_step);
}

// The distance of two values of a mark: 0 of the same bits, so that what is no number may be so again.
double distance(double a, double b) {
  if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) return 0;
  const double apart = std::abs(a - b);
  return std::isnan(apart) ? INFINITY : apart;
}

struct Difference {
  std::size_t mark;
  double timed, repeated, allowed;
};

// The first mark by which the timed steps differ from a repetition beyond what is allowed.
std::optional<Difference> difference(const StepAccount& timed, const std::vector<StepAccount>& repetitions,
                                     std::size_t marks) {
  std::vector<double> spread(static_cast<std::size_t>(timed.marks_per_step));  // of each kind of mark, up to here
  for (std::size_t mark = 0; mark < marks; ++mark) {
    double& apart = spread[mark % spread.size()];
    for (const StepAccount& a : repetitions)
      for (const StepAccount& b : repetitions)
        // What is no number is no measure of how far runs may be apart.
        if (const double of_two = distance(a.marks[2 * mark], b.marks[2 * mark]); std::isfinite(of_two))
          apart = std::max(apart, of_two);
    if (distance(timed.marks[2 * mark], repetitions.front().marks[2 * mark]) == 0) continue;
    const double own = timed.marks[2 * mark], magnitude = timed.marks[2 * mark + 1];
    const double again = repetitions.front().marks[2 * mark];
    const double allowed = timed.tolerance > 0 ? std::max(timed.tolerance * magnitude, most_spreads * apart) : 0;
    if (!(distance(own, again) <= allowed)) return Difference{mark, own, again, allowed};
  }
  return std::nullopt;
}

std::string in_words(const Difference& found, const StepAccount& timed, std::uint64_t steps_before_window) {
  const std::uint64_t step = found.mark / timed.marks_per_step;
  const std::string which = step < steps_before_window
                                ? fmt::format("step {} of the warm-up", step + 1)
                                : fmt::format("measured step {}", step - steps_before_window + 1);
  return fmt::format(
      "{} left {:.9g}, but {:.9g} when it was repeated from the start (mark {} of {}{}): the timed steps are not the "
      "verified ones",
      which, found.timed, found.repeated, found.mark % timed.marks_per_step + 1, timed.marks_per_step,
      found.allowed > 0 ? fmt::format("; {:.3g} is allowed", found.allowed) : "");
}

}  // namespace

const assay_account* account_of(const assay_workload& workload, assay_workload_self* object) {
  const auto* table = workload.get_extension
                          ? static_cast<const assay_account*>(workload.get_extension(object, ASSAY_EXT_ACCOUNT))
                          : nullptr;
  return table && ASSAY_HAS(table, assay_account, read) && table->read ? table : nullptr;
}

assay_status read_account(const assay_account& table, assay_workload_self* object, const assay_launch& launch,
                          StepAccount& out) {
  assay_step_account read{};
  read.struct_size = sizeof read;
  out.marks.resize(2 * room_for_marks);
  read.marks = out.marks.data();
  read.mark_capacity = room_for_marks;
  const assay_status status = table.read(object, &launch, &read);
  out.steps = read.steps;
  out.marks_per_step = read.marks_per_step;
  out.tolerance = read.tolerance;
  const std::uint64_t count = std::min(read.mark_count, room_for_marks);
  out.marks.resize(
      read.marks_per_step == 0 ? 0 : static_cast<std::size_t>(2 * (count / read.marks_per_step) * read.marks_per_step));
  return status;
}

std::string mistake_in_count(const StepAccount& account, const measure::LoopResult& measured) {
  if (account.steps == measured.iterations) return "";
  return fmt::format("{} steps were called, {} of them before the window, and the workload's state accounts for {}",
                     measured.iterations, measured.iterations_before_window, account.steps);
}

std::uint64_t steps_to_repeat(const measure::LoopResult& measured, double step_s) {
  const double affordable = step_s > 0 ? repeated_s / step_s : static_cast<double>(measured.iterations);
  const double least = static_cast<double>(measured.iterations_before_window) + fewest_measured;
  return static_cast<std::uint64_t>(std::min(std::max(least, affordable), static_cast<double>(measured.iterations)));
}

RepeatedSteps compare_repeated(const StepAccount& account, const TimedSteps& timed, const RepeatSteps& repeat,
                               const std::function<bool(bool)>& any_rank) {
  RepeatedSteps result;
  const std::size_t marks = marks_of(account, timed.steps);
  if (marks == 0) {
    result.text = "what they leave has no marks";
    return result;
  }
  const std::uint64_t compared = marks / account.marks_per_step;
  result.repeated_steps = compared;
  std::vector<StepAccount> repetitions;
  std::optional<Difference> found;
  double shortest_s = INFINITY;
  const auto is_too_long = [&] {
    return shortest_s > most_times_as_long * timed.step_s * static_cast<double>(compared) + forgiven_s;
  };
  do {
    repetitions.push_back(repeat(compared));
    const StepAccount& last = repetitions.back();
    if (last.steps != compared || last.marks_per_step != account.marks_per_step || marks_of(last, compared) != marks) {
      result.mistake =
          fmt::format("{} steps were repeated, and the workload's state accounts for {}, {} of them marked", compared,
                      last.steps, last.marked_steps());
      return result;
    }
    found = difference(account, repetitions, marks);
    shortest_s = std::min(shortest_s, last.took_s);
  } while (any_rank((found && account.tolerance > 0) || is_too_long()) && repetitions.size() < most_repetitions);
  if (found) {
    result.mistake = in_words(*found, account, timed.before_window);
  } else if (is_too_long()) {
    result.mistake = fmt::format(
        "a measured step took {:.4g} ms, but the first {} steps took {:.4g} ms each when repeated and awaited: the "
        "time of a step does not include its work",
        timed.step_s * 1e3, compared, shortest_s / static_cast<double>(compared) * 1e3);
  }
  if (!result.mistake.empty()) return result;
  bool is_same = true;
  for (std::size_t mark = 0; mark < marks; ++mark)
    is_same = is_same && distance(account.marks[2 * mark], repetitions.front().marks[2 * mark]) == 0;
  result.text = fmt::format("the first {} repeated from the start with {}", compared,
                            is_same ? "the same marks to the bit" : "marks as near as the device repeats itself");
  return result;
}

}  // namespace assay::host::worker
