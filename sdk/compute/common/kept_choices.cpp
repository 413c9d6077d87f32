#include "kept_choices.hpp"

#include <algorithm>
#include <vector>

#include "chosen_algorithms.hpp"

namespace assay::compute {

std::optional<std::string> ChoicesInFile::find(const std::string& key) {
  const auto found = cache_.find(key);
  return found ? std::optional(found->algorithm) : std::nullopt;
}

void ChoicesInFile::keep(const std::string& key, const std::string& choice, std::span<const double> microseconds) {
  if (microseconds.empty() || !may_keep_(microseconds)) return;
  std::vector<double> sorted(microseconds.begin(), microseconds.end());
  std::sort(sorted.begin(), sorted.end());
  cache_.store(key, {choice, sorted[sorted.size() / 2]});
  cache_.save();
}

void ChoicesInFile::list(const std::string& key, const std::string& choice) { note_algorithm(key, choice); }

}  // namespace assay::compute
