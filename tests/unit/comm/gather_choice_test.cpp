// What a trial of gatherings takes, times and chooses: on a communicator that moves nothing, with a clock that each
// gathering puts forward by what its kind is said to take.
#include <assay/comm.h>
#include <assay/device.h>
#include <gtest/gtest.h>
#include <assay/comm/registered_memory.hpp>
#include <assay/comm/silent.hpp>
#include <assay/compute/silent_backend.hpp>
#include <assay/parallel/gather_choice.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/shared_comm.hpp"

namespace assay::parallel {
namespace {

using comm::MemoryKind;
using comm::Registration;

// A device that has kept windows for whatever is asked.
class WindowsKept final : public compute::KeptChoices {
 public:
  std::optional<std::string> find(const std::string&) override { return "windows"; }
  void refuse_to_choose(const std::string&) const override {}
  void keep(const std::string&, const std::string&, std::span<const double>) override {}
  void list(const std::string&, const std::string&) override {}
};
constexpr compute::KeptChoicesFactory windows_kept{
    compute::kept_choices_id,
    [](assay_device*, const char*, const char*) -> compute::KeptChoices* { return new WindowsKept; }};

// One rank: its memory's account, its clock, and what it saw.
struct Rank {
  explicit Rank(const assay_comm& ranks) : comm(&ranks) {
    abi.struct_size = sizeof abi;
    abi.impl = this;
    abi.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
      const auto& self = *static_cast<const Rank*>(h->impl);
      if (std::string_view(id) == ASSAY_EXT_COMM) return self.comm;
      if (std::string_view(id) == ASSAY_EXT_DEVICE && self.keeps_choices) return &self.device;
      return std::string_view(id) == ASSAY_EXT_MEMORY ? &self.memory : nullptr;
    };
    abi.log = [](const assay_host* h, std::int32_t level, assay_str text) noexcept {
      constexpr std::int32_t warning = 2;
      if (level == warning) static_cast<Rank*>(h->impl)->notes.emplace_back(text.data, text.size);
    };
    device_api.struct_size = sizeof device_api;
    device_api.get_extension = [](const char* id) noexcept -> const void* {
      return std::string_view(id) == "assay.kept_choices/1" ? &windows_kept : nullptr;
    };
    device.struct_size = sizeof device;
    device.api = &device_api;
    memory.struct_size = sizeof memory;
    memory.impl = this;
    memory.allocate = [](const assay_memory* m, assay_memory_kind, std::size_t bytes, assay_str,
                         void** out) noexcept -> assay_status {
      *out = new char[bytes];
      static_cast<Rank*>(m->impl)->take(*out, bytes);
      return ASSAY_OK;
    };
    memory.release = [](const assay_memory* m, void* address) noexcept {
      static_cast<Rank*>(m->impl)->give_back(address);
      delete[] static_cast<char*>(address);
    };
    memory.report = [](const assay_memory* m, assay_memory_kind, std::int64_t delta, assay_str) noexcept {
      auto& self = *static_cast<Rank*>(m->impl);
      self.held += delta;
      self.most = std::max(self.most, self.held);
    };
  }
  void take(void* address, std::size_t bytes) {
    sizes[address] = bytes;
    held += static_cast<std::int64_t>(bytes);
    most = std::max(most, held);
  }
  void give_back(void* address) {
    held -= static_cast<std::int64_t>(sizes[address]);
    sizes.erase(address);
  }

  assay_host abi{};
  assay_device_api device_api{};
  assay_device_access device{};
  bool keeps_choices = false;
  std::vector<std::string> notes;
  assay_memory memory{};
  const assay_comm* comm;
  std::map<void*, std::size_t> sizes;
  std::int64_t held = 0, most = 0;
  double now = 0;  // seconds
  std::map<MemoryKind, double> seconds_by_byte;
  std::vector<std::size_t> gathered;  // bytes, of the kind that was tried last
  int in_place = 0;
  bool has_windows = true;
};

class Memory final : public comm::LibraryMemory {
 public:
  Memory(std::size_t bytes, Registration registration) : bytes_(bytes), registration_(registration) {}
  void* data() const override { return const_cast<char*>(bytes_.data()); }
  Registration registration() const override { return registration_; }

 private:
  std::vector<char> bytes_;
  Registration registration_;
};

class SaidCommunicator final : public comm::SilentCommunicator {
 public:
  SaidCommunicator(Rank& rank, bool copy_engines)
      : SilentCommunicator(rank.comm->rank, rank.comm->rank_count), rank_(rank), copy_engines_(copy_engines) {
    rank_.gathered.clear();
  }
  std::string description() const override { return "NCCL 2.28.9"; }
  std::unique_ptr<comm::LibraryMemory> allocate_registered(std::size_t bytes, Registration best) override {
    registration_ = best == Registration::symmetric && !rank_.has_windows ? Registration::plain : best;
    return std::make_unique<Memory>(bytes, registration_);
  }
  comm::Ticket all_gather(const compute::Tensor& send, const compute::Tensor& receive) override {
    const MemoryKind kind = copy_engines_                              ? MemoryKind::copy_engines
                            : registration_ == Registration::none      ? MemoryKind::any_memory
                            : registration_ == Registration::symmetric ? MemoryKind::windows
                                                                       : MemoryKind::registered;
    rank_.now += rank_.seconds_by_byte.at(kind) * static_cast<double>(receive.bytes());
    rank_.gathered.push_back(receive.bytes());
    rank_.in_place += comm::share_memory(send, receive) ? 1 : 0;
    EXPECT_EQ(send.bytes() * static_cast<std::size_t>(size()), receive.bytes());
    return 1;
  }
  bool captures() const override { return false; }

 private:
  Rank& rank_;
  bool copy_engines_;
  Registration registration_ = Registration::none;
};

class Gpu final : public compute::SilentBackend {
 public:
  explicit Gpu(const char* kind = "cuda") : kind_(kind) {}
  const char* kind() const override { return kind_; }
  void run_any(const compute::AnyOperation&) override { ++operations; }
  int operations = 0;

 private:
  const char* kind_;
};

class Gathers : public ::testing::Test {
 protected:
  static constexpr std::size_t ranks = 2;
  Gathers() : comm_(static_cast<std::int32_t>(ranks), 5000) {
    for (std::size_t r = 0; r < ranks; ++r) {
      rank_.push_back(std::make_unique<Rank>(comm_.table(static_cast<std::int32_t>(r))));
      rank_.back()->seconds_by_byte = {{MemoryKind::any_memory, 5e-9},
                                       {MemoryKind::registered, 3e-9},
                                       {MemoryKind::windows, 4e-9},
                                       {MemoryKind::copy_engines, 2e-9}};
    }
  }
  std::array<GatherChoice, ranks> choose(const GatherTrial& trial) {
    std::array<GatherChoice, ranks> found;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        Rank& rank = *rank_[r];
        Gpu gpu;
        const auto open = [&](bool copy_engines) { return std::make_unique<SaidCommunicator>(rank, copy_engines); };
        const Host host(&rank.abi);
        found[r] = choose_gathers({host, gpu, open, [&] { return rank.now; }}, "fsdp", trial);
      });
    for (std::thread& t : threads) t.join();
    return found;
  }
  const test::SharedComm comm_;
  std::vector<std::unique_ptr<Rank>> rank_;
};

TEST_F(Gathers, TheFastestKindOfTheSlowestRankIsTakenByAll) {
  rank_[1]->seconds_by_byte[MemoryKind::copy_engines] = 9e-9;
  const GatherTrial trial{.bytes = {4096, 1000, 1000}};
  for (const GatherChoice& choice : choose(trial)) {
    EXPECT_EQ(choice.kind, MemoryKind::registered);
    EXPECT_EQ(choice.text,
              "gathers = \"registered\": registered, the fastest of those timed: any_memory 30.48 us, registered 18.29 "
              "us, windows 24.38 us, copy_engines 54.86 us");
  }
}

TEST_F(Gathers, WithoutWindowsTheirKindsAreLeftOutWithANote) {
  for (auto& rank : rank_) rank->has_windows = false;
  for (const GatherChoice& choice : choose({.bytes = {4096}})) {
    EXPECT_EQ(choice.kind, MemoryKind::registered);
    EXPECT_NE(choice.text.find("; windows was left out: gathers = \"windows\" needs symmetric windows, and NCCL 2.28.9 "
                               "has none between these GPUs; leave it out; copy_engines was left out: "),
              std::string::npos)
        << choice.text;
  }
}

TEST_F(Gathers, KeptWindowsAreTakenWhereTheyOpenAndElseAllKindsAreMeasured) {
  for (auto& rank : rank_) rank->keeps_choices = true;
  for (const GatherChoice& choice : choose({.bytes = {4096}})) {
    EXPECT_EQ(choice.kind, MemoryKind::windows);
    EXPECT_EQ(choice.text, "gathers = \"windows\": windows, measured before");
  }
  for (auto& rank : rank_) rank->has_windows = false;
  for (const GatherChoice& choice : choose({.bytes = {4096}})) EXPECT_EQ(choice.kind, MemoryKind::registered);
  ASSERT_EQ(rank_[0]->notes.size(), 1u);
  EXPECT_EQ(rank_[0]->notes[0],
            "fsdp: windows, measured before, cannot be opened any more (gathers = \"windows\" needs symmetric windows, "
            "and NCCL 2.28.9 has none between these GPUs; leave it out); the kinds are measured again");
  EXPECT_TRUE(rank_[1]->notes.empty());
  for (const auto& rank : rank_) EXPECT_EQ(rank->held, 0);
}

// One kind's memory at a time: of the largest gathering and a part of it. Nothing is left behind.
TEST_F(Gathers, TheMemoryIsOfTheLargestGatheringAndOneKind) {
  choose({.bytes = {1000, 4096}});
  for (const auto& rank : rank_) {
    EXPECT_EQ(rank->most, 4096 + 4096 / 2);
    EXPECT_EQ(rank->held, 0);
    EXPECT_EQ(rank->in_place, 0);
  }
}

TEST_F(Gathers, InPlaceThereIsNoSecondBuffer) {
  choose({.bytes = {1000, 4096}, .in_place = true});
  for (const auto& rank : rank_) {
    EXPECT_EQ(rank->most, 4096);
    EXPECT_GT(rank->in_place, 0);
  }
}

// A step's, in its order: once to connect, twice to warm up, and in each round.
TEST_F(Gathers, EachRoundHasTheGatheringsOfAStepAndItsProducts) {
  Rank& rank = *rank_[0];
  Gpu gpu;
  const auto open = [&](bool copy_engines) { return std::make_unique<SaidCommunicator>(rank, copy_engines); };
  const Host host(&rank.abi);
  const GatherTrial trial{.bytes = {4096, 1000}, .products = 3, .rows = 8, .width = 4};
  const auto seconds = time_gatherings({host, gpu, open, [&] { return rank.now; }}, trial, MemoryKind::windows);
  for (const double s : seconds) EXPECT_NEAR(s, 4e-9 * 5096, 1e-15);
  ASSERT_EQ(rank.gathered.size(), 2 * (3 + comm::timed_rounds));
  for (std::size_t i = 0; i < rank.gathered.size(); ++i) EXPECT_EQ(rank.gathered[i], i % 2 == 0 ? 4096u : 1000u);
  // Two operands are filled, in preparing and for good; products are prepared once.
  EXPECT_EQ(gpu.operations, 2 * 2 + 3 + 3 * static_cast<int>(rank.gathered.size()));
}

TEST(GatherTrialSizes, KeepFourOfEqualOnesInARow) {
  EXPECT_EQ(few_of_each({1, 2, 2, 2, 2, 2, 2, 1, 1}), (std::vector<std::size_t>{1, 2, 2, 2, 2, 1, 1}));
  EXPECT_EQ(few_of_each({3, 3, 3, 3}), (std::vector<std::size_t>{3, 3, 3, 3}));
  EXPECT_TRUE(few_of_each({}).empty());
}

TEST_F(Gathers, TheCpuHasOneKindAndOpensNothingForIt) {
  Gpu cpu("cpu");
  const Host host(&rank_[0]->abi);
  const auto open = [](bool) -> std::unique_ptr<comm::Communicator> { throw Error(ASSAY_INTERNAL, "it was opened"); };
  const GatherChoice choice = choose_gathers({host, cpu, open, comm::steady_seconds}, "fsdp", {.bytes = {4096}});
  EXPECT_EQ(choice.kind, MemoryKind::any_memory);
  EXPECT_EQ(choice.text, "gathers = \"any_memory\": any_memory, the only kind here");
}

}  // namespace
}  // namespace assay::parallel
