// What ranks agree on and send: counts, capacity, loads, and the rows' ways there and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <assay/parallel/expert_metrics.hpp>
#include <assay/parallel/expert_ranks.hpp>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "gloo_ranks.hpp"

namespace assay::parallel {
namespace {

using compute::DType;
using compute::Tensor;
using test::CpuDevice;
using testing::ElementsAre;
using Counts = std::vector<std::int32_t>;

// Two ranks, four experts, six rows each.
constexpr std::int64_t experts = 4, rows = 6;
ExpertRanksShape shape_of(std::int64_t rank, std::int64_t capacity) {
  return {.rank = rank, .ranks = 2, .experts = experts, .rows = rows, .capacity = capacity, .layers = 2};
}
Counts counts_of(std::int64_t rank) { return rank == 0 ? Counts{1, 0, 3, 2} : Counts{2, 1, 0, 3}; }

// One rank with what it needs to agree.
struct Rank {
  Rank(comm::Communicator& communicator, std::int64_t capacity)
      : ranks(shape_of(communicator.rank(), capacity)),
        all_counts(device.tensor(DType::i32, {2, experts})),
        numbers(device.tensor(DType::i32, {capacity, 1})) {
    ranks.use(&communicator);
  }
  void agree(const Counts& counts, std::size_t layer = 0) {
    const Tensor own = device.tensor(DType::i32, {experts}, counts);
    ranks.wait(device.backend(), ranks.tell_counts(device.backend(), own, all_counts), {});
    ranks.agree(device.backend(), layer, all_counts, numbers);
  }
  CpuDevice device;
  ExpertRanks ranks;
  Tensor all_counts, numbers;
};

TEST(ExpertRanks, ReceivedRowsAreThoseOfTheRanksInTurn) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 9);
    rank.agree(counts_of(c.rank()));
    EXPECT_THAT(rank.ranks.counts(0), ElementsAre(1, 0, 3, 2, 2, 1, 0, 3));
    EXPECT_TRUE(rank.ranks.counts(1).empty());
    if (c.rank() == 0)
      EXPECT_THAT(rank.device.values<std::int32_t>(rank.numbers), ElementsAre(0, 0, 0, 1, -1, -1, -1, -1, -1));
    else
      EXPECT_THAT(rank.device.values<std::int32_t>(rank.numbers), ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, -1));
  });
}

TEST(ExpertRanks, RowsComeBackToTheirPlaces) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 9);
    auto& b = rank.device.backend();
    rank.agree(counts_of(c.rank()));
    std::vector<float> mine;
    for (int i = 0; i < 2 * rows; ++i) mine.push_back(static_cast<float>(100 * c.rank() + i));
    const Tensor sent = rank.device.tensor(DType::f32, {rows, 2}, mine);
    const Tensor received = rank.device.tensor(DType::f32, {9, 2}), back = rank.device.tensor(DType::f32, {rows, 2});
    rank.ranks.wait(b, rank.ranks.to_experts(b, 0, sent, received), {});
    const std::vector<float> got = rank.device.values(received);
    EXPECT_EQ(got[0], c.rank() == 0 ? 0.0F : 2.0F);  // the first row of rank 0 that is this rank's
    EXPECT_EQ(got[c.rank() == 0 ? 2 : 10], c.rank() == 0 ? 100.0F : 106.0F);  // and of rank 1
    EXPECT_TRUE(std::isnan(got[17])) << "a row behind what came was written";
    rank.ranks.wait(b, rank.ranks.to_tokens(b, 0, received, back), {});
    EXPECT_EQ(rank.device.values(back), mine);

    const ExpertLoad load = rank.ranks.take_load();
    // Rank 0 sends 5 rows away and 3 come from rank 1, of 8 bytes; on the way back it is the other way round.
    EXPECT_EQ(load.dispatched_bytes, c.rank() == 0 ? 40U : 24U);
    EXPECT_EQ(load.combined_bytes, c.rank() == 0 ? 24U : 40U);
    EXPECT_EQ(load.received_rows, c.rank() == 0 ? 4U : 8U);
    EXPECT_EQ(rank.ranks.take_load().forwards, 0U);
  });
}

TEST(ExpertRanks, LoadsAreOfAllRanksTokens) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 12);
    rank.agree(counts_of(c.rank()));  // experts have 3, 1, 3 and 5 rows, ranks 4 and 8
    rank.agree(c.rank() == 0 ? Counts{6, 0, 0, 0} : Counts{0, 6, 0, 0}, 1);
    const ExpertLoad load = rank.ranks.take_load();
    EXPECT_EQ(load.forwards, 2U);
    EXPECT_DOUBLE_EQ(load.rank_imbalance, (8.0 / 6 + 2) / 2);
    EXPECT_DOUBLE_EQ(load.largest_rank_imbalance, 2);
    EXPECT_DOUBLE_EQ(load.least_rows, 0.5);
    EXPECT_DOUBLE_EQ(load.mean_rows, 3);
    EXPECT_DOUBLE_EQ(load.most_rows, 5.5);
    EXPECT_DOUBLE_EQ(load.variation, (std::sqrt(2.0) / 3 + 1) / 2);
  });
}

// What `call` throws.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::to_string(e.status()) + ": " + e.what();
  }
  return "";
}

TEST(ExpertRanks, AllRanksSayWhichCapacityWouldDo) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 7);
    EXPECT_EQ(error_of([&] { rank.agree(counts_of(c.rank()), 1); }),
              "1: experts, layer 1: rank 1 would receive 8 rows, and there is room for 7; raise capacity_factor to "
              "1.34 or more: no row is dropped");
    rank.agree(c.rank() == 0 ? Counts{1, 2, 3, 0} : Counts{2, 1, 0, 3});
  });
}

TEST(ExpertRanks, CountsOfOtherRowsAreAWrongResult) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 12);
    const auto agreed = [&](const Counts& of_rank_1) {
      return error_of([&] { rank.agree(c.rank() == 0 ? counts_of(0) : of_rank_1); });
    };
    EXPECT_EQ(agreed({2, 1, 0, 2}), "5: experts, layer 0: the counts of rank 1 are of 5 rows; its tokens have made 6");
    EXPECT_THAT(agreed({8, -2, 0, 0}), testing::HasSubstr("the counts of rank 1"));
  });
}

TEST(ExpertRanks, SilentStepsKeepTheLoadAndMoveTheirOwnRows) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 9);
    auto& b = rank.device.backend();
    rank.agree(counts_of(c.rank()));
    const std::vector<std::int32_t> numbers = rank.device.values<std::int32_t>(rank.numbers);
    rank.ranks.use(nullptr);
    rank.device.backend().upload(rank.numbers, std::vector<std::int32_t>(9, 7).data());
    rank.agree({6, 0, 0, 0});
    EXPECT_EQ(rank.device.values<std::int32_t>(rank.numbers), numbers);
    const Tensor sent = rank.device.tensor(DType::f32, {rows}, std::vector<float>{1, 2, 3, 4, 5, 6});
    const Tensor received = rank.device.tensor(DType::f32, {9});
    EXPECT_EQ(rank.ranks.to_experts(b, 0, sent, received), 0U);
    b.synchronize();
    EXPECT_EQ(rank.device.values(received.slice(0, 0, rows)), rank.device.values(sent));
    EXPECT_EQ(rank.ranks.take_load().dispatched_bytes, 0U);
  });
}

TEST(ExpertRanks, OfADeviceThatCarriesNothingOutRoutingIsBalanced) {
  test::on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    Rank rank(c, 6);
    rank.ranks.assume_balanced();
    rank.agree({0, 0, 0, 0});
    EXPECT_THAT(rank.ranks.counts(0), ElementsAre(2, 1, 2, 1, 1, 2, 1, 2));
  });
}

// What is reported, by name.
struct Reports {
  mutable std::map<std::string, double> by_name;
  void report(const Metric& metric, double value) const { by_name[metric.row.name] = value; }
};

TEST(ExpertRanks, ReportsAreOfAStep) {
  const ExpertLoad load{.forwards = 8, .rank_imbalance = 1.5, .dispatched_bytes = 400, .combined_bytes = 200};
  const comm::Totals totals{.collectives = 48, .busy_ms = 8, .exposed_ms = 2};
  Reports reports;
  report_expert_ranks(reports, load, totals, 0);
  EXPECT_TRUE(reports.by_name.empty());
  report_expert_ranks(reports, load, totals, 4);
  EXPECT_EQ(reports.by_name.at("rank_imbalance"), 1.5);
  EXPECT_EQ(reports.by_name.at("dispatch_bytes"), 100);
  EXPECT_EQ(reports.by_name.at("combine_bytes"), 50);
  EXPECT_EQ(reports.by_name.at("expert_exchanges"), 12);
  EXPECT_EQ(reports.by_name.at("expert_exchange_ms"), 2);
  EXPECT_EQ(reports.by_name.at("expert_exchange_exposed_ms"), 0.5);
}

TEST(ExpertRanks, ExpertsDivideAmongTheRanks) {
  EXPECT_EQ(error_of([] { ExpertRanks({.ranks = 3, .experts = 4}); }),
            "1: experts 4 is not a multiple of the 3 ranks that share them");
}

}  // namespace
}  // namespace assay::parallel
