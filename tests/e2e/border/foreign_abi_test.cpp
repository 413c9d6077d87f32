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
  EXPECT_PRED2(contains, reason,
               "the plugin was built with _GLIBCXX_USE_CXX11_ABI=1, the device's backend with 0: compile the plugin, "
               "and what it links, with -D_GLIBCXX_USE_CXX11_ABI=0");
  EXPECT_PRED2(contains, reason, std::string("(the plugin's is '") + compute::interface_id + "'");
}

#ifdef FOREIGN_COMM_FOLDER
TEST_F(ForeignAbi, ACommunicatorIsRefusedByWhatDiffers) {
  set_variable("ASSAY_COMM_PATH", FOREIGN_COMM_FOLDER);
  const std::string reason = refusal({.plugin = "all_reduce", .measure = "steps = 1", .run = "ranks = 2"});
  EXPECT_PRED2(contains, reason, "libassay_comm_gloo.so cannot be used");
  EXPECT_PRED2(contains, reason, "the plugin was built with _GLIBCXX_USE_CXX11_ABI=1, it with 0");
  EXPECT_PRED2(contains, reason, std::string("(the plugin's is '") + comm::interface_id + "'");
}
#endif

TEST_F(ForeignAbi, APluginIsRefusedByWhatDiffers) {
  EXPECT_PRED2(contains, refusal({.plugin = FOREIGN_OF_OLD_STRINGS, .measure = "steps = 1"}),
               "the plugin was built with _GLIBCXX_USE_CXX11_ABI=0 (the old layout of strings), the device's backend "
               "with 1: compile the plugin, and what it links, with -D_GLIBCXX_USE_CXX11_ABI=1");
  EXPECT_PRED2(contains, refusal({.plugin = FOREIGN_OF_DEBUG_CONTAINERS, .measure = "steps = 1"}),
               "the plugin was built with _GLIBCXX_DEBUG (the containers of libstdc++ that check themselves), the "
               "device's backend with the usual ones: compile the plugin without -D_GLIBCXX_DEBUG");
}

}  // namespace
}  // namespace assay::test
