#include "experiment/range.hpp"

#include "demo_workload.hpp"

#include <limits>

namespace assay::host::experiment::test {
namespace {

using Axes = std::vector<std::string>;

std::vector<Value> range_of(const std::string& table) {
  Mistakes mistakes;
  const auto node = parse_argument(table, {"--set", 0, 1}, mistakes);
  auto values = node ? read_range(*node, "size", mistakes) : std::nullopt;
  for (const auto& mistake : mistakes.sorted()) ADD_FAILURE() << mistake.to_string();
  return values.value_or(std::vector<Value>{});
}

std::vector<Value> whole(std::initializer_list<std::int64_t> numbers) { return {numbers.begin(), numbers.end()}; }
std::vector<Value> real(std::initializer_list<double> numbers) { return {numbers.begin(), numbers.end()}; }

TEST(Range, BothEndsAreInItWhereTheFactorMeetsThem) {
  EXPECT_EQ(range_of("{ min = 1024, max = 65536, factor = 4 }"), whole({1024, 4096, 16384, 65536}));
  EXPECT_EQ(range_of("{ min = 1024, max = 65535, factor = 4 }"), whole({1024, 4096, 16384}));
  EXPECT_EQ(range_of("{ min = 3, max = 3, factor = 2 }"), whole({3}));
  EXPECT_EQ(range_of("{ min = 1024, max = 1073741824, factor = 4 }").size(), 11u);
}

TEST(Range, StepsAreOfOneLength) {
  EXPECT_EQ(range_of("{ min = -2, max = 5, step = 3 }"), whole({-2, 1, 4}));
  EXPECT_EQ(range_of("{ min = 0, max = 10000, step = 5000 }"), whole({0, 5000, 10000}));
  EXPECT_EQ(range_of("{ min = 1, max = 10000, step = 1 }").size(), 10000u) << "the most that is allowed";
}

TEST(Range, FractionsReadAsAPersonWritesThem) {
  EXPECT_EQ(range_of("{ min = 0.0001, max = 1, factor = 10 }"), real({0.0001, 0.001, 0.01, 0.1, 1.0}));
  EXPECT_EQ(range_of("{ min = 0.1, max = 0.5, step = 0.1 }"), real({0.1, 0.2, 0.3, 0.4, 0.5}));
  EXPECT_EQ(range_of("{ min = 1, max = 4, factor = 1.5 }"), real({1.0, 1.5, 2.25, 3.375}));
  EXPECT_EQ(range_of("{ min = 1e300, max = 1.7e308, factor = 1e6 }"), real({1e300, 1e306})) << "no infinity";
}

TEST(Range, DoesNotOverflow) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(range_of("{ min = 1, max = 9223372036854775807, factor = 3037000500 }"), whole({1, 3037000500}));
  EXPECT_EQ(range_of("{ min = -9223372036854775808, max = 9223372036854775807, step = 9223372036854775807 }"),
            whole({least, -1, most - 1}));
}

TEST(Range, IsAnAxisLikeAnyOther) {
  const std::string text = experiment_text(
      "[sweep]\nbatch_size = { min = 1, max = 4, factor = 2 }\n"
      "[[sweep.zip]]\nheads = { min = 4, max = 8, factor = 2 }\nlr = [0.1, 1]\n"
      "[[sweep.exclude]]\nbatch_size = 4\n");
  EXPECT_EQ(axes_of(good(text)), (Axes{"batch_size=1 heads=4 lr=0.1", "batch_size=1 heads=8 lr=1",
                                       "batch_size=2 heads=4 lr=0.1", "batch_size=2 heads=8 lr=1"}));
  EXPECT_EQ(axes_of(good(text, {}, {"batch_size=2", "heads=8"})), (Axes{"batch_size=2 heads=8 lr=1"}));
  EXPECT_EQ(axes_of(good(text, {"batch_size=1", "heads=1", "lr=1"})), (Axes{"batch_size=1 heads=1 lr=1"}));
}

TEST(Range, OfASettingAndInEveryWayOfWritingATable) {
  const Axes warmups{"measure.warmup=1", "measure.warmup=2", "measure.warmup=4"};
  for (const char* sweep : {"[sweep]\n\"measure.warmup\" = { min = 1, max = 4, factor = 2 }\n",
                            "[sweep]\nmeasure.warmup = { min = 1, max = 4, factor = 2 }\n",
                            "[sweep.measure.warmup]\nmin = 1\nmax = 4\nfactor = 2\n"})
    EXPECT_EQ(axes_of(good(experiment_text(sweep))), warmups) << sweep;
  EXPECT_EQ(axes_of(good(experiment_text("[sweep]\nrun.ranks = { min = 2, max = 8, step = 3 }\n"))),
            (Axes{"run.ranks=2", "run.ranks=5", "run.ranks=8"}));
}

TEST(Range, FromTheCommandLine) {
  EXPECT_EQ(axes_of(good(experiment_text(), {"sweep.batch_size={ min = 2, max = 8, factor = 2 }"})),
            (Axes{"batch_size=2", "batch_size=4", "batch_size=8"}));
  const auto messages = lines(parse(experiment_text(), {"sweep.batch_size={ min = 2, factor = 2 }"}));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(
      messages[0].starts_with("--set sweep.batch_size={ min = 2, factor = 2 }: [sweep] batch_size is a table "
                              "without max; expected"))
      << messages[0];
}

TEST(Range, AFloatOfAnIntegersRangeIsThatFloat) {
  const auto experiment = good(experiment_text("[sweep]\nlr = { min = 1, max = 4, factor = 2 }\n"));
  ASSERT_EQ(experiment.cases.size(), 3u);
  EXPECT_EQ(experiment.cases[2].params.at("lr"), Value(4.0));
}

TEST(Range, AllItsMistakesShowInOnePass) {
  const auto messages = lines(
      parse(experiment_text("[sweep]\nbatch_size = { min = \"a\", max = true, factor = 0.5 }\nlr = { max = 3 }\n")));
  ASSERT_EQ(messages.size(), 4u) << testing::PrintToString(messages);
  EXPECT_EQ(messages[0], "x.toml:8:22: [sweep] batch_size min is \"a\"; expected a number");
  EXPECT_EQ(messages[1], "x.toml:8:33: [sweep] batch_size max is true; expected a number");
  EXPECT_EQ(messages[2], "x.toml:8:48: [sweep] batch_size factor is 0.5; expected a number > 1");
  EXPECT_TRUE(messages[3].starts_with("x.toml:9:6: [sweep] lr is a table without min, factor (or step); expected"));
}

}  // namespace
}  // namespace assay::host::experiment::test
