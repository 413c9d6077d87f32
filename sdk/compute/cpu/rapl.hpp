// The energy that the processors of this machine have taken, by RAPL, where the kernel lets this user read it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace assay::cpu {

// Sums the packages' counters, whoever has used them: the whole machine's processors, without memory and the rest. To
// be asked more often than the counters come round, which takes a minute at the least.
class RaplCounter {
 public:
  explicit RaplCounter(const std::filesystem::path& folder = "/sys/class/powercap");

  // Since the first call; nothing if no package reports, or one of them has stopped reporting.
  std::optional<double> energy_j();

 private:
  struct Package {
    std::filesystem::path energy_file;
    std::uint64_t range_uj = 0;  // the counter begins anew behind it
    std::optional<std::uint64_t> last_uj;
  };
  std::vector<Package> packages_;
  std::uint64_t sum_uj_ = 0;
};

}  // namespace assay::cpu
