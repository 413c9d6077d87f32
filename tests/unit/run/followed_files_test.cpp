#include <gtest/gtest.h>

#include <fstream>

#include "common/files.hpp"
#include "common/sha256.hpp"
#include "run/taken_files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::run::test {
namespace {

namespace fs = std::filesystem;

// A machine that leads, whose run folder may be seen from here or not, and the originals of this machine.
class Followed : public ::testing::Test {
 protected:
  Followed() {
    put("plugin.so", "a plugin"), put("device.so", "a device");
    spec_.ranks.host_name = "n2";
    spec_.host_sha256 = sha256_of_file("/proc/self/exe");
    spec_.plugin_file = theirs("plugins/plugin.so"), spec_.device_file = theirs("devices/device.so");
    spec_.comm_folder = "/usr/lib/assay/comm", spec_.library_folders = {theirs("plugins")};
    spec_.copies = {{spec_.plugin_file, at("plugin.so"), hash("plugin.so")},
                    {spec_.device_file, at("device.so"), hash("device.so")}};
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string theirs(const std::string& name) const { return at("run/files/" + name); }
  std::string hash(const std::string& name) const { return sha256_of_file(at(name)); }
  void put(const std::string& name, const std::string& text) const {
    create_folders(fs::path(at(name)).parent_path());
    std::ofstream(at(name)) << text;
  }
  std::string complaint() const {
    try {
      FollowedFiles().seen_from_here(spec_);
    } catch (const plugin::PluginError& e) {
      return e.what();
    }
    return "";
  }

  assay::test::TemporaryFolder folder_;
  worker::CaseSpec spec_;
};

TEST_F(Followed, WhereTheLeadersCopiesAreSeenTheyAreOpened) {
  put("run/files/plugins/plugin.so", "a plugin"), put("run/files/devices/device.so", "a device");
  FollowedFiles files;
  EXPECT_EQ(files.seen_from_here(spec_).plugin_file, spec_.plugin_file);
  EXPECT_EQ(files.seen_from_here(spec_).device_file, spec_.device_file);
}

TEST_F(Followed, WhereTheyAreNotThisMachineMakesItsOwnAndTakesThemAway) {
  create_folders(at("run"));
  std::string own;
  {
    FollowedFiles files;
    for (int time = 0; time < 2; ++time) {
      const worker::CaseSpec seen = files.seen_from_here(spec_);
      own = fs::path(seen.plugin_file).parent_path().string();
      EXPECT_NE(seen.plugin_file, spec_.plugin_file);
      EXPECT_EQ(read_file(seen.plugin_file), "a plugin");
      EXPECT_EQ(read_file(seen.device_file), "a device");
      EXPECT_EQ(seen.library_folders, std::vector<std::string>{own});
      EXPECT_EQ(seen.comm_folder, spec_.comm_folder);
    }
  }
  EXPECT_FALSE(fs::exists(own));
}

// Left by a process that was killed, before the plugin was rebuilt.
TEST_F(Followed, AStaleCopyIsNotOpened) {
  put("run/files/plugins/plugin.so", "an old plugin"), put("run/files/devices/device.so", "a device");
  FollowedFiles files;
  EXPECT_EQ(read_file(files.seen_from_here(spec_).plugin_file), "a plugin");
  EXPECT_EQ(read_file(theirs("plugins/plugin.so")), "an old plugin") << "it is the leading one's";
}

TEST_F(Followed, OtherFilesOrAnotherAssayAreRefused) {
  put("device.so", "another device");
  EXPECT_NE(complaint().find("device.so on n2 is another file than on the machine that leads the run"),
            std::string::npos)
      << complaint();
  put("device.so", "a device");
  EXPECT_EQ(complaint(), "");
  spec_.host_sha256 = "0123";
  EXPECT_NE(complaint().find("assay on n2 is another build"), std::string::npos) << complaint();
}

}  // namespace
}  // namespace assay::host::run::test
