#include "experiment/mistake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace assay::host::experiment {

std::string Mistake::to_string() const {
  return line > 0 ? fmt::format("{}:{}:{}: {}", file, line, column, text) : fmt::format("{}: {}", file, text);
}

void Mistakes::add(const Place& place, std::string text) {
  list_.push_back({place.source, place.line, place.column, std::move(text)});
}

std::vector<Mistake> Mistakes::sorted() const {
  auto result = list_;
  sort_by_place(result);
  return result;
}

void sort_by_place(std::vector<Mistake>& mistakes) {
  const auto key = [](const Mistake& m) { return std::tuple(m.line <= 0, m.line, m.column); };
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [&](const Mistake& a, const Mistake& b) { return key(a) < key(b); });
}

}  // namespace assay::host::experiment
