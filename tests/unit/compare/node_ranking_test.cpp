// The same cases on every node, and which of them is named.
#include "compare/node_ranking.hpp"

#include "noisy_records.hpp"
#include "record/json.hpp"

#include <gtest/gtest.h>

namespace assay::host::compare {
namespace {

using Names = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class NodeRankingOf : public ::testing::Test {
 protected:
  // One run of a check on a node, or a pair of nodes.
  void add(const std::string& node, const std::string& check, double time_ms, int round) {
    const Json axes{{"check", check}, {"run.seed", round}, {"cluster.node", node}};
    Json record = record_of(axes, machine_.steps(time_ms, 30, {0.01, 0.02, 0.1, 0}), axes);
    record["index"] = static_cast<int>(records_.size());
    records_.push_back(*record::record_from_json(record));
  }
  void add_failed(const std::string& node, const std::string& check, const std::string& status) {
    add(node, check, 1, 1);
    records_.back().result.status = record::Status::wrong_result;
    records_.back().result.phases.reset();
    EXPECT_EQ(records_.back().result.status_text(), status);
  }
  void add_cluster(const std::vector<std::string>& nodes, double slow_factor_of_last) {
    for (int round = 1; round <= 3; ++round)
      for (const char* check : {"product", "copy"})
        for (const std::string& node : nodes)
          add(node, check, (check[0] == 'p' ? 10 : 50) * (node == nodes.back() ? slow_factor_of_last : 1), round);
  }
  NoisyRuns machine_{7};
  std::vector<record::CaseRecord> records_;
};

TEST_F(NodeRankingOf, NamesNobodyWhereAllAreEqual) {
  for (int cluster = 0; cluster < 20; ++cluster) {
    records_.clear();
    add_cluster({"n1", "n2", "n3", "n4"}, 1);
    const auto ranking = rank_nodes(records_);
    ASSERT_TRUE(ranking);
    EXPECT_EQ(ranking->named(), Names{});
    EXPECT_TRUE(has(node_ranking_text(*ranking), "no node is slower than the others"));
  }
}

TEST_F(NodeRankingOf, PutsTheSlowNodeLastAndNamesIt) {
  add_cluster({"n2", "n1", "n3"}, 1.3);
  const auto ranking = rank_nodes(records_);
  ASSERT_TRUE(ranking);
  EXPECT_EQ(ranking->nodes.back().name, "n3");
  EXPECT_EQ(ranking->named(), Names{"n3"});
  EXPECT_NEAR(ranking->nodes.back().figures.front().ratio, 1.3, 0.05);
  EXPECT_TRUE(has(node_ranking_text(*ranking), "exclude = [\"n3\"]"));
}

TEST_F(NodeRankingOf, NamesNoNodeThatIsSlowerByLessThanTheThreshold) {
  add_cluster({"n1", "n2", "n3"}, 1.02);
  EXPECT_EQ(rank_nodes(records_)->named(), Names{});
}

TEST_F(NodeRankingOf, OfPairsNamesTheNodeThatAllSlowPairsShare) {
  for (int round = 1; round <= 3; ++round) {
    add("n1+n2", "all_reduce", 30, round);
    add("n2+n3", "all_reduce", 30, round);
    add("n3+n4", "all_reduce", 10, round);
    add("n4+n1", "all_reduce", 10, round);
  }
  EXPECT_EQ(rank_nodes(records_)->named(), Names{"n2"});
}

TEST_F(NodeRankingOf, NamesHalfOfTheNodesWhereHalfAreSlow) {
  for (int round = 1; round <= 3; ++round) {
    add("n1", "product", 10, round);
    add("n2", "product", 30, round);
    add("n3", "product", 10, round);
    add("n4", "product", 1000, round);
  }
  EXPECT_EQ(rank_nodes(records_)->named(), (Names{"n2", "n4"}));
}

TEST_F(NodeRankingOf, NamesANodeWithoutARecord) {
  add_cluster({"n1", "n2"}, 1);
  const auto ranking = rank_nodes(records_, {}, {"n1", "n2", "n3"});
  EXPECT_EQ(ranking->named(), Names{"n3"});
  EXPECT_TRUE(has(node_ranking_text(*ranking), "n3    check=product: no record"));
}

TEST_F(NodeRankingOf, NamesANodeThatFailsWhereOthersDoNot) {
  add_cluster({"n1", "n2", "n3"}, 1);
  add_failed("n2", "product", "wrong_result");
  const auto ranking = rank_nodes(records_);
  EXPECT_EQ(ranking->named(), Names{"n2"});
  EXPECT_TRUE(has(node_ranking_text(*ranking), "check=product: wrong_result"));
}

TEST_F(NodeRankingOf, NamesNobodyForWhatFailsEverywhere) {
  add_cluster({"n1", "n2"}, 1);
  add_failed("n1", "all_reduce", "wrong_result");
  add_failed("n2", "all_reduce", "wrong_result");
  EXPECT_EQ(rank_nodes(records_)->named(), Names{});
}

TEST_F(NodeRankingOf, RanksNothingWithoutTwoNodes) {
  add("n1", "product", 10, 1);
  EXPECT_FALSE(rank_nodes(records_));
  EXPECT_FALSE(rank_nodes({}));
}

}  // namespace
}  // namespace assay::host::compare
