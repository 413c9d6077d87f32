// The choice between kinds of a collective: ranks are threads, and the times are said, not taken.
#include <assay/comm.h>
#include <gtest/gtest.h>
#include <assay/comm/measured_choice.hpp>
#include <assay/comm/silent.hpp>
#include <assay/compute/silent_backend.hpp>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/shared_comm.hpp"

namespace assay::comm {
namespace {

using Rounds = std::array<double, timed_rounds>;

struct HostOfRanks {
  explicit HostOfRanks(const assay_comm* table) : comm(table) {
    abi.struct_size = sizeof abi;
    abi.impl = this;
    abi.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
      return std::string_view(id) == ASSAY_EXT_COMM ? static_cast<const HostOfRanks*>(h->impl)->comm : nullptr;
    };
    abi.log = [](const assay_host* h, int32_t level, assay_str text) noexcept {
      constexpr int32_t warning = 2;
      if (level == warning) static_cast<HostOfRanks*>(h->impl)->notes.emplace_back(text.data, text.size);
    };
  }
  assay_host abi{};
  const assay_comm* comm;
  std::vector<std::string> notes;
};

// What a device keeps, in memory.
class Kept final : public compute::KeptChoices {
 public:
  std::optional<std::string> find(const std::string& key) override {
    const auto found = choices.find(key);
    return found == choices.end() ? std::nullopt : std::optional(found->second);
  }
  void refuse_to_choose(const std::string& key) const override {
    if (is_fixed) throw Error(ASSAY_UNSUPPORTED, "none was kept for " + key);
  }
  void keep(const std::string& key, const std::string& choice, std::span<const double> microseconds) override {
    choices[key] = choice;
    times.assign(microseconds.begin(), microseconds.end());
  }
  void list(const std::string& key, const std::string& choice) override { listed.push_back(key + ": " + choice); }

  std::map<std::string, std::string> choices;
  std::vector<double> times;
  std::vector<std::string> listed;
  bool is_fixed = false;
};

Rounds all(double seconds) {
  Rounds rounds{};
  rounds.fill(seconds);
  return rounds;
}

class Choice : public ::testing::Test {
 protected:
  static constexpr int ranks = 3;
  using Time = std::function<Rounds(int rank)>;
  using Open = std::function<void(int rank, const std::string& kind)>;

  // What each rank gets: the chosen kind's name and the text, or the error.
  std::vector<std::pair<std::string, std::string>> choose(const std::vector<std::pair<std::string, Time>>& kinds,
                                                          const Open& open = nullptr) {
    const test::SharedComm comm(ranks, 5000);
    std::vector<std::pair<std::string, std::string>> found(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const auto at = static_cast<std::size_t>(rank);
        const HostOfRanks host(&comm.table(rank));
        std::vector<TimedKind> timed;
        for (const auto& [name, time] : kinds)
          timed.push_back({name, [&, rank, t = &time] {
                             ++timings[at];
                             return (*t)(rank);
                           }});
        if (open)
          for (TimedKind& kind : timed) kind.open = [&open, rank, name = kind.name] { open(rank, name); };
        try {
          const MeasuredChoice choice = choose_by_time(Host(&host.abi), "gathers", "key", &kept[at], timed);
          found[at] = {timed[choice.kind].name, choice.text};
        } catch (const Error& e) {
          found[at] = {"error " + std::to_string(e.status()), e.what()};
        }
        notes[at] = host.notes;
      });
    for (std::thread& t : threads) t.join();
    return found;
  }
  std::array<Kept, ranks> kept;  // by rank: each has its device's
  std::array<int, ranks> timings{};
  std::array<std::vector<std::string>, ranks> notes;
};

TEST_F(Choice, EveryRankTakesTheKindWhoseSlowestRankIsFastest) {
  const auto found = choose({{"any_memory", [](int rank) { return all(rank == 2 ? 9e-3 : 1e-3); }},
                             {"windows", [](int) { return all(4e-3); }},
                             {"copy_engines", [](int) { return all(5e-3); }}});
  for (const auto& [kind, text] : found) {
    EXPECT_EQ(kind, "windows");
    EXPECT_EQ(text, "windows, the fastest of those timed: any_memory 9000 us, windows 4000 us, copy_engines 5000 us");
  }
  EXPECT_EQ(kept[0].choices.at("key"), "windows");
  EXPECT_EQ(kept[0].times, std::vector<double>(timed_rounds, 4e-3 * 1e6));
  EXPECT_TRUE(kept[1].choices.empty()) << "rank 0 keeps it for all";
  for (const Kept& of_rank : kept) EXPECT_EQ(of_rank.listed, std::vector<std::string>{"key: windows"});
}

// In each round another rank is late, which no rank's own median shows.
TEST_F(Choice, ARoundIsAsLongAsOnItsSlowestRankAndTheMedianOfRoundsCounts) {
  const auto late = [](int rank) {
    Rounds rounds = all(1e-3);
    for (std::size_t i = 0; i < rounds.size(); ++i)
      if (static_cast<int>(i) % ranks == rank) rounds[i] = 8e-3;
    return rounds;
  };
  const auto twice_disturbed = [](int) {
    Rounds rounds = all(2e-3);
    rounds[0] = rounds[1] = 1.0;
    return rounds;
  };
  for (const auto& [kind, text] : choose({{"late", late}, {"disturbed", twice_disturbed}}))
    EXPECT_EQ(kind, "disturbed");
}

TEST_F(Choice, WhatAsksForLessIsTakenUnlessMoreIsTwoPercentFaster) {
  for (const auto& [kind, text] :
       choose({{"a", [](int) { return all(1.019e-3); }}, {"b", [](int) { return all(1e-3); }}}))
    EXPECT_EQ(kind, "a");
  for (Kept& of_rank : kept) of_rank.choices.clear();
  for (const auto& [kind, text] :
       choose({{"a", [](int) { return all(1.021e-3); }}, {"b", [](int) { return all(1e-3); }}}))
    EXPECT_EQ(kind, "b");
}

TEST_F(Choice, AKindThatOneRankCannotOpenIsLeftOutOnAllWithANote) {
  const auto found = choose({{"any_memory", [](int) { return all(2e-3); }},
                             {"windows",
                              [](int rank) {
                                if (rank == 1) throw Error(ASSAY_UNSUPPORTED, "no windows here");
                                return all(1e-3);
                              }},
                             {"copy_engines", [](int) -> Rounds { throw Error(ASSAY_OUT_OF_MEMORY, "full"); }}});
  for (const auto& [kind, text] : found) {
    EXPECT_EQ(kind, "any_memory");
    EXPECT_EQ(text,
              "any_memory, the fastest of those timed: any_memory 2000 us; windows was left out: rank 1 could "
              "not open it; copy_engines was left out: full");
  }
}

TEST_F(Choice, WhereNoKindIsLeftEveryRankRefuses) {
  const auto closed = [](int) -> Rounds { throw Error(ASSAY_UNSUPPORTED, "none here"); };
  for (const auto& [kind, text] : choose({{"a", closed}, {"b", closed}})) {
    EXPECT_EQ(kind, "error " + std::to_string(ASSAY_UNSUPPORTED));
    EXPECT_EQ(text, "no kind of memory could be opened: none here");
  }
}

TEST_F(Choice, AFaultIsNoKindThatIsLeftOut) {
  const auto broken = [](int) -> Rounds { throw Error(ASSAY_COMM_ERROR, "a rank is gone"); };
  for (const auto& [kind, text] : choose({{"a", [](int) { return all(1); }}, {"b", broken}})) {
    EXPECT_EQ(kind, "error " + std::to_string(ASSAY_COMM_ERROR));
    EXPECT_EQ(text, "a rank is gone");
  }
}

TEST_F(Choice, WhatRank0HasKeptIsTakenByAllAndTimesNothing) {
  kept[0].choices["key"] = "b";
  kept[1].choices["key"] = "a";
  for (const auto& [kind, text] : choose({{"a", [](int) { return all(1); }}, {"b", [](int) { return all(2); }}})) {
    EXPECT_EQ(kind, "b");
    EXPECT_EQ(text, "b, measured before");
  }
  EXPECT_EQ(timings, (std::array<int, ranks>{0, 0, 0}));
  for (const Kept& of_rank : kept) EXPECT_EQ(of_rank.listed, std::vector<std::string>{"key: b"});
}

TEST_F(Choice, AKeptKindThatThereIsNotIsMeasuredAnew) {
  kept[0].choices["key"] = "gone";
  for (const auto& [kind, text] : choose({{"a", [](int) { return all(1); }}, {"b", [](int) { return all(2); }}}))
    EXPECT_EQ(kind, "a");
  EXPECT_EQ(kept[0].choices.at("key"), "a");
  EXPECT_EQ(timings, (std::array<int, ranks>{2, 2, 2}));
}

// As a variable of the library forbids windows that an earlier process has had.
TEST_F(Choice, AKeptKindThatARankCanNoLongerOpenIsMeasuredAnewWithANote) {
  kept[0].choices["key"] = "windows";
  const auto closed_on_rank_1 = [](int rank, const std::string& kind) {
    if (rank == 1 && kind == "windows") throw Error(ASSAY_UNSUPPORTED, "no windows here");
  };
  const auto windows = [](int rank) {
    if (rank == 1) throw Error(ASSAY_UNSUPPORTED, "no windows here");
    return all(1e-3);
  };
  for (const auto& [kind, text] :
       choose({{"any_memory", [](int) { return all(2e-3); }}, {"windows", windows}}, closed_on_rank_1)) {
    EXPECT_EQ(kind, "any_memory");
    EXPECT_EQ(text,
              "any_memory, the fastest of those timed: any_memory 2000 us; windows was left out: rank 1 could not open "
              "it");
  }
  EXPECT_EQ(notes[0],
            std::vector<std::string>{"gathers: windows, measured before, cannot be opened any more (rank 1 could "
                                     "not open it); the kinds are measured again"});
  EXPECT_TRUE(notes[1].empty() && notes[2].empty()) << "rank 0 says it for all";
  EXPECT_EQ(kept[0].choices.at("key"), "any_memory");
}

TEST_F(Choice, AKeptKindThatOpensIsTakenAndTimesNothing) {
  kept[0].choices["key"] = "windows";
  std::array<int, ranks> opened{};
  for (const auto& [kind, text] :
       choose({{"any_memory", [](int) { return all(1); }}, {"windows", [](int) { return all(2); }}},
              [&](int rank, const std::string&kind) { opened[static_cast<std::size_t>(rank)] += kind == "windows"; }))
    EXPECT_EQ(kind, "windows");
  EXPECT_EQ(opened, (std::array<int, ranks>{1, 1, 1}));
  EXPECT_EQ(timings, (std::array<int, ranks>{0, 0, 0}));
  EXPECT_TRUE(notes[0].empty());
}

TEST_F(Choice, AFaultOfAKeptKindIsNoReasonToMeasureAnew) {
  kept[0].choices["key"] = "windows";
  for (const auto& [kind, text] :
       choose({{"any_memory", [](int) { return all(1); }}, {"windows", [](int) { return all(2); }}},
              [](int, const std::string&) { throw Error(ASSAY_COMM_ERROR, "a rank is gone"); }))
    EXPECT_EQ(text, "a rank is gone");
  EXPECT_EQ(timings, (std::array<int, ranks>{0, 0, 0}));
}

TEST_F(Choice, OneKindIsTakenAtOnceWithoutRanksOrClock) {
  const HostOfRanks alone(nullptr);
  const TimedKind only{"any_memory", []() -> Rounds { throw Error(ASSAY_INTERNAL, "it was timed"); }};
  const MeasuredChoice choice = choose_by_time(Host(&alone.abi), "gathers", "key", nullptr, {only});
  EXPECT_EQ(choice.kind, 0u);
  EXPECT_EQ(choice.text, "any_memory, the only kind here");
}

TEST(FixedChoice, IsRefusedOnRank0WhereNothingWasKept) {
  const test::SharedComm comm(1);
  const HostOfRanks host(&comm.table(0));
  Kept kept;
  kept.is_fixed = true;
  const auto time = [] { return all(1); };
  try {
    choose_by_time(Host(&host.abi), "gathers", "2 ranks", &kept, {{"a", time}, {"b", time}});
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_STREQ(e.what(), "none was kept for 2 ranks");
  }
}

TEST(FixedChoice, IsRefusedWhereTheKeptKindCannotBeOpened) {
  const test::SharedComm comm(1);
  const HostOfRanks host(&comm.table(0));
  Kept kept;
  kept.is_fixed = true;
  kept.choices["key"] = "b";
  const auto time = [] { return all(1); };
  const auto closed = [] { throw Error(ASSAY_UNSUPPORTED, "no windows here"); };
  try {
    choose_by_time(Host(&host.abi), "gathers", "key", &kept, {{"a", time}, {"b", time, closed}});
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_STREQ(e.what(),
                 "gathers: b, measured before, cannot be opened any more (no windows here), and ASSAY_ALGORITHMS=fixed "
                 "allows no other; unset ASSAY_ALGORITHMS, or what closes it");
  }
}

// What a round goes through, with a clock that each enqueued round puts forward.
class Traced final : public SilentCommunicator {
 public:
  explicit Traced(std::string& trace) : SilentCommunicator(0, 1), trace_(trace) {}
  void barrier() override { trace_ += "barrier, "; }
  void synchronize() override { trace_ += "collectives, "; }

 private:
  std::string& trace_;
};
class TracedBackend final : public compute::SilentBackend {
 public:
  explicit TracedBackend(std::string& trace) : trace_(trace) {}
  void synchronize() override { trace_ += "device, "; }

 private:
  std::string& trace_;
};

TEST(Rounds, BeginTogetherAndEndWithTheDevice) {
  std::string trace, expected;
  Traced communicator(trace);
  TracedBackend backend(trace);
  double now = 0;
  int enqueued = 0;
  const Rounds taken = time_rounds(
      communicator, backend,
      [&] {
        trace += "clock, ";
        return now;
      },
      [&] {
        trace += "round, ";
        now += ++enqueued;
      });
  for (std::size_t round = 0; round < timed_rounds; ++round)
    EXPECT_EQ(taken[round], static_cast<double>(round + 3)) << "two rounds warm up";
  for (int round = 0; round < enqueued; ++round)
    expected += std::string("device, barrier, clock, round, collectives, device, ") + (round < 2 ? "" : "clock, ");
  EXPECT_EQ(trace, expected);
}

TEST(ChoiceKey, NamesCollectiveSizesRanksAndLibrary) {
  const test::SharedComm comm(4);
  const HostOfRanks host(&comm.table(1));
  const std::string key = choice_key(Host(&host.abi), "all_gather", "NCCL 2.28.9", true, "2 x 64 bytes");
  EXPECT_EQ(key, "all_gather of 2 x 64 bytes, in a graph, 4 ranks, " + std::to_string(comm.table(1).local_rank_count) +
                     " on a machine, NCCL 2.28.9");
  EXPECT_NE(key, choice_key(Host(&host.abi), "all_gather", "NCCL 2.28.9", false, "2 x 64 bytes"));
}

}  // namespace
}  // namespace assay::comm
