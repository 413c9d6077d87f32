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
  EXPECT_EQ(records[0]["verify"], (json{{"status", "ok"}, {"text", "checked all"}}));
  EXPECT_EQ(records[1]["verify"], (json{{"status", "partial"}, {"text", "checked part"}}));
  EXPECT_EQ(records[2]["verify"], (json{{"status", "not checked"}, {"text", "no reference"}}));
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
