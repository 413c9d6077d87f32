#include "results/time_spent.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "common/text_format.hpp"
#include "results/terminal.hpp"

namespace assay::host::results {
namespace {

using record::WallTimes;

constexpr double least_share = 0.01;

struct Spent {
  std::string what;
  double seconds = 0;
  record::Named<double> parts = {};  // of it
};

void add_parts(record::Named<double>& sums, const record::Named<double>& parts) {
  for (const auto& [name, seconds] : parts) {
    const auto known =
        std::find_if(sums.begin(), sums.end(), [&name = name](const auto& sum) { return sum.first == name; });
    if (known == sums.end())
      sums.emplace_back(name, seconds);
    else
      known->second += seconds;
  }
}

std::string seconds_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return clock_text(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
}

std::string share_of(double seconds, double of) { return fmt::format("{:.0f}%", 100 * seconds / of); }

}  // namespace

std::string time_spent(const std::vector<record::CaseRecord>& records) {
  std::array spent{Spent{"verification"}, Spent{"set-up"}, Spent{"measuring"},
                   Spent{"warm-up"},      Spent{"finish"}, Spent{"load"}};
  double all_s = 0;
  std::size_t cases = 0;
  for (const record::CaseRecord& record : records) {
    const WallTimes& wall = record.result.wall;
    if (!wall.case_s || !std::isfinite(*wall.case_s)) continue;
    ++cases;
    all_s += *wall.case_s;
    spent[0].seconds += wall.verify_s.value_or(0) + wall.peak_s.value_or(0);
    spent[1].seconds += wall.create_s.value_or(0) + wall.setup_s.value_or(0);
    spent[2].seconds += wall.measure_s.value_or(0);
    spent[3].seconds += wall.warmup_s.value_or(0);
    spent[4].seconds += wall.finish_s.value_or(0);
    spent[5].seconds += wall.load_s.value_or(0);
    add_parts(spent[0].parts, wall.verify_parts_s);
    if (wall.peak_s) add_parts(spent[0].parts, {{"peak", *wall.peak_s}});
    add_parts(spent[1].parts, wall.setup_parts_s);
  }
  if (!(all_s > 0)) return "";
  std::stable_sort(spent.begin(), spent.end(), [](const Spent& a, const Spent& b) { return a.seconds > b.seconds; });
  std::vector<std::string> texts;
  double told_s = 0;
  for (const Spent& each : spent) {
    if (each.seconds < least_share * all_s) continue;
    told_s += each.seconds;
    texts.push_back(fmt::format("{} {}", each.what, share_of(each.seconds, all_s)));
    const auto longest = std::max_element(each.parts.begin(), each.parts.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest != each.parts.end() && longest->second >= least_share * all_s)
      texts.back() += fmt::format(" ({} {})", one_line(longest->first), share_of(longest->second, all_s));
  }
  if (const double other_s = all_s - told_s; other_s >= least_share * all_s)
    texts.push_back(fmt::format("other {}", share_of(other_s, all_s)));
  return fmt::format("{} in {}: {}", seconds_text(all_s), cases == 1 ? "1 case" : fmt::format("{} cases", cases),
                     fmt::join(texts, ", "));
}

}  // namespace assay::host::results
