#include "wireup/strangers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace assay::host::wireup {
namespace {

constexpr std::size_t addresses_kept = 64, addresses_told = 4;

// In the order of Refusal.
constexpr std::array<const char*, 7> refusal_texts = {
    "with a wrong token",
    "of another version of assay",
    "of another protocol",
    "silent for too long",
    "closed before anything was proven",
    "silent while too many others waited",
    "with messages changed or added on the way",
};

}  // namespace

void Strangers::note(const std::string& address, Refusal why) {
  std::lock_guard lock(mutex_);
  auto place = by_address_.find(address);
  if (place == by_address_.end() && by_address_.size() < addresses_kept) place = by_address_.try_emplace(address).first;
  Counts& counts = place == by_address_.end() ? of_other_addresses_ : place->second;
  ++counts[static_cast<std::size_t>(why)];
}

std::uint64_t Strangers::count() const {
  std::lock_guard lock(mutex_);
  std::uint64_t sum = total(of_other_addresses_);
  for (const auto& [address, counts] : by_address_) sum += total(counts);
  return sum;
}

std::string Strangers::text() const {
  const std::uint64_t all = count();
  if (all == 0) return {};
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Counts>> most(by_address_.begin(), by_address_.end());
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return total(a.second) > total(b.second); });
  std::string text = all == 1 ? "1 connection was refused: " : fmt::format("{} connections were refused: ", all);
  Counts rest = of_other_addresses_;
  for (std::size_t i = 0; i < most.size(); ++i) {
    const auto& [address, counts] = most[i];
    if (i < addresses_told)
      text += fmt::format("{}{} from {} ({})", i > 0 ? "; " : "", total(counts), address, reasons(counts));
    else
      std::transform(counts.begin(), counts.end(), rest.begin(), rest.begin(), std::plus<>());
  }
  if (total(rest) > 0) text += fmt::format("; {} from other addresses ({})", total(rest), reasons(rest));
  return text;
}

std::uint64_t Strangers::total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::string Strangers::reasons(const Counts& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[i], refusal_texts[i]);
  return text;
}

}  // namespace assay::host::wireup
