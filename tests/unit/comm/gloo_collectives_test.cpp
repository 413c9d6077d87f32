#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

#include "gloo_ranks.hpp"
#include "suite/suite.hpp"
#include "suite/values.hpp"

namespace assay::test {
namespace {

using comm::Reduction;
using compute::DType;
using compute::Tensor;

template <class T>
Tensor tensor(std::vector<T>& v, DType dtype) {
  return Tensor(v.data(), dtype, {static_cast<std::int64_t>(v.size())});
}

using Rows = std::vector<std::int64_t>;

class GlooSuite : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GlooSuite, testing::Values(1, 2, 3, 5));

TEST_P(GlooSuite, EveryCollectiveAgreesWithItsReference) {
  constexpr std::size_t largest = 1 << 20;
  on_ranks(GetParam(), [&](comm::Communicator& c, const assay_comm& table) {
    const std::size_t bytes = CommunicatorSuite::bytes_needed(c.size(), largest);
    std::vector<char> send(bytes), receive(bytes);
    const auto copy = [](void* to, const void* from, std::size_t n) {
      if (n > 0) std::memcpy(to, from, n);
    };
    CommunicatorSuite suite(c, table, {send.data(), receive.data(), bytes, copy, copy, [] {}}, largest);
    suite.run();
    EXPECT_TRUE(suite.passed()) << "rank " << c.rank() << ": " << suite.text();
  });
}

// Long enough for every segment's place in the owners' staging memory to be used several times.
TEST(Gloo, LongVectorsAreCutAndPutTogether) {
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    const std::size_t n = 3 * 1500007;
    const auto value = [](std::int32_t rank, std::size_t i) { return static_cast<float>(i % 9973 + 7 * rank); };
    const auto sum = [&](std::size_t i) { return value(0, i) + value(1, i) + value(2, i); };
    std::vector<float> x(n), all(n), part(n / 3);
    for (std::size_t i = 0; i < n; ++i) x[i] = value(c.rank(), i);
    const auto rank = static_cast<std::size_t>(c.rank());
    c.wait(c.reduce_scatter(tensor(x, DType::f32), tensor(part, DType::f32), Reduction::sum));
    for (std::size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], sum(rank * part.size() + i)) << i;
    c.wait(c.all_gather(tensor(part, DType::f32), tensor(all, DType::f32)));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(all[i], sum(i)) << i;
    std::vector<float> reduced = x;
    c.wait(c.reduce(tensor(reduced, DType::f32), 2, Reduction::sum));
    for (std::size_t i = 0; i < n && c.rank() == 2; ++i) ASSERT_EQ(reduced[i], sum(i)) << i;
    c.wait(c.all_reduce(tensor(x, DType::f32), tensor(x, DType::f32), Reduction::sum));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], sum(i)) << i;
    if (c.rank() != 1) x.assign(n, 0.0F);
    c.wait(c.broadcast(tensor(x, DType::f32), 1));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], sum(i)) << i;
  });
}

// Two pairs of neighbours, and two of every other rank, the last one in another order.
TEST(Gloo, CommunicatorsOfSubsetsCollectAmongTheirMembersAlone) {
  on_ranks(4, [](comm::Communicator& all, const assay_comm& table) {
    const auto of = [&](std::vector<std::int32_t> members) {
      return open_gloo(ASSAY_TEST_GLOO, table, "cpu", {.members = std::move(members)});
    };
    const std::int32_t r = table.rank;
    const auto pair = of({r / 2 * 2, r / 2 * 2 + 1});
    const auto others = of(r % 2 == 0 ? std::vector{0, 2} : std::vector{3, 1});
    EXPECT_EQ(std::pair(pair->rank(), pair->size()), std::pair(r % 2, 2));
    EXPECT_EQ(std::pair(others->rank(), others->size()), std::pair(r == 2 || r == 1 ? 1 : 0, 2));
    EXPECT_EQ(others->description(), all.description());
    // Both at a time, beside one of all.
    std::vector<float> mine{static_cast<float>(1 << r)}, in_pair(2), in_others = mine, in_all = mine;
    const comm::Ticket gathered = pair->all_gather(tensor(mine, DType::f32), tensor(in_pair, DType::f32));
    others->wait(others->all_reduce(tensor(in_others, DType::f32), tensor(in_others, DType::f32), Reduction::average));
    all.wait(all.all_reduce(tensor(in_all, DType::f32), tensor(in_all, DType::f32), Reduction::sum));
    pair->wait(gathered);
    EXPECT_EQ(in_pair, (r < 2 ? std::vector{1.0F, 2.0F} : std::vector{4.0F, 8.0F}));
    EXPECT_EQ(in_others[0], r % 2 == 0 ? 2.5F : 5.0F);
    EXPECT_EQ(in_all[0], 15.0F);
    std::vector<float> from_first{static_cast<float>(r)};
    others->wait(others->broadcast(tensor(from_first, DType::f32), 0));
    EXPECT_EQ(from_first[0], r % 2 == 0 ? 0.0F : 3.0F);
    try {
      others->send(tensor(mine, DType::f32), 2);
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    }
  });
}

using Ranks = std::vector<std::int32_t>;

TEST(Gloo, ASubsetOfRanksThatThereAreNotIsRefused) {
  SharedComm shared(3);
  for (const Ranks& members : std::vector<Ranks>{{1, 2}, {0, 3}, {0, 0}, {-1, 0}}) try {
      open_gloo(ASSAY_TEST_GLOO, shared.table(0), "cpu", {.members = members});
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
      EXPECT_NE(std::string(e.what()).find("expected different ranks below 3, and this one among them"),
                std::string::npos)
          << e.what();
    }
}

TEST(Gloo, Bf16IsRoundedOnce) {
  // 256 + 1 + 1 is 258; rounded after each addition it would stay at 256.
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    for (const std::size_t n : {std::size_t{5}, std::size_t{100000}}) {
      std::vector<std::uint16_t> x(n, bf16_bits(c.rank() == 0 ? 256.0F : 1.0F));
      c.wait(c.all_reduce(tensor(x, DType::bf16), tensor(x, DType::bf16), Reduction::sum));
      for (const std::uint16_t bits : x) ASSERT_EQ(from_bf16(bits), 258.0F);
    }
  });
}

TEST(Gloo, MaxOfNanIsNan) {
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    std::vector<float> x(9, 1.0F);
    x[static_cast<std::size_t>(c.rank())] = std::numeric_limits<float>::quiet_NaN();
    c.wait(c.all_reduce(tensor(x, DType::f32), tensor(x, DType::f32), Reduction::max));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i < 3) << i;
  });
}

TEST(Gloo, RanksOfDifferentSpeedKeepInStep) {
  on_ranks(4, [](comm::Communicator& c, const assay_comm&) {
    for (int round = 0; round < 200; ++round) {
      // Small and large ones, gathers, broadcasts, in changing order; one rank is late now and then.
      if (round % 20 == c.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::vector<float> x(round % 3 == 0 ? 70000 : 100, static_cast<float>(c.rank() + round));
      const float sum = static_cast<float>(6 + 4 * round);
      if (round % 4 == 3) {
        c.wait(c.broadcast(tensor(x, DType::f32), round % 5 % 4));
        ASSERT_EQ(x.back(), static_cast<float>(round % 5 % 4 + round));
      } else if (round % 4 == 2) {
        std::vector<float> part(x.size() / 4);
        c.wait(c.reduce_scatter(tensor(x, DType::f32), tensor(part, DType::f32), Reduction::sum));
        ASSERT_EQ(part.front(), sum);
        ASSERT_EQ(part.back(), sum);
      } else {
        c.wait(c.all_reduce(tensor(x, DType::f32), tensor(x, DType::f32), Reduction::sum));
        ASSERT_EQ(x.front(), sum);
        ASSERT_EQ(x.back(), sum);
      }
    }
  });
}

// Messages of neighbours may differ in length, and may be longer than a piece.
TEST(Gloo, EachRankSendsToAnotherAndReceivesFromAThird) {
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    const auto size_of_rank = [](std::int32_t rank) { return static_cast<std::size_t>(1000003 - 400000 * rank); };
    const std::int32_t to = (c.rank() + 2) % 3, from = (c.rank() + 1) % 3;
    for (int round = 0; round < 3; ++round) {
      std::vector<float> mine(size_of_rank(c.rank())), theirs(size_of_rank(from), -1.0F);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(i % 9973 + 7 * c.rank() + round);
      c.wait(c.send_receive(tensor(mine, DType::f32), to, tensor(theirs, DType::f32), from));
      for (std::size_t i = 0; i < theirs.size(); ++i)
        ASSERT_EQ(theirs[i], static_cast<float>(i % 9973 + 7 * from + round)) << i;
    }
  });
}

// A third rank takes no part, and may be in another collective's queue meanwhile.
TEST(Gloo, PairsSendAndReceiveWithoutTheOthers) {
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    constexpr std::size_t n = 700001;  // more than a piece
    std::vector<float> x(n), y(n, -1.0F);
    for (std::int32_t round = 0; round < 6; ++round) {
      const std::int32_t from = round % 3, to = (round + 1) % 3;
      if (c.rank() == from) {
        for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 9973) + static_cast<float>(round);
        c.wait(c.send(tensor(x, DType::f32), to));
      }
      if (c.rank() != to) continue;
      c.wait(c.receive(tensor(y, DType::f32), from));
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<float>(i % 9973 + round)) << i;
    }
    EXPECT_EQ(c.take_totals().collectives, 4U);
    std::vector<float> all(3);
    c.wait(c.all_gather(tensor(x, DType::f32).slice(0, 0, 1), tensor(all, DType::f32)));
  });
}

TEST(Gloo, CountsThatDoNotAgreeAreNamed) {
  on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    std::vector<float> x(9, 1.0F), y(9);
    // Rank 0 has 4 for rank 1, which expects 3.
    const std::vector<std::int64_t> mine = c.rank() == 0 ? Rows{1, 4} : Rows{2, 2},
                                    theirs = Rows{c.rank() == 0 ? 1 : 3, 2};
    const Tensor send = tensor(x, DType::f32).slice(0, 0, c.rank() == 0 ? 5 : 4);
    const Tensor receive = tensor(y, DType::f32).slice(0, 0, c.rank() == 0 ? 3 : 5);
    try {
      c.wait(c.all_to_all_v(send, mine, receive, theirs));
      FAIL() << "nothing thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_COMM_ERROR);
      const std::string text = e.what();
      if (c.rank() == 0)
        EXPECT_EQ(text, "gloo: all_to_all_v of 5 fp32: rank 1 expects 12 bytes of rank 0, which sends 16");
      else
        EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    }
  });
}

// Parts are longer than a piece, and the next exchange begins before everybody has ended the last one.
TEST(Gloo, UnequalPartsOfManyExchanges) {
  on_ranks(3, [](comm::Communicator& c, const assay_comm&) {
    for (std::int64_t round = 0; round < 40; ++round) {
      if (round % 8 == c.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto rows = [&](std::int64_t from, std::int64_t to) {
        return (from + 2 * to + round) % 4 * (round % 10 == 0 ? 250'000 : 11);
      };
      Rows sent, received;
      for (std::int64_t r = 0; r < 3; ++r) sent.push_back(rows(c.rank(), r)), received.push_back(rows(r, c.rank()));
      const auto total = [](const Rows& x) { return std::accumulate(x.begin(), x.end(), std::int64_t{0}); };
      const auto value = [&](std::int64_t from, std::int64_t to, std::int64_t i) {
        return static_cast<float>(i % 9973 + 7 * from + 3 * to + round);
      };
      std::vector<float> x, y(static_cast<std::size_t>(total(received)) + 1, -1.0F);
      for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t i = 0; i < sent[static_cast<std::size_t>(r)]; ++i) x.push_back(value(c.rank(), r, i));
      x.push_back(0);  // so that there is memory where nothing is sent
      c.wait(c.all_to_all_v(Tensor(x.data(), DType::f32, {total(sent)}), sent,
                            Tensor(y.data(), DType::f32, {total(received)}), received));
      const float* got = y.data();
      for (std::int64_t r = 0; r < 3; ++r)
        for (std::int64_t i = 0; i < received[static_cast<std::size_t>(r)]; ++i, ++got)
          ASSERT_EQ(*got, value(r, c.rank(), i)) << "round " << round << ", rank " << r << ", row " << i;
      ASSERT_EQ(*got, -1.0F);
    }
  });
}

TEST(Gloo, SeveralCommunicatorsOfACaseDoNotMeet) {
  SharedComm shared(2);
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      const auto a = open_test_gloo(shared.table(r));
      const auto b = open_test_gloo(shared.table(r));
      std::vector<float> x(40000, 1.0F), y(40000, 10.0F);
      // In different orders: a communicator knows its own order only.
      comm::Ticket ta = 0, tb = 0;
      const auto start_a = [&] { ta = a->all_reduce(tensor(x, DType::f32), tensor(x, DType::f32), Reduction::sum); };
      const auto start_b = [&] { tb = b->all_reduce(tensor(y, DType::f32), tensor(y, DType::f32), Reduction::sum); };
      r == 0 ? (start_a(), start_b()) : (start_b(), start_a());
      a->wait(ta);
      b->wait(tb);
      EXPECT_EQ(x.back(), 2.0F);
      EXPECT_EQ(y.back(), 20.0F);
    });
  for (auto& t : threads) t.join();
}

TEST(Gloo, MistakesAreRefusedAndDoNoHarm) {
  on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    std::vector<float> x(8, 1.0F);
    const Tensor eight = tensor(x, DType::f32), four(x.data(), DType::f32, {4}), other(x.data(), DType::bf16, {8});
    const Tensor square(x.data(), DType::f32, {2, 4});
    const auto status = [](auto&& call) {
      try {
        call();
      } catch (const Error& e) {
        return e.status();
      }
      return ASSAY_OK;
    };
    EXPECT_EQ(status([&] { c.all_reduce(eight, four, Reduction::sum); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.all_reduce(eight, other, Reduction::sum); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.reduce_scatter(eight, eight, Reduction::sum); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.all_gather(eight, four); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.reduce(eight, 2, Reduction::sum); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.broadcast(eight, 2); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.broadcast(eight, -1); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.broadcast(square.transposed(0, 1), 0); }), ASSAY_INVALID_ARGUMENT);
    std::vector<float> y(8, 1.0F);
    const Tensor apart = tensor(y, DType::f32);
    EXPECT_EQ(status([&] { c.all_to_all(eight, eight); }), ASSAY_INVALID_ARGUMENT) << "in place";
    EXPECT_EQ(status([&] { c.all_to_all(apart.slice(0, 0, 3), eight.slice(0, 0, 3)); }), ASSAY_INVALID_ARGUMENT);
    const auto trade = [&](const Tensor& send, const Rows& sent, const Tensor& receive, const Rows& received) {
      return status([&] { c.all_to_all_v(send, sent, receive, received); });
    };
    EXPECT_EQ(trade(eight, {4, 4}, eight, {4, 4}), ASSAY_INVALID_ARGUMENT) << "in place";
    EXPECT_EQ(trade(apart, {4, 3}, eight, {4, 4}), ASSAY_INVALID_ARGUMENT) << "not all rows";
    EXPECT_EQ(trade(apart, {4, 4}, eight, {9, -1}), ASSAY_INVALID_ARGUMENT) << "less than none";
    EXPECT_EQ(trade(apart, {8}, eight, {4, 4}), ASSAY_INVALID_ARGUMENT) << "a count is missing";
    EXPECT_EQ(trade(apart, {3, 5}, eight, {5, 3}), ASSAY_INVALID_ARGUMENT) << "of itself";
    EXPECT_EQ(trade(tensor(y, DType::f32).view({4, 2}), {2, 2}, eight, {4, 4}), ASSAY_INVALID_ARGUMENT) << "rows";
    EXPECT_EQ(status([&] { c.send_receive(eight, 1 - c.rank(), four, 1 - c.rank()); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.send_receive(eight, 2, apart, 0); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.send_receive(eight, c.rank(), apart, 1 - c.rank()); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.send(eight, c.rank()); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.receive(eight, 2); }), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(status([&] { c.wait(1); }), ASSAY_INVALID_ARGUMENT);
    c.wait(c.all_reduce(eight, eight, Reduction::sum));
    EXPECT_EQ(x.back(), 2.0F);
  });
}

TEST(Gloo, ServesTheCpuAlone) {
  SharedComm shared(1);
  try {
    open_gloo(ASSAY_TEST_GLOO, shared.table(0), "cuda");
    FAIL() << "opened for the memory of a GPU";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_NE(std::string(e.what()).find("'cuda'"), std::string::npos) << e.what();
  }
}

TEST(Gloo, DescribesItself) {
  on_ranks(2, [](comm::Communicator& c, const assay_comm&) {
    EXPECT_STREQ(c.backend(), "gloo");
    EXPECT_EQ(c.description().rfind("Gloo 0.", 0), 0U) << c.description();
    EXPECT_NE(c.description().find("127.0.0.1"), std::string::npos) << c.description();
    EXPECT_EQ(c.size(), 2);
  });
}

// The suite's numbers, which are copied, are those that their formula has.
TEST(SuiteValues, AreThoseOfTheirPhases) {
  for (const std::size_t begin : {0U, 1U, 999U, 1000U, 4321U})
    for (const std::size_t count : {0U, 1U, 8U, 1000U, 3003U}) {
      std::vector<char> copied, computed;
      const auto value = [](std::size_t phase) { return small_integer(phase, 3); };
      append_by_phase(copied, compute::DType::f32, 11, begin, count, value);
      append(computed, compute::DType::f32, count,
             [&](std::size_t i) { return static_cast<int>(((begin + i) * 7 + 15 + 33 + (begin + i) / 1000) % 9) - 4; });
      EXPECT_EQ(copied, computed) << count << " from " << begin;
    }
}

}  // namespace
}  // namespace assay::test
