#include "rapl.hpp"

#include <fstream>
#include <string>
#include <system_error>

namespace assay::cpu {
namespace {

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

std::string word_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

// Zones are "intel-rapl:0" (a package, also of AMD), "intel-rapl:0:1" (a part of it), "intel-rapl-mmio:0" (the same
// again).
RaplCounter::RaplCounter(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string zone = it->path().filename().string();
    if (!zone.starts_with("intel-rapl:") || !word_in(it->path() / "name").starts_with("package")) continue;
    Package package{it->path() / "energy_uj", number_in(it->path() / "max_energy_range_uj").value_or(0), std::nullopt};
    if (number_in(package.energy_file)) packages_.push_back(std::move(package));
  }
}

std::optional<double> RaplCounter::energy_j() {
  if (packages_.empty()) return std::nullopt;
  for (Package& package : packages_) {
    const std::optional<std::uint64_t> now_uj = number_in(package.energy_file);
    if (!now_uj) {
      packages_.clear();  // a sum with a hole would be taken for the whole
      return std::nullopt;
    }
    if (package.last_uj)
      sum_uj_ +=
          *now_uj >= *package.last_uj ? *now_uj - *package.last_uj : package.range_uj - *package.last_uj + *now_uj;
    package.last_uj = now_uj;
  }
  return static_cast<double>(sum_uj_) * 1e-6;
}

}  // namespace assay::cpu
