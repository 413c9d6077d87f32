// What a verification says crosses the border as a status, and stands in the record.
#include <assay/plugin.hpp>
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
