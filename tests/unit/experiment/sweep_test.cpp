#include "experiment/sweep.hpp"

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

using Axes = std::vector<std::string>;

TEST(Sweep, WithoutAxesIsOneCase) {
  const auto experiment = good(experiment_text("", "batch_size = 2"));
  ASSERT_EQ(experiment.cases.size(), 1u);
  const Case& only = experiment.cases[0];
  EXPECT_EQ(only.index, 0);
  EXPECT_TRUE(only.axes.empty());
  EXPECT_EQ(only.params.at("batch_size"), Value(std::int64_t{2}));
  EXPECT_EQ(only.params.at("size"), Value(std::string("small"))) << "defaults are filled in";
  EXPECT_EQ(only.params.size(), demo_schema().params.size());
}

TEST(Sweep, ProductKeepsTheFilesOrderAndTheLastAxisIsFastest) {
  const auto experiment = good(experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nbatch_size = [1, 2, 3]\n"));
  EXPECT_EQ(axes_of(experiment),
            (Axes{"size=small batch_size=1", "size=small batch_size=2", "size=small batch_size=3",
                  "size=large batch_size=1", "size=large batch_size=2", "size=large batch_size=3"}));
  for (std::size_t i = 0; i < experiment.cases.size(); ++i)
    EXPECT_EQ(experiment.cases[i].index, static_cast<std::int64_t>(i));
  EXPECT_EQ(experiment.cases[4].params.at("size"), Value(std::string("large")));
  EXPECT_EQ(experiment.cases[4].params.at("batch_size"), Value(std::int64_t{2}));
}

TEST(Sweep, ZipGroupsMoveTogetherAndStandAfterTheProduct) {
  const auto experiment =
      good(experiment_text("[[sweep.zip]]\nd_model = [128, 512]\nheads = [4, 8]\n[[sweep.zip]]\nlr = [1, 2]\n"
                           "[sweep]\nsize = [\"small\", \"large\"]\n"));
  EXPECT_EQ(axes_of(experiment), (Axes{"size=small d_model=128 heads=4 lr=1", "size=small d_model=128 heads=4 lr=2",
                                       "size=small d_model=512 heads=8 lr=1", "size=small d_model=512 heads=8 lr=2",
                                       "size=large d_model=128 heads=4 lr=1", "size=large d_model=128 heads=4 lr=2",
                                       "size=large d_model=512 heads=8 lr=1", "size=large d_model=512 heads=8 lr=2"}));
  EXPECT_EQ(experiment.cases[0].params.at("lr"), Value(1.0)) << "an int for a float is that float";
}

TEST(Sweep, ExcludeDropsMatchingCasesAndIndicesStayDense) {
  const auto experiment =
      good(experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nbatch_size = [1, 2]\n"
                           "[[sweep.exclude]]\nsize = \"large\"\nbatch_size = 2\n"
                           "[[sweep.exclude]]\nsize = \"small\"\ncontext_length = 1024\n"));
  EXPECT_EQ(axes_of(experiment),
            (Axes{"size=small batch_size=1", "size=small batch_size=2", "size=large batch_size=1"}));
  EXPECT_EQ(experiment.cases[2].index, 2);
}

TEST(Sweep, ExcludeMatchesAFixedParameter) {
  const auto experiment = good(experiment_text(
      "[sweep]\nsize = [\"small\", \"large\"]\n[[sweep.exclude]]\nsize = \"large\"\ncontext_length = 1024\n",
      "context_length = 1024"));
  EXPECT_EQ(axes_of(experiment), (Axes{"size=small"}));
}

TEST(Sweep, DottedSettingsQuotedOrNot) {
  for (const char* sweep : {"[sweep]\n\"measure.warmup\" = [0, 5]\n", "[sweep]\nmeasure.warmup = [0, 5]\n"}) {
    const auto experiment = good(experiment_text(std::string(sweep) + "[measure]\nwarmup = 1\n"));
    EXPECT_EQ(axes_of(experiment), (Axes{"measure.warmup=0", "measure.warmup=5"}));
    EXPECT_EQ(experiment.cases[0].measure.warmup, 0);
    EXPECT_EQ(experiment.cases[1].measure.warmup, 5);
    EXPECT_EQ(experiment.cases[1].find("measure.warmup"), Value(std::int64_t{5}));
  }
}

TEST(Sweep, RanksMayBeAllOrAuto) {
  const auto experiment = good(experiment_text("[sweep]\n\"run.ranks\" = [1, 2, \"all\", \"auto\"]\n"));
  ASSERT_EQ(axes_of(experiment), (Axes{"run.ranks=1", "run.ranks=2", "run.ranks=all", "run.ranks=auto"}));
  EXPECT_EQ(experiment.cases[1].run.ranks, 2);
  EXPECT_EQ(experiment.cases[2].run.ranks, ranks_all);
  EXPECT_EQ(experiment.cases[3].run.ranks, ranks_auto);
  EXPECT_EQ(experiment.cases[2].find("run.ranks"), Value(std::string("all")));
}

TEST(Sweep, SettingsWithUnitsHaveOneWrittenForm) {
  const auto experiment =
      good(experiment_text("[sweep]\n\"measure.timeout\" = [600, \"90s\"]\n"
                           "[run]\nmemory_limit = 1073741824\n"));
  EXPECT_EQ(axes_of(experiment), (Axes{"measure.timeout=10m", "measure.timeout=1m30s"}));
  EXPECT_EQ(experiment.cases[0].measure.timeout, std::chrono::minutes(10));
  EXPECT_EQ(experiment.cases[0].run.memory_limit_bytes, 1073741824u);
  EXPECT_EQ(experiment.cases[0].find("run.memory_limit"), Value(std::string("1GiB")));
}

TEST(Sweep, AStoppingRuleMayBeSwept) {
  const auto experiment = good(experiment_text("[sweep]\n\"measure.until.relative_error\" = [0.05, 0.01]\n"));
  ASSERT_EQ(experiment.cases.size(), 2u);
  ASSERT_TRUE(experiment.cases[1].measure.until.has_value());
  EXPECT_DOUBLE_EQ(experiment.cases[0].measure.until->relative_error, 0.05);
  EXPECT_EQ(experiment.cases[0].find("measure.steps"), std::nullopt) << "not in force under a stopping rule";
}

TEST(Sweep, EachValueOnceAndRangesInTheirOwnWords) {
  const auto complaint = [](const char* sweep) {
    const auto found = lines(parse(experiment_text(std::string("[sweep]\n") + sweep)));
    return found.size() == 1 ? found[0] : testing::PrintToString(found);
  };
  EXPECT_NE(
      complaint("batch_size = [1, 2, 1]\n").find("batch_size has 1 twice; expected each value once ([run] repeat"),
      std::string::npos)
      << complaint("batch_size = [1, 2, 1]\n");
  EXPECT_NE(complaint("batch_size = \"2^5..2^8\"\n").find("as in batch_size = { min = 32, max = 256, factor = 2 }"),
            std::string::npos)
      << complaint("batch_size = \"2^5..2^8\"\n");
}

TEST(Filter, OfRanks) {
  const std::string text = experiment_text("[sweep]\n\"run.ranks\" = [1, 2, \"all\"]\n");
  EXPECT_EQ(axes_of(good(text, {}, {"run.ranks=2"})), (Axes{"run.ranks=2"}));
  EXPECT_EQ(axes_of(good(text, {}, {"run.ranks=all"})), (Axes{"run.ranks=all"}));
  EXPECT_EQ(good(text, {}, {"run.stall_timeout=120"}).cases.size(), 3u);
  EXPECT_EQ(good(text, {"run.bind=cores"}, {"run.bind=cores"}).cases.size(), 3u);
}

TEST(Filter, KeepsMatchingCasesAndTheirIndices) {
  const std::string text = experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nlr = [0.0001, 0.001]\n");
  EXPECT_EQ(axes_of(good(text, {}, {"size=large"})), (Axes{"size=large lr=0.0001", "size=large lr=0.001"}));
  const auto one = good(text, {}, {"size=large", "lr=1e-4"});
  EXPECT_EQ(axes_of(one), (Axes{"size=large lr=0.0001"})) << "numbers compare as numbers";
  ASSERT_EQ(one.cases.size(), 1u);
  EXPECT_EQ(one.cases[0].index, 2);
  EXPECT_EQ(good(text, {}, {"batch_size=4"}).cases.size(), 4u) << "a fixed parameter";
  EXPECT_EQ(good(text, {}, {"measure.timeout=600"}).cases.size(), 4u) << "a setting, in any way of writing it";
  EXPECT_EQ(good(text, {}, {"workload.params.size=small"}).cases.size(), 2u);
}

TEST(Filter, ReportsAnUnknownKeyAndAnEmptyChoice) {
  const std::string text = experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nbatch_size = [1, 2]\n");
  const auto result = parse(text, {}, {"siez=small", "size=smal", "size", "size=small", "size=large"});
  const auto messages = lines(result);
  ASSERT_EQ(messages.size(), 4u) << testing::PrintToString(messages);
  EXPECT_TRUE(messages[0].starts_with("--filter siez=small: unknown key 'siez'; did you mean 'size'?"));
  EXPECT_TRUE(messages[0].ends_with("; did you mean 'size'?")) << messages[0];
  EXPECT_EQ(messages[1], "--filter size=smal: no case has size = smal; did you mean 'small'? There are small, large");
  EXPECT_EQ(messages[2],
            "--filter size: no key and value; expected key=value, as in size=small, or with !=, <, <=, >, >=");
  EXPECT_EQ(messages[3], "--filter size=large: no case that is left has this; those have size = small");
}

TEST(Filter, TakesListsAndWhatIsLeftOut) {
  const std::string text = experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nbatch_size = [1, 2, 4]\n");
  EXPECT_EQ(good(text, {}, {"size=small,large"}).cases.size(), 6u);
  EXPECT_EQ(axes_of(good(text, {}, {"size!=small", "batch_size=1,4"})),
            (Axes{"size=large batch_size=1", "size=large batch_size=4"}));
  EXPECT_EQ(good(text, {}, {"batch_size!=1,2"}).cases.size(), 2u);
  const auto messages = lines(parse(text, {}, {"size=small,lrage", "size!=smal", "batch_size!=1,2,4", "size!small"}));
  ASSERT_EQ(messages.size(), 4u) << testing::PrintToString(messages);
  EXPECT_EQ(messages[0],
            "--filter size=small,lrage: no case has size = lrage; did you mean 'large'? There are small, large");
  EXPECT_TRUE(messages[1].find("did you mean 'small'?") != std::string::npos)
      << "what is left out must be there, too: " << messages[1];
  EXPECT_EQ(messages[2], "--filter batch_size!=1,2,4: no case that is left has this; those have batch_size = 1, 2, 4");
  EXPECT_EQ(messages[3], "--filter size!small: '!' without '='; expected size!=value");
}

TEST(Filter, OrdersNumbers) {
  const std::string text = experiment_text("[sweep]\nsize = [\"small\", \"large\"]\nlr = [0.0001, 0.001, 0.01]\n");
  const auto count = [&](const char* filter) { return good(text, {}, {filter}).cases.size(); };
  EXPECT_EQ(count("lr<1e-3"), 2u);
  EXPECT_EQ(count("lr<=0.001"), 4u);
  EXPECT_EQ(count("lr>0.001"), 2u);
  EXPECT_EQ(count("lr>=1e-3"), 4u);
  EXPECT_EQ(good(text, {}, {"lr>1e-4", "lr<1e-2"}).cases.size(), 2u);
  const auto messages = lines(parse(text, {}, {"size<3", "lr<0", "lr<small", "lr<", "learning<1"}));
  ASSERT_EQ(messages.size(), 5u) << testing::PrintToString(messages);
  EXPECT_EQ(messages[0],
            "--filter size<3: size is no number here, so it has no order; expected = or != and one of "
            "small, large");
  EXPECT_EQ(messages[1], "--filter lr<0: no case has this; lr is 0.0001, 0.001, 0.01");
  EXPECT_EQ(messages[2], "--filter lr<small: 'small' is no number; expected one after <, as in lr<512");
  EXPECT_TRUE(messages[3].find("'' is no number") != std::string::npos) << messages[3];
  EXPECT_TRUE(messages[4].find("unknown key 'learning'") != std::string::npos) << messages[4];
}

// "case.repeat" of each.
std::vector<std::string> numbers_of(const Experiment& experiment) {
  std::vector<std::string> numbers;
  for (const Case& c : experiment.cases)
    numbers.push_back(std::to_string(c.index) + "." + (c.repeat ? std::to_string(*c.repeat) : "none"));
  return numbers;
}

TEST(Repeats, OfEveryCaseStandInTurnsOrTogether) {
  const std::string sweep = "[sweep]\nbatch_size = [1, 2]\n[run]\n";
  EXPECT_EQ(numbers_of(good(experiment_text(sweep))), (Axes{"0.none", "1.none"}));
  EXPECT_EQ(numbers_of(good(experiment_text(sweep + "repeat = 1\n"))), (Axes{"0.none", "1.none"}));
  EXPECT_EQ(numbers_of(good(experiment_text(sweep + "repeat = 2\n"))), (Axes{"0.1", "1.1", "0.2", "1.2"}));
  EXPECT_EQ(numbers_of(good(experiment_text(sweep + "repeat = 2\norder = \"together\"\n"))),
            (Axes{"0.1", "0.2", "1.1", "1.2"}));
}

TEST(Repeats, AreOfTheCasesThatAFilterLeaves) {
  const std::string text = experiment_text("[sweep]\nbatch_size = [1, 2]\n[run]\nrepeat = 2\n");
  EXPECT_EQ(numbers_of(good(text, {}, {"batch_size=2"})), (Axes{"1.1", "1.2"}));
}

TEST(Repeats, StandInTheResolvedFileOnceAndComeBack) {
  const auto first = good(experiment_text("[run]\nrepeat = 3\norder = \"together\"\n"));
  const auto again = good(first.resolved_toml);
  EXPECT_EQ(numbers_of(again), numbers_of(first));
  EXPECT_EQ(again.resolved_toml, first.resolved_toml);
}

TEST(Repeats, AreNoAxis) {
  for (const std::string key : {"repeat", "order"}) {
    const auto messages = lines(parse(experiment_text("[sweep]\n\"run." + key + "\" = [1, 2]\n")));
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find("'run." + key + "' in [sweep] is of the run as a whole"), std::string::npos)
        << messages[0];
  }
}

TEST(Repeats, TooManyAreASlip) {
  const auto messages =
      lines(parse(experiment_text("[sweep]\nbatch_size = { min = 1, max = 1000, step = 1 }\n[run]\nrepeat = 1000\n")));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("[run] repeat is 1000 of 1000 cases; expected at most 100000 in all"), std::string::npos)
      << messages[0];
}

}  // namespace
}  // namespace assay::host::experiment::test
