// What the timing of products does with its file: for times that the test plays, so that nothing runs.
#include "cpu/matmul_tuner.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <assay/plugin.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "cpu/host_memory.hpp"
#include "cpu/waiting_threads.hpp"
#include "exchange_of_threads.hpp"

namespace assay::cpu {
namespace {

namespace fs = std::filesystem;
using compute::AlgorithmMode;

constexpr std::int64_t large = std::int64_t{1} << 27;
constexpr const char* key = "matmul f32->f32 [512x768]*[768x768] steps 768,1 1,768 768,1";
const std::vector<MatmulCandidate> three{
    {"brg:avx512_core", {}}, {"gemm:jit", {}}, {"brg:avx512_core, packs b", {false, true}}};

class MatmulTunerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("assay_tuner_") + test->name() + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  MatmulTuner::Settings settings(AlgorithmMode mode = AlgorithmMode::kept) {
    return {true,
            mode,
            folder_,
            {"Some Processor, family 6", "oneDNN 2.6.3", "none", "avx2, 2 threads"},
            [this](const std::string&, const MatmulCandidate& candidate) {
              ++runs_;
              return std::optional(TimedRun{seconds_[candidate.name], false});
            }};
  }
  // The name of the choice, and what was said.
  std::string choose(MatmulTuner::Settings settings, std::int64_t multiply_adds = large,
                     compute::Tuning tuning = compute::Tuning::measured) {
    MatmulTuner tuner(std::move(settings));
    runs_ = 0;
    ::testing::internal::CaptureStderr();
    const MatmulTuner::Choice choice = tuner.choose(key, multiply_adds, {}, three, engine_, stream_, tuning);
    tuner.end_preparing();
    said_ = ::testing::internal::GetCapturedStderr();
    origin_ = choice.origin;
    return three[choice.candidate].name;
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_)) return entry.path();
    return {};
  }

  fs::path folder_;
  std::map<std::string, double> seconds_{{three[0].name, 3e-3}, {three[1].name, 2e-3}, {three[2].name, 4e-3}};
  int runs_ = 0;
  std::string said_, origin_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

TEST_F(MatmulTunerTest, TakesTheFastestAndTheNextProcessTakesItFromTheFile) {
  EXPECT_EQ(choose(settings()), "gemm:jit");
  EXPECT_EQ(origin_, "2.000 ms, best of 3");
  EXPECT_GT(runs_, 0);
  seconds_[three[2].name] = 1e-3;  // what is in the file counts
  EXPECT_EQ(choose(settings()), "gemm:jit");
  EXPECT_EQ(origin_, "2.000 ms, measured before");
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(choose(settings(AlgorithmMode::fixed)), "gemm:jit");
  EXPECT_EQ(choose(settings(AlgorithmMode::anew)), three[2].name);
  EXPECT_EQ(choose(settings()), three[2].name);
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(said_, "");
}

TEST_F(MatmulTunerTest, FixedRefusesWhatIsNotInTheFile) {
  MatmulTuner tuner(settings(AlgorithmMode::fixed));
  try {
    tuner.choose(key, large, {}, three, engine_, stream_);
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    for (const char* part : {key, "ASSAY_ALGORITHMS=fixed", "Some Processor, family 6", "avx2, 2 threads"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
  EXPECT_EQ(runs_, 0);
  // What is never timed needs no file.
  EXPECT_EQ(choose(settings(AlgorithmMode::fixed), 1000), three[0].name);
}

TEST_F(MatmulTunerTest, TheFirstRunsWhereNothingIsTimed) {
  MatmulTuner::Settings off = settings();
  off.tune = false;
  EXPECT_EQ(choose(off), three[0].name);
  EXPECT_EQ(choose(settings(), MatmulTuner::fewest_multiply_adds - 1), three[0].name);
  EXPECT_EQ(origin_, "not timed");
  EXPECT_EQ(runs_, 0);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(MatmulTunerTest, TheFirstChoiceIsNeitherTimedNorKeptNorRefused) {
  constexpr auto first_choice = compute::Tuning::first_choice;
  for (const AlgorithmMode mode : {AlgorithmMode::kept, AlgorithmMode::fixed, AlgorithmMode::anew}) {
    EXPECT_EQ(choose(settings(mode), large, first_choice), three[0].name);
    EXPECT_EQ(origin_, "not timed");
    EXPECT_EQ(runs_, 0);
    EXPECT_FALSE(fs::exists(folder_));
  }
  choose(settings());
  EXPECT_EQ(choose(settings(), large, first_choice), "gemm:jit") << "the file has it";
  EXPECT_EQ(origin_, "2.000 ms, measured before");
  EXPECT_EQ(runs_, 0);
}

// Alone, these ranks would choose differently: the first finds gemm:jit, the others the third.
TEST_F(MatmulTunerTest, RanksRunWhatTheFirstOfThemHasTimedAndItsFileAloneHasIt) {
  compute::ExchangeOfThreads lists;
  MatmulTuner first(settings());
  first.share(&lists);
  EXPECT_EQ(three[first.choose(key, large, {}, three, engine_, stream_).candidate].name, "gemm:jit");

  seconds_[three[2].name] = 1e-3;
  MatmulTuner::Settings of_another = settings();
  of_another.folder = folder_ / "of another";
  {
    MatmulTuner second(of_another);
    second.share(&lists);
    runs_ = 0;
    const MatmulTuner::Choice choice = second.choose(key, large, {}, three, engine_, stream_);
    EXPECT_EQ(three[choice.candidate].name, "gemm:jit");
    EXPECT_EQ(choice.origin, "2000.0 us, measured by another rank");
    EXPECT_EQ(runs_, 0);
    second.share(nullptr);
  }
  EXPECT_FALSE(fs::exists(of_another.folder));
  first.share(nullptr);

  MatmulTuner::Settings of_another_processor = of_another;
  of_another_processor.conditions.device = "Another Processor";
  for (const auto& [which, others] : {std::pair("another processor", of_another_processor), {"alone", of_another}}) {
    MatmulTuner other(others);
    if (others.conditions.device == "Another Processor") other.share(&lists);
    EXPECT_EQ(three[other.choose(key, large, {}, three, engine_, stream_).candidate].name, three[2].name) << which;
    other.share(nullptr);
  }
}

TEST_F(MatmulTunerTest, WhatIsToldAndNotThereIsTimed) {
  compute::ExchangeOfThreads lists;
  const std::vector<MatmulCandidate> others{three[0], {"gemm:new", {}}};
  seconds_["gemm:new"] = 1e-3;
  MatmulTuner first(settings()), second(settings());
  first.share(&lists);
  EXPECT_EQ(first.choose(key, large, {}, others, engine_, stream_).candidate, 1u);
  first.share(nullptr);
  second.share(&lists);
  EXPECT_EQ(three[second.choose(key, large, {}, three, engine_, stream_).candidate].name, "gemm:jit");
  second.share(nullptr);
}

TEST_F(MatmulTunerTest, WhatWasTimedUnsteadilyIsNeitherTakenNorKept) {
  MatmulTuner::Settings unsteady = settings();
  unsteady.play = [this](const std::string&, const MatmulCandidate&) {
    ++runs_;
    return std::optional(TimedRun{1e-3, true});
  };
  EXPECT_EQ(choose(unsteady), three[0].name);
  EXPECT_NE(said_.find("unsteady"), std::string::npos) << said_;
  EXPECT_FALSE(fs::exists(folder_));
}

// The first contest is disturbed from its beginning to its end, by something that the kernel does not report.
TEST_F(MatmulTunerTest, AWinnerMustWinTwice) {
  MatmulTuner::Settings slow_at_first = settings();
  slow_at_first.play = [this](const std::string&, const MatmulCandidate& candidate) {
    const bool is_first_contest = ++runs_ <= 3 + 5 * 3;  // a run and five rounds of each
    return std::optional(TimedRun{candidate.name == three[0].name && is_first_contest ? 9e-3 : 3e-3, false});
  };
  EXPECT_EQ(choose(slow_at_first), three[0].name);
  EXPECT_FALSE(fs::exists(folder_));
}

// Six times as slow as another product of this type was: whatever was measured, it was not the product.
TEST_F(MatmulTunerTest, AnImplausiblySlowProductIsNotKept) {
  MatmulTuner tuner(settings());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(tuner.choose("one", 6 * large, {}, three, engine_, stream_).candidate, 1u);
  EXPECT_EQ(tuner.choose("two", large, {}, three, engine_, stream_).candidate, 0u);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("unsteady"), std::string::npos);
}

TEST_F(MatmulTunerTest, AnotherProcessorHasAFileOfItsOwn) {
  EXPECT_EQ(choose(settings()), "gemm:jit");
  for (auto compute::TuningConditions::*part :
       {&compute::TuningConditions::device, &compute::TuningConditions::library, &compute::TuningConditions::limits}) {
    MatmulTuner::Settings other = settings();
    other.conditions.*part += ", another";
    EXPECT_EQ(choose(other), "gemm:jit");
    EXPECT_GT(runs_, 0) << "timed anew";
  }
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 4u);
}

// A file of another machine under this one's name, and one that was cut off: a warning, and timed anew.
TEST_F(MatmulTunerTest, ADamagedOrForeignFileIsReplacedAfterAWarning) {
  choose(settings());
  std::ifstream in(file());
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  std::string foreign = good;
  foreign.replace(foreign.find("Some Processor"), 14, "Some-Processor");
  for (const std::string& text : {good.substr(0, good.size() / 2), foreign}) {
    std::ofstream(file()) << text;
    EXPECT_EQ(choose(settings()), "gemm:jit");
    EXPECT_GT(runs_, 0);
    EXPECT_NE(said_.find("warning: the cache of algorithms"), std::string::npos) << said_;
    choose(settings());
    EXPECT_EQ(runs_, 0);
    EXPECT_EQ(said_, "");
  }
}

TEST_F(MatmulTunerTest, AnImplementationThatThisOneDnnDoesNotHaveIsTimedAnew) {
  choose(settings());
  std::ifstream in(file());
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("gemm:jit"), 8, "gemm:new");
  std::ofstream(file()) << text;
  EXPECT_EQ(choose(settings()), "gemm:jit");
  EXPECT_GT(runs_, 0);
}

// The clock, and oneDNN, on this machine: whatever wins must be one of the candidates, in no more than seconds.
TEST_F(MatmulTunerTest, TimesRealProducts) {
  using dnnl::memory;
  const memory::dims extent{256, 256};
  const memory::desc square(extent, memory::data_type::f32, memory::dims{256, 1});
  MatmulDescription description{square, square, square, {}, {}};
  description.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto candidates = candidates_of(description, engine_, {{false, true}});
  MatmulTuner::Settings real = settings();
  real.play = nullptr;
  MatmulTuner tuner(real);
  const auto choice =
      tuner.choose("matmul", MatmulTuner::fewest_multiply_adds, description, candidates, engine_, stream_);
  tuner.end_preparing();
  ASSERT_LT(choice.candidate, candidates.size());
  EXPECT_TRUE(choice.candidate == 0 || choice.origin.find(" ms, best of ") != std::string::npos) << choice.origin;
}

TEST(WaitingThreads, AddsUpWhatTheKernelTells) {
  const fs::path root = fs::path(::testing::TempDir()) / ("assay_waiting_" + std::to_string(getpid()));
  for (const auto& [thread, text] : {std::pair("7", "1000 200 3"), {"8", "5 30 1"}, {"9", "not told"}}) {
    fs::create_directories(root / "proc/self/task" / thread);
    std::ofstream(root / "proc/self/task" / thread / "schedstat") << text;
  }
  EXPECT_EQ(waited_for_processor_ns(root.string()), 230u);
  fs::remove_all(root);
  EXPECT_EQ(waited_for_processor_ns(root.string()), 0u);
}

TEST(MatmulTunerHere, KnowsTheProcessorAndTheEnvironment) {
  const MatmulTuner::Settings here = MatmulTuner::settings_here();
  EXPECT_EQ(here.conditions.device, read_processor());
  EXPECT_EQ(here.conditions.library.rfind("oneDNN ", 0), 0u);
  EXPECT_NE(here.conditions.limits.find(" thread"), std::string::npos);
  EXPECT_FALSE(here.tune);
  setenv("ASSAY_MATMUL_TUNE", "1", 1);
  EXPECT_TRUE(MatmulTuner::settings_here().tune);
  setenv("ASSAY_MATMUL_TUNE", "0", 1);
  EXPECT_FALSE(MatmulTuner::settings_here().tune);
  unsetenv("ASSAY_MATMUL_TUNE");
}

}  // namespace
}  // namespace assay::cpu
