// The sum of the packages' counters of energy, from files as the kernel has them.
#include "rapl.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

namespace assay::cpu {
namespace {

namespace fs = std::filesystem;

class Rapl : public ::testing::Test {
 protected:
  void zone(const std::string& zone, const std::string& name, std::uint64_t energy_uj, std::uint64_t range_uj = 1000) {
    fs::create_directories(folder_ / zone);
    std::ofstream(folder_ / zone / "name") << name << "\n";
    std::ofstream(folder_ / zone / "energy_uj") << energy_uj << "\n";
    std::ofstream(folder_ / zone / "max_energy_range_uj") << range_uj << "\n";
  }
  assay::test::TemporaryFolder folder_;
};

TEST_F(Rapl, SumsThePackagesAndNothingTwice) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:0:0", "core", 50);  // a part of the package
  zone("intel-rapl:1", "package-1", 10);
  zone("intel-rapl:2", "psys", 500);  // the packages again, and more
  zone("intel-rapl-mmio:0", "package-0", 100);
  RaplCounter counter(folder_.path());
  EXPECT_EQ(counter.energy_j(), 0.0);
  zone("intel-rapl:0", "package-0", 160);
  zone("intel-rapl:1", "package-1", 30);
  EXPECT_DOUBLE_EQ(counter.energy_j().value(), 80e-6);
}

TEST_F(Rapl, GoesOnWhereACounterBeginsAnew) {
  zone("intel-rapl:0", "package-0", 990, 1000);
  RaplCounter counter(folder_.path());
  counter.energy_j();
  zone("intel-rapl:0", "package-0", 20, 1000);
  EXPECT_DOUBLE_EQ(counter.energy_j().value(), 30e-6);
}

TEST_F(Rapl, WithoutAPackageThereIsNoEnergy) {
  EXPECT_FALSE(RaplCounter(folder_ / "none").energy_j().has_value());
  zone("intel-rapl:0", "psys", 1);
  EXPECT_FALSE(RaplCounter(folder_.path()).energy_j().has_value());
}

TEST_F(Rapl, APackageThatStopsTellingEndsTheSum) {
  zone("intel-rapl:0", "package-0", 1);
  zone("intel-rapl:1", "package-1", 1);
  RaplCounter counter(folder_.path());
  EXPECT_TRUE(counter.energy_j().has_value());
  fs::remove(folder_ / "intel-rapl:1" / "energy_uj");
  EXPECT_FALSE(counter.energy_j().has_value());
  EXPECT_FALSE(counter.energy_j().has_value());
}

}  // namespace
}  // namespace assay::cpu
