// The road by which ranks share what their devices find by timing, over the table that the host gives a plugin.
#include "assay/workload/shared_tuning.hpp"

#include <assay/comm.h>
#include <gtest/gtest.h>
#include <assay/compute/forwarding_backend.hpp>
#include <assay/compute/silent_backend.hpp>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/shared_comm.hpp"

namespace assay::workload {
namespace {

// A host of which a plugin can ask the ranks, and nothing else.
struct HostOfRanks {
  explicit HostOfRanks(const assay_comm* table) : comm(table) {
    abi.struct_size = sizeof abi;
    abi.impl = this;
    abi.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
      return std::string_view(id) == ASSAY_EXT_COMM ? static_cast<const HostOfRanks*>(h->impl)->comm : nullptr;
    };
  }
  assay_host abi{};
  const assay_comm* comm;
};

// Notes what it learns about sharing.
class Listener final : public compute::SilentBackend {
 public:
  void share_tuning(compute::AlgorithmExchange* with) override {
    with ? ++begun : ++ended;
    exchange = with;
    if (!with && fails_at_the_end) throw Error(ASSAY_COMM_ERROR, "the service is gone");
  }
  compute::AlgorithmExchange* exchange = nullptr;
  int begun = 0, ended = 0;
  bool fails_at_the_end = false;
};

TEST(SharedTuning, OneRankLeadsEachListAndTheOthersReadIt) {
  constexpr int ranks = 3;
  const test::SharedComm comm(ranks);
  const std::string long_text(5000, 'x');  // more than the first call makes room for
  std::vector<int> led(ranks);
  std::vector<std::string> read(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      const HostOfRanks host(&comm.table(rank));
      Listener backend;
      const SharedTuning shared(Host(&host.abi), backend, "trainer 0");
      if (backend.exchange->lead("H200")) {
        led[at] = 1;
        backend.exchange->put("H200", 0, "short");
        backend.exchange->put("H200", 1, long_text);
      }
      read[at] = backend.exchange->get("H200", 0) + backend.exchange->get("H200", 1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(led[0] + led[1] + led[2], 1);
  for (const std::string& text : read) EXPECT_EQ(text, "short" + long_text);
}

TEST(SharedTuning, NamesAndDevicesHaveListsOfTheirOwn) {
  const test::SharedComm comm(2);
  const HostOfRanks host(&comm.table(0));
  Listener one, other;
  const SharedTuning shared(Host(&host.abi), one, "trainer 0"), later(Host(&host.abi), other, "trainer 1");
  EXPECT_TRUE(one.exchange->lead("H200"));
  EXPECT_FALSE(one.exchange->lead("H200"));
  EXPECT_TRUE(one.exchange->lead("H100"));
  EXPECT_TRUE(other.exchange->lead("H200"));
}

TEST(SharedTuning, AWriterThatDoesNotComeIsAnErrorWithTheHostsText) {
  const test::SharedComm comm(2, 50);
  const HostOfRanks host(&comm.table(1));
  Listener backend;
  const SharedTuning shared(Host(&host.abi), backend, "trainer 0");
  try {
    backend.exchange->get("H200", 7);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_COMM_ERROR);
  }
  EXPECT_NE(comm.message(1).find("tuning/trainer 0/H200/7"), std::string::npos) << comm.message(1);
}

TEST(SharedTuning, EndsWithTheObjectWhateverThatSays) {
  const test::SharedComm comm(2);
  const HostOfRanks host(&comm.table(0));
  Listener backend;
  {
    const SharedTuning shared(Host(&host.abi), backend, "trainer 0");
    EXPECT_EQ(backend.begun, 1);
    EXPECT_EQ(backend.ended, 0);
    backend.fails_at_the_end = true;
  }
  EXPECT_EQ(backend.ended, 1);
}

TEST(SharedTuning, ReachesTheBackendBehindOneThatLooksOn) {
  class LooksOn final : public compute::ForwardingBackend {
   public:
    using ForwardingBackend::ForwardingBackend;
  };
  const test::SharedComm comm(2);
  const HostOfRanks host(&comm.table(0));
  Listener real;
  LooksOn before(real);
  { const SharedTuning shared(Host(&host.abi), before, "trainer 0"); }
  EXPECT_EQ(real.begun, 1);
  EXPECT_EQ(real.ended, 1);
}

TEST(SharedTuning, ARankAloneSharesNothingNorDoesWhoWantsNone) {
  const test::SharedComm of_one(1), of_two(2);
  const HostOfRanks alone(&of_one.table(0)), with_another(&of_two.table(0)), without(nullptr);
  Listener backend;
  for (const HostOfRanks* host : {&alone, &without}) {
    const SharedTuning shared(Host(&host->abi), backend, "trainer 0");
  }
  setenv("ASSAY_SHARED_TUNING", "0", 1);
  { const SharedTuning shared(Host(&with_another.abi), backend, "trainer 0"); }
  EXPECT_EQ(backend.begun + backend.ended, 0);
  setenv("ASSAY_SHARED_TUNING", "1", 1);
  { const SharedTuning shared(Host(&with_another.abi), backend, "trainer 0"); }
  unsetenv("ASSAY_SHARED_TUNING");
  EXPECT_EQ(backend.begun, 1);
}

}  // namespace
}  // namespace assay::workload
