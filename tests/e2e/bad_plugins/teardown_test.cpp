// What was measured and verified is kept, however a plugin behaves when its case is taken down.
#include <ostream>

#include "bad_plugin_sandbox.hpp"

namespace assay::test {
namespace {

struct BadEnd {
  const char* plugin;
  const char* note;  // a part of it
};
void PrintTo(const BadEnd& bad, std::ostream* out) { *out << bad.plugin; }

class AtTheEnd : public BadPluginSandbox, public testing::WithParamInterface<BadEnd> {
 protected:
  // Short, for those that hang.
  static constexpr const char* settings = "teardown_timeout = \"1s\"\n";
};

TEST_P(AtTheEnd, TheFiguresStayAndANoteSaysWhere) {
  // A case that ends well comes after it.
  const RunResult result =
      run_experiment({.plugin = GetParam().plugin, .run = settings, .sweep = "bad_rank = [-1, 9]"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u) << result.output;
  for (const auto& record : records) {
    EXPECT_EQ(record.value("status", ""), "ok") << record.dump(2);
    EXPECT_EQ(record.value("stage", ""), "done");
    EXPECT_EQ(record["verify"]["status"], "partial") << "it keeps no account of its steps";
    EXPECT_EQ(record["phases"]["step"]["n"], 3);
  }
  EXPECT_PRED2(contains, records[0]["notes"].dump(), "after it had reported its result, which is kept, the process ");
  EXPECT_PRED2(contains, records[0]["notes"].dump(), GetParam().note);
  EXPECT_PRED2(contains, result.output, GetParam().note);
  EXPECT_FALSE(contains(records[1]["notes"].dump(), "after it had reported its result")) << records[1].dump(2);
}

TEST_P(AtTheEnd, OfOneOfTwoRanksToo) {
  const RunResult result = run_experiment({.plugin = GetParam().plugin,
                                           .params = "bad_rank = 1",
                                           .run = std::string(settings) + "ranks = 2\ncopies = true"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u) << result.output;
  EXPECT_EQ(records[0].value("status", ""), "ok") << records[0].dump(2);
  EXPECT_EQ(records[0]["phases"]["step"]["n"], 3);
  EXPECT_EQ(records[0]["by_rank"].size(), 2u);
  const std::string notes = records[0]["notes"].dump();
  EXPECT_PRED2(contains, notes, "rank 1: after it had reported its result, which is kept, the process ");
  EXPECT_PRED2(contains, notes, GetParam().note);
}

INSTANTIATE_TEST_SUITE_P(
    BadPlugins, AtTheEnd,
    testing::Values(BadEnd{"bad_throws_in_destroy", "was killed by SIGABRT"},
                    BadEnd{"bad_exits_in_destroy", "exited with code 0, in stage destroy"},
                    BadEnd{"bad_hangs_in_destroy",
                           "did not end within 1.0 s ([run] teardown_timeout) and was killed, in stage destroy"},
                    BadEnd{"bad_aborts_in_deinit", ", in stage deinit"},
                    BadEnd{"bad_hangs_in_deinit",
                           "did not end within 1.0 s ([run] teardown_timeout) and was killed, in stage deinit"},
                    BadEnd{"bad_aborts_at_exit", ", at its exit, after destroy and deinit"},
                    BadEnd{"bad_hangs_at_exit",
                           "did not end within 1.0 s ([run] teardown_timeout) and was killed, at its exit"},
                    BadEnd{"bad_aborts_in_static_destructor", ", at its exit, after destroy and deinit"}),
    [](const auto& info) { return std::string(info.param.plugin); });

class Teardown : public BadPluginSandbox {};

TEST_F(Teardown, TheLastWordsOfACrashAreInTheRecord) {
  run_experiment({.plugin = "bad_throws_in_destroy"});
  EXPECT_PRED2(contains, cases().at(0)["log_tail"].dump(), "boom from destroy");
}

}  // namespace
}  // namespace assay::test
