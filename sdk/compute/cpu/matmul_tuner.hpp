// Chooses how oneDNN carries a product out: times its candidates on separate memory and keeps the result in a file for
// later processes (common/algorithm_cache.hpp).
//
// Bounded: small products are not timed, one takes about half a second (more only if its least number of rounds does),
// and all of a process half a minute. Whatever is left out runs the first candidate. So does a product with unsteady
// times; that choice is not kept, and the next process tries again.
//
// Ranks of a case run what one of them has chosen (common/shared_algorithms.hpp), if they prepare the same products on
// equal processors; else they may choose differently, as two processes may. Nothing depends on it: what ranks must
// share to the bit (weights, averaged gradients) is computed from exchanged data, by sums of a fixed order, and each
// rank's own products enter it once.
#pragma once
#include <assay/compute/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/algorithm_cache.hpp"
#include "common/shared_algorithms.hpp"
#include "mapped_pages.hpp"
#include "matmul_candidates.hpp"
#include "timed_choice.hpp"

namespace assay::cpu {

class MatmulTuner {
 public:
  struct Settings {
    bool tune = true;
    compute::AlgorithmMode mode = compute::AlgorithmMode::kept;
    std::filesystem::path folder;  // of the file; empty: none
    compute::TuningConditions conditions;
    // What a run of a candidate takes, instead of running it: for tests. Empty: it runs, and is timed.
    std::function<std::optional<TimedRun>(const std::string& key, const MatmulCandidate& candidate)> play;
  };
  // Below this a product takes some tens of microseconds, and what runs beside it decides. It also keeps what small
  // models run, and tests, the same in every process.
  static constexpr std::int64_t fewest_multiply_adds = std::int64_t{1} << 24;

  // What the environment asks for (ASSAY_MATMUL_TUNE, ASSAY_ALGORITHMS, ASSAY_CACHE_DIR), on this machine.
  static Settings settings_here();

  explicit MatmulTuner(Settings settings)
      : settings_(std::move(settings)), shared_([this] { return compute::text_of(settings_.conditions); }) {}
  MatmulTuner(const MatmulTuner&) = delete;
  MatmulTuner& operator=(const MatmulTuner&) = delete;

  void share(compute::AlgorithmExchange* with) { shared_.share(with); }  // Backend::share_tuning

  struct Choice {
    std::size_t candidate = 0;
    std::string origin;         // "1.234 ms, best of 5"
    double microseconds = 0.0;  // 0: not timed
  };
  // `candidates` has at least one, and first what is run where nothing is timed. `key` names the product with its
  // layout. Throws UNSUPPORTED with ASSAY_ALGORITHMS=fixed where the file does not have it. `multiply_adds` decides
  // whether it is worth it. With Tuning::first_choice what the file has is taken, and else the first, untimed.
  Choice choose(const std::string& key, std::int64_t multiply_adds, const MatmulDescription& description,
                const std::vector<MatmulCandidate>& candidates, const dnnl::engine& engine, const dnnl::stream& stream,
                compute::Tuning tuning = compute::Tuning::measured);
  void end_preparing();  // frees the memory for timing, and writes what was found

 private:
  Choice choose_alone(const std::string& key, std::int64_t multiply_adds, const MatmulDescription& description,
                      const std::vector<MatmulCandidate>& candidates, const dnnl::engine& engine,
                      const dnnl::stream& stream, compute::Tuning tuning);
  // Two contests: the second is between the first's winner and what runs where nothing is timed. Unsteady where they
  // differ.
  TimedChoice choose_twice(std::size_t count, const std::function<std::optional<TimedRun>(std::size_t)>& time,
                           const ChoiceLimits& limits);
  TimedChoice measure(const std::string& key, const MatmulDescription& description,
                      const std::vector<MatmulCandidate>& candidates, const dnnl::engine& engine,
                      const dnnl::stream& stream);
  void say_once(const char* why);

  Settings settings_;
  compute::SharedAlgorithms shared_;
  std::optional<compute::AlgorithmCache> cache_;  // from the first choice on
  MappedPages inputs_, outputs_;
  double spent_seconds_ = 0.0;
  std::map<dnnl::memory::data_type, double> best_rate_;  // multiply-adds a second, by the operands' type
  bool has_said_ = false;
};

}  // namespace assay::cpu
