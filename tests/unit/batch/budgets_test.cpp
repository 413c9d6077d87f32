#include "batch/budgets.hpp"

#include <gtest/gtest.h>

#include "results/store.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {
namespace {

class Budgets : public testing::Test {
 protected:
  // An earlier run in which the case with these settings took 100 s.
  void ran(const experiment::Case& c) {
    record::CaseRecord record;
    for (const auto& [name, value] : c.settings()) record.identity.settings.emplace_back(name, value);
    record.result.status = record::Status::ok;
    record.result.wall.case_s = 100;
    results::RunFolder::create(folder_.path(), "sweep", "schema = 1\n", "{}").append(record);
  }
  Budget::Source source_for(const experiment::Case& c) const {
    experiment::Experiment experiment;
    experiment.name = "sweep";
    experiment.cases = {c};
    return budgets_of(experiment, {}, folder_.path()).at(0).source;
  }

  test::TemporaryFolder folder_;
};

TEST_F(Budgets, AreLearnedFromTheSameCase) {
  experiment::Case c;
  ran(c);
  EXPECT_EQ(source_for(c), Budget::Source::learned);
  c.measure.timeout = std::chrono::hours(3);  // a limit, not an amount of work
  c.run.seed = 7;
  EXPECT_EQ(source_for(c), Budget::Source::learned);
}

TEST_F(Budgets, AreNotThoseOfALighterCase) {
  const experiment::Case light;
  ran(light);
  const auto is_learned = [&](auto change) {
    experiment::Case heavy = light;
    change(heavy);
    return source_for(heavy) == Budget::Source::learned;
  };
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.measure.warmup += 1; }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.measure.steps = 1000; }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.measure.until.emplace(); }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.measure.inner = 100; }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.measure.cold_cache = true; }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.profile.ncu = true; }));
  EXPECT_FALSE(is_learned([](experiment::Case& c) { c.run.threads = 1; }));
}

}  // namespace
}  // namespace assay::host::batch
