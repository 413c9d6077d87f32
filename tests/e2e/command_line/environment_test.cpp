// Where a record says that it was made: each invocation of a run looks at its own environment.
#include <string>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunEnvironment : public Sandbox {
 protected:
  RunEnvironment() : Sandbox(PLUGINS) {}

  static ExperimentText napping(const std::string& sweep) {
    return {.plugin = "napping_work", .measure = "warmup = 0\nsteps = 2", .sweep = sweep};
  }
  json environment_of(const json& record) const {
    const fs::path file = run_folder() / "environments" / (record["environment"].get<std::string>() + ".json");
    EXPECT_TRUE(fs::exists(file)) << file;
    return json::parse(text_of(file));
  }
};

TEST_F(RunEnvironment, ARecordNamesItsOwnAlsoAfterAResumeElsewhere) {
  set_variable("NVIDIA_TF32_OVERRIDE", "0");
  set_variable("ASSAY_RENDEZVOUS_TOKEN", "not to be seen");
  ASSERT_EQ(records_of(napping("heads = [1]")).size(), 1u);
  set_variable("NVIDIA_TF32_OVERRIDE", "1");
  EXPECT_EQ(run_experiment(napping("heads = [1, 2]"), {"--resume"}).exit.code, 0);
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_NE(records[0]["environment"], records[1]["environment"]);
  for (std::size_t i = 0; i < 2; ++i) {
    const json environment = environment_of(records[i]);
    EXPECT_EQ(environment["variables"]["NVIDIA_TF32_OVERRIDE"], std::to_string(i));
    EXPECT_EQ(records[i]["host"], environment["os"]["hostname"]);
    EXPECT_EQ(environment.dump().find("not to be seen"), std::string::npos);
    ASSERT_EQ(environment["invocations"].size(), 1u);
    const std::string command = environment["invocations"][0]["command"];
    EXPECT_EQ(contains(command, "--resume"), i == 1) << command;
  }
  EXPECT_EQ(json::parse(text_of(run_folder() / "environment.json"))["variables"]["NVIDIA_TF32_OVERRIDE"], "1");
}

TEST_F(RunEnvironment, ARunThatGoesOnInTheSameHasOneOfTwoInvocations) {
  ASSERT_EQ(records_of(napping("heads = [1]")).size(), 1u);
  EXPECT_EQ(run_experiment(napping("heads = [1, 2]"), {"--resume"}).exit.code, 0);
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["environment"], records[1]["environment"]);
  EXPECT_EQ(environment_of(records[1])["invocations"].size(), 2u);
}

TEST_F(RunEnvironment, TheLibrariesOfTheWorkerAreThereWithoutWhatIsAFile) {
  const auto records = records_of(napping(""));
  ASSERT_EQ(records.size(), 1u);
  const json& libraries = records[0]["libraries"];
  EXPECT_TRUE(libraries.contains("libc.so.6")) << libraries;
  for (const char* file : {"libassay_device_cpu.so", "libnapping_work.so", "napping_work.so"})
    EXPECT_FALSE(libraries.contains(file)) << libraries;
  for (const auto& [name, build] : libraries.items()) EXPECT_FALSE(name.starts_with("linux-vdso")) << build;
}

}  // namespace
}  // namespace assay::test
