// Whatever becomes of a file while a run goes on, its cases are made by what it was when the run began, and say so.
#include <sys/mount.h>

#include <fstream>

#include "e2e/taken_files/builds.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

class TakenFiles : public Builds {
 protected:
  // Starts the sweep, and does this to the plugin when its first case has a record.
  RunResult run_and_meanwhile(const std::function<void()>& meanwhile) {
    write_experiment(gated_sweep_of_four());
    close_gates();
    HostProcess host = start(run_arguments());
    EXPECT_TRUE(wait_until([&] { return !case_lines().empty(); })) << output();
    meanwhile();
    open_gates();
    const std::optional<HostExit> exit = host.wait();
    return {exit.value_or(HostExit{}), output()};
  }
  void expect_all_by_build_1(const RunResult& result) {
    EXPECT_EQ(result.exit.signal, 0) << result.output;
    EXPECT_EQ(result.exit.code, 0) << result.output;
    const std::vector<nlohmann::json> records = cases();
    ASSERT_EQ(records.size(), 4u);
    for (const nlohmann::json& record : records) {
      EXPECT_EQ(record["status"], "ok") << record;
      EXPECT_EQ(metric(record, "build"), 1);
      EXPECT_EQ(metric(record, "helper"), 1);
      EXPECT_EQ(record["files"], records.front()["files"]);
      EXPECT_EQ(record["files"]["plugin"], record["plugin"]["file_hash"]);
    }
    EXPECT_FALSE(fs::exists(run_folder() / "files")) << "the copies are left";
    EXPECT_TRUE(fs::exists(run_folder() / "table.csv"));
  }
};

TEST_F(TakenFiles, APluginThatIsMovedOver) {
  expect_all_by_build_1(run_and_meanwhile([&] { install(2); }));
  // What the run has made is none of what lies there now.
  const RunResult resumed = run(run_arguments({"--resume"}));
  EXPECT_EQ(resumed.exit.code, 0) << resumed.output;
  EXPECT_PRED2(contains, resumed.output, "4 finished cases run again: plugin: SHA-256 ");
  EXPECT_PRED2(contains, resumed.output, "4 finished cases run again: plugin/libpace_helper.so: SHA-256 ");
  const std::vector<nlohmann::json> all = cases();
  ASSERT_EQ(all.size(), 12u) << "four, four that say that they are outdated, and four";
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[4 + i]["status"], "outdated");
    EXPECT_EQ(metric(all[8 + i], "build"), 2);
    EXPECT_EQ(metric(all[8 + i], "helper"), 2);
  }
  // And back: what build 1 had made is not taken for the newest of the cases.
  install(1);
  const RunResult back = run(run_arguments({"--resume"}));
  EXPECT_PRED2(contains, back.output, "4 finished cases run again");
  EXPECT_EQ(metric(cases().back(), "build"), 1);
}

TEST_F(TakenFiles, APluginThatIsTruncated) {
  expect_all_by_build_1(run_and_meanwhile([&] { fs::resize_file(plugin(), 100); }));
}

TEST_F(TakenFiles, APluginThatIsOverwrittenInItsPlace) {
  expect_all_by_build_1(run_and_meanwhile([&] {
    std::ofstream to(plugin(), std::ios::binary);
    to << std::ifstream(built(2, "paced.so"), std::ios::binary).rdbuf();
  }));
}

TEST_F(TakenFiles, APluginThatIsRemovedWithWhatItNeeds) {
  expect_all_by_build_1(run_and_meanwhile([&] { fs::remove_all(plugins()); }));
}

TEST_F(TakenFiles, ALibraryBesideThePluginThatIsOverwrittenOrTruncatedInItsPlace) {
  for (const bool truncates : {false, true}) {
    install(1);
    std::filesystem::remove_all(folder() / "out");
    expect_all_by_build_1(run_and_meanwhile([&] {
      std::ofstream to(plugins() / "needs/libpace_helper.so", std::ios::binary);
      if (!truncates) to << std::ifstream(built(2, "libpace_helper.so"), std::ios::binary).rdbuf();
    }));
  }
}

TEST_F(TakenFiles, ADeviceBackendThatIsOverwrittenInItsPlace) {
  install_other_device(1);
  ExperimentText text = gated_sweep_of_four();
  text.device = "cuda";
  write_experiment(text);
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] { return !case_lines().empty(); })) << output();
  fs::resize_file(devices() / "libassay_device_cuda.so", 100);
  open_gates();
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0) << output();
  EXPECT_EQ(cases().size(), 4u);
}

TEST_F(TakenFiles, TheRecordsHashIsThatOfSha256sum) {
  write_experiment(sweep_of_four());
  ASSERT_EQ(run(run_arguments()).exit.code, 0);
  const std::string command = "sha256sum " + plugin().string() + " > " + (folder() / "sum").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(text_of(folder() / "sum").starts_with(cases().front()["files"]["plugin"].get<std::string>()));
}

TEST_F(TakenFiles, CasesInTheHostsProcessHaveThemToo) {
  write_experiment(sweep_of_four());
  const RunResult result = run(run_arguments({"--in-process"}));
  expect_all_by_build_1(result);
}

// The file's content counts, and not when it was touched.
TEST_F(TakenFiles, AnInputThatChangesEndsItsCasesWithAReason) {
  std::ofstream(folder() / "input") << "one";
  ExperimentText text = gated_sweep_of_four();
  text.params += "\ninput = \"" + (folder() / "input").string() + "\"";
  write_experiment(text);
  HostProcess host = start(run_arguments());
  ASSERT_TRUE(wait_until([&] { return !case_lines().empty(); })) << output();
  fs::last_write_time(folder() / "input", fs::file_time_type::clock::now());
  open_gates({1});
  ASSERT_TRUE(wait_until([&] { return case_lines().size() >= 2; })) << output();
  std::ofstream(folder() / "input") << "two";
  open_gates({2, 3});
  const std::optional<HostExit> exit = host.wait();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1) << output();
  const std::vector<nlohmann::json> records = cases();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["status"], "ok");
  EXPECT_EQ(records[1]["status"], "ok") << "it was touched, and is the same";
  EXPECT_EQ(records[3]["status"], "failed");
  EXPECT_PRED2(contains, records[3]["reason"].get<std::string>(), "input has changed during the run (SHA-256 ");
  EXPECT_FALSE(records[3].contains("phases"));
}

TEST_F(TakenFiles, AFolderFromWhichNothingIsExecutedIsNamedWithTheRemedy) {
  fs::create_directory(folder() / "out");
  if (mount("assay-test", (folder() / "out").c_str(), "tmpfs", MS_NOEXEC, "size=16m") != 0)
    GTEST_SKIP() << "mounting a file system is not permitted here";
  const RunResult result = run_experiment(sweep_of_four());
  umount2((folder() / "out").c_str(), MNT_DETACH);
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_PRED2(contains, result.output, "is on a file system mounted with noexec");
  EXPECT_PRED2(contains, result.output, "choose another folder with --output DIR");
}

}  // namespace
}  // namespace assay::test
