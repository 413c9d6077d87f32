// The names that the SDK refuses while a plugin is compiled are those of the columns that every table of the host has.
#include <assay/plugin/reserved_names.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/columns.hpp"
#include "record/columns.hpp"

namespace assay::host::experiment {
namespace {

// Of a workload that declares nothing, and those that are made with a table of several records.
std::vector<std::string> columns_of_the_host() {
  std::vector<std::string> columns = column_names({});
  columns.emplace_back(record::speedup_column);
  for (const char* made_elsewhere : {"files.host", "files.plugin", "files.input.weights", "step.mean_ms.ratio"})
    columns.emplace_back(made_elsewhere);
  return columns;
}

TEST(ReservedNames, HaveEveryColumnOfTheHost) {
  for (const std::string& column : columns_of_the_host()) EXPECT_TRUE(is_reserved_name(column)) << column;
}

TEST(ReservedNames, HaveNothingElse) {
  const std::vector<std::string> columns = columns_of_the_host();
  const auto is_used = [&columns](const auto& matches) { return std::any_of(columns.begin(), columns.end(), matches); };
  for (const std::string_view name : reserved_names)
    EXPECT_TRUE(is_used([name](const std::string& column) { return column == name; })) << name;
  for (const std::string_view group : reserved_groups)
    EXPECT_TRUE(is_used([prefix = std::string(group) + "."](const std::string& column) {
      return column.starts_with(prefix);
    })) << group;
  for (const char* free : {"size", "batch_size", "loss", "tokens_per_s", "steps", "forward.share", "seed"})
    EXPECT_FALSE(is_reserved_name(free)) << free;
}

// "straggler.share" would be the share of a phase "straggler".
TEST(ReservedNames, HavePhasesWhoseStatisticsTheHostHas) {
  std::vector<std::string> heads;
  for (const std::string& column : column_names({}))
    for (const record::PhaseStatistic& statistic : record::phase_statistics())
      if (const std::string tail = "." + std::string(statistic.name); column.ends_with(tail))
        heads.push_back(column.substr(0, column.size() - tail.size()));
  for (const std::string& head : heads) EXPECT_TRUE(is_reserved_phase(head)) << head;
  for (const std::string_view phase : reserved_phases)
    EXPECT_NE(std::find(heads.begin(), heads.end(), phase), heads.end()) << phase;
  EXPECT_FALSE(is_reserved_phase("forward"));
}

}  // namespace
}  // namespace assay::host::experiment
