// What a verification says crosses the border as a status, and stands in the record.
#include <assay/plugin.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class VerificationBorder : public Sandbox {};

TEST_F(VerificationBorder, APartIsNeitherAllNorNothing) {
  const auto records = records_of(
      {.plugin = PARTLY_VERIFIED_PLUGIN, .measure = "steps = 1", .sweep = "checks = [\"all\", \"part\", \"nothing\"]"});
  ASSERT_EQ(records.size(), 3u);
  for (const json& record : records) {
    EXPECT_EQ(record["status"], "ok") << record["reason"];
    EXPECT_TRUE(record.contains("phases"));
  }
  const char* const statuses[] = {"ok", "partial", "not checked"};
  const char* const texts[] = {"checked all", "checked part", "no reference"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i]["verify"]["status"], statuses[i]) << records[i]["verify"];
    const std::string text = records[i]["verify"]["text"];
    EXPECT_PRED2(contains, text, " steps counted by what they have done, none of them repeated; ");
    EXPECT_EQ(text.substr(text.rfind("; ") + 2), texts[i]);
  }
  EXPECT_PRED2(contains, output(), "verified in part");
  EXPECT_PRED2(contains, text_of(run_folder() / "table.md"), "| partial     | cpu    | ok     |");
}

TEST_F(VerificationBorder, ThePartsOfAVerificationHaveTheirTimes) {
  const auto records = records_of({.plugin = PARTLY_VERIFIED_PLUGIN, .measure = "steps = 1"});
  ASSERT_EQ(records.size(), 1u);
  const json& wall = records[0]["wall_s"];
  std::vector<std::string> names;
  double sum = 0;
  for (const auto& [name, seconds] : wall["verify_parts"].items()) names.push_back(name), sum += seconds.get<double>();
  // The host's own, and those of the workload: by their names (the parser of this test sorts them).
  EXPECT_EQ(names, (std::vector<std::string>{"data", "optimizer", "repeated_steps"}));
  EXPECT_LE(sum, wall["verify"].get<double>());
  EXPECT_TRUE(wall["setup_parts"].contains("kernels"));
  EXPECT_FALSE(records[0].contains("part"));
  bool is_noted = false;
  for (const json& note : records[0]["notes"]) is_noted |= contains(note, "no name of a part");
  EXPECT_TRUE(is_noted) << records[0]["notes"];
  const auto table = run({"table", run_folder().string(), "--columns", "wall_s.verify.data,wall_s.setup.kernels,part"});
  EXPECT_PRED2(contains, table.output, "wall_s.verify.data");
}

TEST_F(VerificationBorder, AProcessThatEndsInAPartOfItsVerificationNamesIt) {
  const auto records =
      records_of({.plugin = PARTLY_VERIFIED_PLUGIN, .params = "ends = true", .measure = "steps = 1"}, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "crashed");
  EXPECT_EQ(records[0]["stage"], "verify");
  EXPECT_EQ(records[0]["part"], "data");
  EXPECT_PRED2(contains, records[0]["reason"].get<std::string>(), "stage verify, part data");
  EXPECT_PRED2(contains, output(), "[verify, part data]");
}

TEST_F(VerificationBorder, OfCasesThatComputeTheSameTheFirstIsVerified) {
  const ExperimentText text{.plugin = PARTLY_VERIFIED_PLUGIN,
                            .measure = "warmup = 0",
                            .run = "verify = \"first\"",
                            .sweep = "checks = [\"all\", \"part\", \"wrong\"]\n\"measure.steps\" = [1, 2]"};
  const auto records = records_of(text, 1);
  ASSERT_EQ(records.size(), 6u);
  const char* const statuses[] = {"ok", "as_case", "partial", "as_case", "wrong_result", "wrong_result"};
  for (std::size_t i = 0; i < 6; ++i) {
    const json& verify = records[i]["verify"];
    EXPECT_EQ(verify["status"], statuses[i]) << verify;
    EXPECT_EQ(verify["mode"], "first");
    ASSERT_EQ(verify.contains("refers_to"), i % 2 == 1) << verify;
    if (i % 2 == 0) continue;
    EXPECT_EQ(verify["refers_to"]["index"], i - 1);
    EXPECT_EQ(verify["refers_to"]["hash"], records[i - 1]["hash"]);
    EXPECT_EQ(verify["refers_to"]["status"], statuses[i - 1]);
  }
  EXPECT_PRED2(contains, records[1]["verify"]["text"].get<std::string>(), "2 steps counted");
  EXPECT_PRED2(contains, records[3]["verify"]["text"].get<std::string>(), "which is verified in part");
  EXPECT_EQ(records[5]["status"], "wrong_result");
  EXPECT_PRED2(contains, records[5]["reason"].get<std::string>(), "1 is not 2");
  EXPECT_FALSE(records[5].contains("phases"));
  EXPECT_PRED2(contains, output(), "verified as case 1");
  EXPECT_PRED2(contains, output(), "time: ");

  // Resumed in full, those that refer to others run again.
  run(run_arguments({"--resume", "--set", "run.verify=full"}));
  std::map<int, std::string> last;
  for (const json& record : cases())
    if (record["status"] != "outdated") last[record["index"]] = record["verify"]["status"];
  EXPECT_EQ(last[1], "ok");
  EXPECT_EQ(last[3], "partial");
  EXPECT_EQ(last[0], "ok");
}

TEST_F(VerificationBorder, OfASampledRunOneCaseInTenIsVerified) {
  const auto records = records_of({.plugin = PARTLY_VERIFIED_PLUGIN,
                                   .measure = "warmup = 0",
                                   .run = "verify = \"sampled\"",
                                   .sweep = "\"measure.steps\" = { min = 1, max = 12, step = 1 }"});
  ASSERT_EQ(records.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(records[i]["verify"]["status"], i % 10 == 0 ? "ok" : "by_account") << records[i]["verify"];
    EXPECT_EQ(records[i]["verify"]["mode"], "sampled");
    EXPECT_TRUE(records[i].contains("phases"));
  }
}

// The adapter of plugin.hpp in front of a host that is made by hand.
struct InPart {
  static constexpr auto id = "in_part", summary = "checks a part";
  explicit InPart(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
  assay::Verified verify(const assay::Launch&) const { return {"a part", true}; }
};

assay_status status_told_to(std::uint32_t host_minor) {
  assay_host host{};
  host.struct_size = sizeof host;
  host.abi_major = ASSAY_ABI_MAJOR, host.abi_minor = host_minor;
  host.set_message = [](const assay_host*, assay_status, assay_str) noexcept {};
  const assay_case c{};
  const assay_launch launch{};
  using Adapter = assay::detail::Adapter<InPart>;
  assay_workload_self* object = nullptr;
  EXPECT_EQ(Adapter::workload_.create(&host, &c, &object), ASSAY_OK);
  const assay_status status = Adapter::workload_.verify(object, &launch);
  Adapter::workload_.destroy(object);
  return status;
}

TEST(VerificationStatus, AnOlderHostIsNotToldThatAllIsChecked) {
  EXPECT_EQ(status_told_to(ASSAY_ABI_MINOR), ASSAY_VERIFIED_IN_PART);
  EXPECT_EQ(status_told_to(2), ASSAY_UNSUPPORTED);
}

}  // namespace
}  // namespace assay::test
