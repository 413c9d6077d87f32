// C++ crosses between a plugin and the libraries of a device and of a communicator only where one compiler's ABI has
// made both.
#include <assay/comm/communicator.hpp>
#include <assay/compute/backend.hpp>

#include <nlohmann/json.hpp>
#include <string>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

class ForeignAbi : public Sandbox {
 protected:
  // Why the workload's only case is refused.
  std::string refusal(const ExperimentText& text) {
    const auto records = records_of(text, 1);
    EXPECT_EQ(records.size(), 1u) << output();
    if (records.empty()) return "";
    EXPECT_EQ(records[0]["status"], "unsupported") << records[0];
    return records[0].value("reason", "");
  }
};

TEST_F(ForeignAbi, ADevicesOperationsAreRefusedByWhatDiffers) {
  set_variable("ASSAY_DEVICE_PATH", FOREIGN_DEVICE_FOLDER);
  const std::string reason = refusal({.plugin = "decoder", .params = "size = \"tiny\"", .measure = "steps = 1"});
  EXPECT_PRED2(contains, reason, std::string("the plugin was built for '") + compute::interface_id + "'");
  EXPECT_PRED2(contains, reason, "libstdc++-cxx11-abi-0'");
  EXPECT_PRED2(contains, reason, "against one standard library");
}

#ifdef FOREIGN_COMM_FOLDER
TEST_F(ForeignAbi, ACommunicatorIsRefusedByWhatDiffers) {
  set_variable("ASSAY_COMM_PATH", FOREIGN_COMM_FOLDER);
  const std::string reason = refusal({.plugin = "all_reduce", .measure = "steps = 1", .run = "ranks = 2"});
  EXPECT_PRED2(contains, reason, std::string("the plugin was built for '") + comm::interface_id + "'");
  EXPECT_PRED2(contains, reason, "libstdc++-cxx11-abi-0'");
  EXPECT_PRED2(contains, reason, "against one standard library");
}
#endif

TEST(InterfaceIds, NameTheCompilersAbi) {
  for (const std::string id : {compute::interface_id, comm::interface_id}) {
    EXPECT_PRED2(contains, id, "itanium-abi");
    EXPECT_PRED2(contains, id, "libstdc++-cxx11-abi-" + std::to_string(_GLIBCXX_USE_CXX11_ABI));
    EXPECT_PRED2(contains, id, "revision");
  }
}

}  // namespace
}  // namespace assay::test
