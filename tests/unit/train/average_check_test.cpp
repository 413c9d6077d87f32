// What distinguishes the mean of the ranks' gradients from everything else: each strategy is given a communicator that
// breaks one thing, and the check must see it.
#include <gtest/gtest.h>

#include <algorithm>
#include <assay/parallel/gradient_average.hpp>
#include <assay/verification/average_check.hpp>
#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <thread>

#include "host_tensors.hpp"
#include "recorded_ranks.hpp"
#include "support/shared_comm.hpp"

namespace assay::train {
namespace {

using test::Fault;

constexpr std::int64_t ranks = 3;

ParameterSet uneven_set() {
  ParameterSet set({});
  set.add({{"head", {40, 500}}});
  set.add({{"norm", {100}}});  // with a gap behind it
  set.add({{"query", {30, 64}}, {"key", {30, 64}}});
  set.add({{"bias", {7}}});
  return set;
}

// Each rank's gradients, before and after an average.
struct Ranks {
  explicit Ranks(bool same_data = false) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::mt19937 random(same_data ? 0U : static_cast<unsigned>(rank));
      std::normal_distribution<float> normal;
      auto& arena = own.emplace_back(static_cast<std::size_t>(set.arena_elements()));
      for (const Parameter& p : set.all())
        for (std::int64_t i = 0; i < p.elements(); ++i)
          arena[static_cast<std::size_t>(p.offset + i)] = normal(random) * (p.name == "bias" ? 1e-6F : 1.0F);
    }
    averaged = own;
  }

  void average(parallel::AverageMode strategy, Fault fault) {
    test::RecordedRanks communicators(static_cast<std::int32_t>(ranks));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      set.bind(nullptr, nullptr, averaged[rank].data());
      parallel::GradientAverage of_rank(strategy, set, 8192);
      of_rank.use(communicators.rank(rank));
      of_rank.begin_step();
      if (of_rank.listener())
        for (ParameterSet::Id end = 1; end <= set.all().size(); ++end) of_rank.listener()->gradients_ready(end);
      of_rank.finish();
    }
    communicators.carry_out(fault);
  }

  std::vector<compute::WeightedSum> sketched(const std::vector<float>& arena) const {
    test::HostTensors backend;
    const compute::Tensor on_host(const_cast<float*>(arena.data()), compute::DType::f32,
                                  {static_cast<std::int64_t>(arena.size())});
    return verification::sketch_of(backend, on_host, pieces);
  }
  verification::RankGradients of_rank(std::size_t rank) const {
    return {sketched(own[rank]), sketched(averaged[rank])};
  }
  verification::AverageFindings found() const {
    std::vector<verification::RankGradients> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(of_rank(rank));
    return verification::compare_with_mean(all);
  }

  ParameterSet set = uneven_set();
  std::vector<ElementRange> pieces = verification::average_pieces(set, {}, ranks);
  std::vector<std::vector<float>> own, averaged;
};

const double tolerance = verification::average_tolerance(workload::PrecisionPolicy{}, verification::RankGradients{});

TEST(AverageOfRanks, IsTheMeanByEveryStrategy) {
  for (const parallel::AverageMode strategy :
       {parallel::AverageMode::naive, parallel::AverageMode::flat, parallel::AverageMode::overlap_individual,
        parallel::AverageMode::overlap_bucketed}) {
    Ranks r;
    r.average(strategy, Fault::none);
    const verification::AverageFindings found = r.found();
    EXPECT_LE(found.worst, tolerance);
    EXPECT_GT(found.worst, tolerance / 50) << "rounding to fp32 is seen, so that the tolerance is not idle";
    EXPECT_GT(found.nearest, 0.1);
    EXPECT_EQ(found.missing, -1);
  }
}

TEST(AverageOfRanks, OfABrokenCommunicatorIsNot) {
  for (const parallel::AverageMode strategy : {parallel::AverageMode::naive, parallel::AverageMode::overlap_individual,
                                               parallel::AverageMode::overlap_bucketed})
    for (const Fault fault :
         {Fault::broadcast, Fault::sum, Fault::left_out, Fault::swapped, Fault::on_rank_0_alone, Fault::last_element}) {
      Ranks r;
      r.average(strategy, fault);
      EXPECT_GT(r.found().worst, 1000 * tolerance) << static_cast<int>(strategy) << " " << static_cast<int>(fault);
    }
}

TEST(AverageOfRanks, SeesOneElementOfASmallGradient) {
  Ranks r;
  r.average(parallel::AverageMode::flat, Fault::none);
  r.averaged[1][static_cast<std::size_t>(r.set.all().back().offset) + 3] *= 1.001F;
  const verification::AverageFindings found = r.found();
  EXPECT_GT(found.worst, 10 * tolerance);
  EXPECT_EQ(found.worst_rank, 1);
  EXPECT_EQ(found.worst_piece, static_cast<std::int64_t>(r.pieces.size()) - 1);
}

TEST(AverageOfRanks, SeesTwoElementsThatChangePlaces) {
  Ranks r;
  r.average(parallel::AverageMode::flat, Fault::none);
  for (auto& arena : r.averaged) std::swap(arena[1000], arena[1001]);
  EXPECT_GT(r.found().worst, 1000 * tolerance);
}

// In 16 bits a sum of a piece may be off by 3%. 1% that all of them have in common is no rounding.
TEST(AverageOfRanks, SeesAFactorThatRoundingOfOneSumWouldHide) {
  constexpr workload::PrecisionPolicy bf16{.gradient = compute::DType::bf16, .activation = compute::DType::bf16};
  const auto rounded = [](float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
  };
  for (const float factor : {1.0F, 1.01F, 0.99F}) {
    Ranks r;
    for (auto& arena : r.own) std::transform(arena.begin(), arena.end(), arena.begin(), rounded);
    r.averaged = r.own;
    r.average(parallel::AverageMode::flat, Fault::none);
    for (auto& arena : r.averaged)
      for (float& x : arena) x = rounded(factor * x);
    const verification::AverageFindings found = r.found();
    EXPECT_LE(found.worst, verification::average_tolerance(bf16, verification::RankGradients{})) << factor;
    if (factor == 1)
      EXPECT_LE(found.factor, verification::factor_tolerance(bf16, found) / 4);
    else
      EXPECT_GT(found.factor, verification::factor_tolerance(bf16, found)) << factor;
  }
}

verification::RankGradients passes(std::int64_t layers, bool repeat, bool of_another_model = false) {
  verification::RankGradients passes;
  passes.layers = layers, passes.repeats_to_the_bit = repeat, passes.own_of_another_model = of_another_model;
  return passes;
}

// The worst pieces of one H200, whose attention adds in no fixed order.
TEST(AverageOfRanks, In16BitsMayDifferByTheRoundingsOfItsLayers) {
  constexpr workload::PrecisionPolicy bf16{.gradient = compute::DType::bf16, .activation = compute::DType::bf16};
  for (const auto& [layers, found] : {std::pair<std::int64_t, double>{12, 0.0328}, {28, 0.0405}}) {
    EXPECT_LT(1.5 * found, verification::average_tolerance(bf16, passes(layers, false)));
    EXPECT_GT(2.5 * found, verification::average_tolerance(bf16, passes(layers, false)));
  }
  EXPECT_EQ(verification::average_tolerance(workload::PrecisionPolicy{}, passes(28, false)), tolerance);
}

// Or the gradients of one rank would pass for the average of a deep model, and none of its averages would be right.
TEST(AverageOfRanks, In16BitsOfADeepModelIsStillToldFromOneRanksOwn) {
  constexpr workload::PrecisionPolicy bf16{.gradient = compute::DType::bf16, .activation = compute::DType::bf16};
  EXPECT_LT(verification::average_tolerance(bf16, passes(63, false)), 0.125);
  EXPECT_EQ(verification::average_tolerance(bf16, passes(300, false)), 0.125);
  EXPECT_EQ(verification::average_tolerance(bf16, passes(300, true, true)), 0.125);
}

// fp32 gradients that were converted to be averaged have the roundings of 16 bits, and no layers'.
TEST(AverageTolerance, OfFp32GradientsThatTravelIn16BitsIsThatOf16Bits) {
  const workload::PrecisionPolicy fp32;
  for (const std::int64_t layers : {1, 300}) {
    verification::RankGradients mine = passes(layers, true, true);
    mine.travels_in_16_bits = true;
    EXPECT_EQ(verification::average_tolerance(fp32, mine), 16 * 0x1p-9);
  }
  verification::AverageFindings found;
  found.allowed_roundings = 2;
  EXPECT_EQ(verification::factor_tolerance(fp32, found, true), 2 * 0x1p-9);
  EXPECT_EQ(verification::factor_tolerance(fp32, found), 2 * 0x1p-24);
}

// On a CPU both passes have the same roundings, through however many layers, unless another model made one of them.
TEST(AverageOfRanks, OfPassesThatRepeatMayDifferByItsOwnRoundingsAlone) {
  constexpr workload::PrecisionPolicy bf16{.gradient = compute::DType::bf16, .activation = compute::DType::bf16};
  EXPECT_EQ(verification::average_tolerance(bf16, passes(28, true)), 16 * 0x1p-9);
  EXPECT_EQ(verification::average_tolerance(bf16, passes(28, true, true)),
            verification::average_tolerance(bf16, passes(28, false)));
}

TEST(AverageOfRanks, IsNoneWhereANumberIsNot) {
  for (const float odd : {NAN, INFINITY}) {
    Ranks averaged, own;
    averaged.average(parallel::AverageMode::flat, Fault::none);
    own.average(parallel::AverageMode::flat, Fault::none);
    averaged.averaged[2][5] = odd;
    own.own[2][5] = odd;
    EXPECT_FALSE(averaged.found().worst <= 1e30);
    EXPECT_FALSE(own.found().worst <= 1e30);
  }
}

TEST(AverageOfRanks, OfGradientsThatAreZeroIsZero) {
  Ranks r;
  for (auto& arena : r.own) std::fill(arena.begin(), arena.begin() + 20'000, 0.0F);
  r.averaged = r.own;
  r.average(parallel::AverageMode::flat, Fault::none);
  EXPECT_LE(r.found().worst, tolerance);
  r.averaged[0][17] = 1e-30F;
  EXPECT_EQ(r.found().worst, INFINITY);
}

TEST(AverageOfRanks, OfTheSameDataCannotBeTold) {
  Ranks r(true);
  r.average(parallel::AverageMode::flat, Fault::broadcast);
  EXPECT_LE(r.found().worst, tolerance) << "a broadcast looks like the mean";
  EXPECT_LE(r.found().nearest, 1e-15);
}

TEST(AverageOfRanks, MayBeSharedOutAndThenEveryPieceIsSomewhere) {
  Ranks r;
  r.average(parallel::AverageMode::flat, Fault::none);
  std::vector<verification::RankGradients> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(r.of_rank(rank));
    for (std::size_t i = 0; i < r.pieces.size(); ++i)
      if (i % ranks != rank) all[rank].averaged[i] = verification::not_held;
  }
  EXPECT_LE(verification::compare_with_mean(all).worst, tolerance);
  EXPECT_EQ(verification::compare_with_mean(all).missing, -1);
  all[1].averaged[4] = verification::not_held;
  EXPECT_EQ(verification::compare_with_mean(all).missing, 4);
}

TEST(SketchPieces, CoverEveryElementOnceAndNoneOfTwoParameters) {
  const ParameterSet set = uneven_set();
  for (const std::size_t most : {0, 12, 40, 10'000})
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{}, std::vector<std::int64_t>{30'000, 64, 10'000, 20'000, 10'000, 0}}) {
      std::vector<int> seen(static_cast<std::size_t>(set.arena_elements()));
      for (const ElementRange& piece : verification::sketch_pieces(set, cuts, most)) {
        EXPECT_GT(piece.elements(), 0);
        for (const std::int64_t cut : cuts) EXPECT_FALSE(piece.begin < cut && cut < piece.end) << cut;
        for (std::int64_t i = piece.begin; i < piece.end; ++i) ++seen[static_cast<std::size_t>(i)];
      }
      std::vector<int> expected(seen.size());
      for (const Parameter& p : set.all())
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(p.offset), p.elements(), 1);
      EXPECT_EQ(seen, expected);
    }
  EXPECT_LE(verification::sketch_pieces(set, {}, 40).size(), 40u);
}

TEST(SketchPieces, OfALargeModelStayFew) {
  ParameterSet set({});
  for (int i = 0; i < 300; ++i) set.add({{std::to_string(i), {4096, 4096}}});
  for (const std::int64_t count : {2, 64, 1024}) {
    const std::size_t pieces = verification::average_pieces(set, {}, count).size();
    EXPECT_GE(pieces, 300u);
    EXPECT_LE(pieces * 2 * sizeof(compute::WeightedSum) * static_cast<std::size_t>(count), std::size_t{64} << 20)
        << count;
  }
}

// ---- the same over ranks -------------------------------------------------------------------------------------------

// A host that offers ranks and nothing else.
struct HostOfRanks {
  explicit HostOfRanks(const assay_comm& table) : comm(&table) {
    abi.struct_size = sizeof abi;
    abi.impl = this;
    abi.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
      return std::string_view(id) == ASSAY_EXT_COMM ? static_cast<const HostOfRanks*>(h->impl)->comm : nullptr;
    };
  }
  assay_host abi{};
  const assay_comm* comm;
};

// What check_average says on each rank: its text, or what it throws.
struct Said {
  std::string text;
  bool in_part = false, wrong = false;
};
std::vector<Said> say(const Ranks& r, const std::vector<verification::OwnData>& data) {
  const test::SharedComm shared(static_cast<std::int32_t>(ranks));
  std::vector<Said> said(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const HostOfRanks host(shared.table(static_cast<std::int32_t>(rank)));
      try {
        const Verified verified =
            verification::check_average(Host(&host.abi), "average", r.set, r.pieces, r.of_rank(rank), data[rank]);
        said[rank] = {verified.text, verified.in_part, false};
      } catch (const Error& e) {
        said[rank] = {e.what(), false, e.status() == ASSAY_WRONG_RESULT};
      }
    });
  for (std::thread& t : threads) t.join();
  return said;
}

const std::vector<verification::OwnData> different_data{{1, 100, 1000}, {2, 100, 1000}, {3, 100, 1000}};

TEST(AverageCheck, SaysOnEveryRankWhatItHasFound) {
  Ranks r;
  r.average(parallel::AverageMode::overlap_bucketed, Fault::none);
  const std::vector<Said> said = say(r, different_data);
  for (const Said& s : said) {
    EXPECT_FALSE(s.wrong || s.in_part) << s.text;
    EXPECT_EQ(s.text, said[0].text);
    EXPECT_NE(
        s.text.find("averaged gradients of 3 rank(s), " + std::to_string(3 * r.set.parameter_count()) + " elements"),
        std::string::npos)
        << s.text;
  }
}

TEST(AverageCheck, ThrowsOnEveryRank) {
  Ranks r;
  r.average(parallel::AverageMode::overlap_bucketed, Fault::left_out);
  for (const Said& s : say(r, different_data)) {
    EXPECT_TRUE(s.wrong) << s.text;
    EXPECT_NE(s.text.find("differ from the mean of the ranks' own by"), std::string::npos) << s.text;
  }
}

TEST(AverageCheck, RefusesRanksWithTheSameData) {
  Ranks r;
  r.average(parallel::AverageMode::flat, Fault::none);
  for (const Said& s : say(r, {{1, 100, 1000}, {2, 100, 1000}, {1, 100, 1000}})) {
    EXPECT_TRUE(s.wrong);
    EXPECT_NE(s.text.find("ranks 0 and 2 train on the same data"), std::string::npos) << s.text;
  }
}

TEST(AverageCheck, RefusesTheSameGradientsOfDifferentData) {
  Ranks r(true);
  r.average(parallel::AverageMode::flat, Fault::none);
  for (const Said& s : say(r, different_data)) EXPECT_TRUE(s.wrong) << s.text;
}

// Two draws of one token of a vocabulary of two are often the same.
TEST(AverageCheck, IsInPartWhereTheDataMayRepeat) {
  Ranks r(true);
  r.average(parallel::AverageMode::flat, Fault::broadcast);
  for (const Said& s : say(r, {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}})) {
    EXPECT_FALSE(s.wrong) << s.text;
    EXPECT_TRUE(s.in_part) << s.text;
  }
}

}  // namespace
}  // namespace assay::train
