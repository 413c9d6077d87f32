// Wiring up, and what the communicator makes of its arguments.
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "nccl_communicator.hpp"
#include "session_fixture.hpp"
#include "wire_up.hpp"

namespace assay::comm::nccl {
namespace {

using compute::DType;
using compute::Tensor;

thread_local std::map<std::string, std::string> variables;
void set_variable(const char* name, const char* value) { variables[name] = value; }

TEST(NcclWireUp, RanksOfOneGpuMeet) {
  FakeRanks ranks(2);
  std::map<std::string, std::string> seen[2];
  std::string notes[2], rules[2];
  const auto run = [&](std::int32_t rank) {
    const auto world = std::make_shared<World>();
    WiredUp made = wire_up(std::make_unique<FakeLibrary>(world), ranks.rank(rank), Members(ranks.rank(rank)), 4,
                           World::compute(), 0, set_variable);
    made.session->close();
    const auto at = static_cast<std::size_t>(rank);
    seen[at] = variables;
    notes[at] = made.note;
    rules[at] = world->broken_rules();  // among them that the id is rank 0's
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(seen[rank]["NCCL_HOSTID"], "n1-" + std::to_string(rank));
    EXPECT_EQ(notes[rank], "2 ranks share a GPU: through sockets, for correctness only");
    EXPECT_EQ(rules[rank], "");
  }
}

// Each subset is a group of the split by a number that no other one has, and its ranks keep their order.
TEST(NcclWireUp, SubsetsOfTheRanksAreGroupsOfOneSplit) {
  FakeRanks ranks(4);
  std::array<std::pair<int, int>, 4> seen;
  const auto run = [&](std::int32_t rank) {
    const auto world = std::make_shared<World>();
    const assay_comm& table = ranks.rank(rank);
    const Members members(table, rank % 2 == 0 ? std::vector{2, 0} : std::vector{1, 3});
    wire_up(std::make_unique<FakeLibrary>(world), table, members, 5, World::compute(), 0, set_variable)
        .session->close();
    seen[static_cast<std::size_t>(rank)] = {world->split_group, world->split_rank};
  };
  std::vector<std::thread> others;
  for (const std::int32_t rank : {1, 2, 3}) others.emplace_back(run, rank);
  run(0);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(seen, (std::array<std::pair<int, int>, 4>{{{0, 1}, {1, 0}, {0, 0}, {1, 1}}}));
}

TEST(NcclWireUp, LeavesTheTextOfALostRankToTheHost) {
  FakeRanks ranks(2);
  ranks.exchange_fails = true;
  const auto world = std::make_shared<World>();
  try {
    (void)wire_up(std::make_unique<FakeLibrary>(world), ranks.rank(0), Members(ranks.rank(0)), 0, World::compute(), 0,
                  set_variable);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ASSAY_COMM_ERROR);
    EXPECT_STREQ(error.what(), "");
  }
  EXPECT_EQ(world->started, 0);
}

class CommunicatorTest : public SessionTest {
 protected:
  void SetUp() override {
    open();
    communicator = std::make_unique<NcclCommunicator>(session, 1, 2, "NCCL 2.28.9");
  }
  void TearDown() override {
    communicator.reset();
    SessionTest::TearDown();
  }
  const Collective& last() { return world->collectives.back(); }

  std::unique_ptr<NcclCommunicator> communicator;
  float a[16] = {}, b[16] = {};
};

TEST_F(CommunicatorTest, CountsAsNcclDoes) {
  (void)communicator->all_reduce(Tensor(a, DType::bf16, {2, 4}), Tensor(b, DType::bf16, {8}), Reduction::average);
  EXPECT_EQ(last().operation, Operation::all_reduce);
  EXPECT_EQ(last().count, 8U);
  EXPECT_EQ(last().dtype, DType::bf16);
  EXPECT_EQ(last().reduction, Reduction::average);
  EXPECT_EQ(last().send, a);
  EXPECT_EQ(last().receive, b);

  (void)communicator->reduce_scatter(Tensor(a, DType::f32, {8}), Tensor(b, DType::f32, {4}), Reduction::max);
  EXPECT_EQ(last().operation, Operation::reduce_scatter);
  EXPECT_EQ(last().count, 4U);
  EXPECT_EQ(last().reduction, Reduction::max);

  (void)communicator->all_gather(Tensor(a, DType::i64, {2}), Tensor(b, DType::i64, {4}));
  EXPECT_EQ(last().operation, Operation::all_gather);
  EXPECT_EQ(last().count, 16U);
  EXPECT_EQ(last().dtype, DType::u8);

  (void)communicator->broadcast(Tensor(a, DType::i32, {3}), 1);
  EXPECT_EQ(last().operation, Operation::broadcast);
  EXPECT_EQ(last().count, 12U);
  EXPECT_EQ(last().root, 1);
  EXPECT_EQ(last().receive, a);

  (void)communicator->reduce(Tensor(a, DType::f32, {3}), 1, Reduction::average);
  EXPECT_EQ(last().operation, Operation::reduce);
  EXPECT_EQ(last().count, 3U);
  EXPECT_EQ(last().root, 1);
  EXPECT_EQ(last().send, a);
  EXPECT_EQ(last().receive, a);
  EXPECT_EQ(last().reduction, Reduction::average);

  (void)communicator->all_to_all(Tensor(a, DType::f32, {6}), Tensor(b, DType::f32, {6}));
  EXPECT_EQ(last().operation, Operation::all_to_all);
  EXPECT_EQ(last().count, 12U);
  EXPECT_EQ(last().size, 2);

  const std::vector<std::int64_t> sent{3, 1}, received{0, 1};  // of rank 1
  (void)communicator->all_to_all_v(Tensor(a, DType::f32, {4, 2}), sent, Tensor(b, DType::f32, {1, 2}), received);
  EXPECT_EQ(last().operation, Operation::all_to_all_v);
  EXPECT_EQ(world->send_counts, (std::vector<std::size_t>{24, 8}));
  EXPECT_EQ(world->receive_counts, (std::vector<std::size_t>{0, 8}));
  EXPECT_EQ(last().dtype, DType::u8);

  (void)communicator->send_receive(Tensor(a, DType::f16, {6}), 0, Tensor(b, DType::f32, {5}), 0);
  EXPECT_EQ(last().operation, Operation::send_receive);
  EXPECT_EQ(last().count, 12U);
  EXPECT_EQ(last().receive_count, 20U);
  EXPECT_EQ(last().to, 0);
  EXPECT_EQ(last().from, 0);

  (void)communicator->send(Tensor(a, DType::bf16, {3, 5}), 0);
  EXPECT_EQ(last().operation, Operation::send);
  EXPECT_EQ(last().send, a);
  EXPECT_EQ(last().count, 30U);
  EXPECT_EQ(last().to, 0);
  EXPECT_EQ(last().dtype, DType::u8);

  (void)communicator->receive(Tensor(b, DType::f32, {2}), 0);
  EXPECT_EQ(last().operation, Operation::receive);
  EXPECT_EQ(last().receive, b);
  EXPECT_EQ(last().count, 8U);
  EXPECT_EQ(last().from, 0);

  // 16, 32, 32, 12, 24, 32, 20, 30 and 8 bytes: of the larger of send and receive.
  EXPECT_EQ(communicator->take_totals().bytes, 218U);
}

// NCCL 2.28.9 left a tail of some averages over one rank unwritten.
TEST_F(CommunicatorTest, AverageOverOneRankIsItsSum) {
  NcclCommunicator alone(session, 0, 1, "NCCL 2.28.9");
  (void)alone.all_reduce(Tensor(a, DType::f32, {8}), Tensor(b, DType::f32, {8}), Reduction::average);
  EXPECT_EQ(last().reduction, Reduction::sum);
  (void)alone.reduce_scatter(Tensor(a, DType::f32, {8}), Tensor(b, DType::f32, {8}), Reduction::average);
  EXPECT_EQ(last().reduction, Reduction::sum);
}

TEST_F(CommunicatorTest, RefusesWhatDoesNotFit) {
  const auto sum = Reduction::sum;
  const Tensor four(a, DType::f32, {4}), eight(a, DType::f32, {8});
  const auto reduce = [&](const Tensor& send, const Tensor& receive) {
    return error_of([&] { (void)communicator->all_reduce(send, receive, sum); });
  };
  EXPECT_TRUE(has(reduce(four, eight), "1: nccl: all_reduce: 4 elements in send and 8 in receive"));
  EXPECT_TRUE(has(reduce(four, Tensor(b, DType::f16, {4})), "expected one type"));
  EXPECT_TRUE(has(reduce(Tensor(a, DType::i32, {4}), Tensor(b, DType::i32, {4})), "2: nccl: all_reduce of int32"));
  EXPECT_TRUE(has(reduce(Tensor(a, DType::f32, {2, 2}).transposed(0, 1), four), "not contiguous"));
  EXPECT_TRUE(has(error_of([&] { (void)communicator->reduce_scatter(four, four, sum); }), "ratio of 2 to 1"));
  EXPECT_TRUE(has(error_of([&] { (void)communicator->all_gather(eight, four); }), "ratio of 1 to 2"));
  EXPECT_TRUE(has(error_of([&] { (void)communicator->broadcast(four, 2); }),
                  "broadcast with rank 2 as its root; expected 0 to 1"));
  const auto trade_rows = [&](const Tensor& send, std::vector<std::int64_t> sent, std::vector<std::int64_t> received) {
    const Tensor receive(b, DType::f32, {4});
    return error_of([&] { (void)communicator->all_to_all_v(send, sent, receive, received); });
  };
  EXPECT_TRUE(has(trade_rows(four, {1, 2}, {2, 2}), "of the 4 rows of send and 4 of receive; expected one for each"));
  EXPECT_TRUE(has(trade_rows(four, {5, -1}, {2, 2}), "counts that are not"));
  EXPECT_TRUE(has(trade_rows(four, {4}, {2, 2}), "each of the 2 ranks"));
  EXPECT_TRUE(has(trade_rows(four, {1, 3}, {2, 2}), "3 rows to rank 1 itself and 2 from it"));
  EXPECT_TRUE(has(trade_rows(Tensor(a, DType::f32, {4, 2}), {2, 2}, {2, 2}), "rows of 8 bytes of fp32 in send"));
  EXPECT_TRUE(has(trade_rows(Tensor(b, DType::f32, {4}), {2, 2}, {2, 2}), "share memory"));
  const auto trade = [&](const Tensor& send, const Tensor& receive) {
    return error_of([&] { (void)communicator->all_to_all(send, receive); });
  };
  EXPECT_TRUE(has(trade(four, eight), "ratio of 1 to 1"));
  EXPECT_TRUE(has(trade(four, four), "send and receive share memory; expected two buffers"));
  EXPECT_TRUE(has(trade(Tensor(a, DType::f32, {3}), Tensor(b, DType::f32, {3})), "expected a multiple of the 2 ranks"));
  const auto pass_on = [&](std::int32_t to, std::int32_t from) {
    return error_of([&] { (void)communicator->send_receive(four, to, Tensor(b, DType::f32, {4}), from); });
  };
  EXPECT_TRUE(has(pass_on(2, 0), "to rank 2, from rank 0; expected 0 to 1"));
  EXPECT_TRUE(has(pass_on(1, -1), "from rank -1; expected 0 to 1"));
  EXPECT_TRUE(has(pass_on(1, 0), "expected that rank 1 receives from itself"));
  EXPECT_TRUE(
      has(error_of([&] { (void)communicator->send(four, 1); }), "send of rank 1 with rank 1; expected another"));
  EXPECT_TRUE(has(error_of([&] { (void)communicator->receive(four, 2); }), "receive of rank 1 with rank 2"));
  EXPECT_TRUE(world->collectives.empty());
  communicator->synchronize();  // none the worse
}

TEST_F(CommunicatorTest, DescribesWhatCouldNotBeRegistered) {
  communicator->register_memory(a, sizeof a);
  EXPECT_EQ(communicator->description(), "NCCL 2.28.9");
  world->registers = false;
  communicator->register_memory(b, sizeof b);
  EXPECT_EQ(communicator->description(), "NCCL 2.28.9; 1 of 2 buffers could not be registered");
}

}  // namespace
}  // namespace assay::comm::nccl
