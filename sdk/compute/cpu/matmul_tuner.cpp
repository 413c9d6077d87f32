#include "matmul_tuner.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cache_flush.hpp"
#include "host_memory.hpp"
#include "waiting_threads.hpp"

namespace assay::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double process_seconds = 30.0, product_seconds_most = 10.0;
constexpr double long_run_seconds = 0.1;  // which a neighbour disturbs by a share, not by a multiple
constexpr double sample_seconds = 2e-4;
constexpr int sample_runs_most = 8;
constexpr double implausible = 3.0;  // times slower than the best product of this process: something else was measured
constexpr double most_waiting = 0.02;  // of a run
constexpr const char* not_timed = "not timed";
constexpr std::size_t cache_bytes_most = std::size_t{64} << 20;
constexpr std::size_t copies_most = 8;
constexpr std::uint64_t share_of_free_memory = 4;

std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Words that are numbers between 2^-7 and 2 of either sign, read as fp32 and as two of bf16.
void fill(MappedPages& pages) {
  const auto words = static_cast<std::int64_t>(pages.size() / sizeof(std::uint32_t));
  char* const first = pages.data();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < words; ++i) {
    std::uint64_t hash = (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9u;
    const std::uint32_t word = (static_cast<std::uint32_t>(hash >> 32) & 0x83ff83ffu) | 0x3c003c00u;
    std::memcpy(first + i * static_cast<std::int64_t>(sizeof word), &word, sizeof word);
  }
}

dnnl::memory::data_type type_of(const dnnl::memory::desc& d) {
#if DNNL_VERSION_MAJOR < 3
  return d.data_type();
#else
  return d.get_data_type();
#endif
}

// b and c in several copies that take turns, so that they come from memory and not from cache, as weights and stored
// activations do in a step; a stays warm, as what the operation before has just written does.
struct Operands {
  std::size_t a_bytes = 0, b_bytes = 0, c_bytes = 0, bias_bytes = 0, copies = 1;

  explicit Operands(const MatmulDescription& d)
      : a_bytes(whole_pages(d.a.get_size())),
        b_bytes(whole_pages(d.b.get_size())),
        c_bytes(whole_pages(d.c.get_size())),
        bias_bytes(whole_pages(d.bias.get_size())) {
    const std::size_t cache = std::min(last_level_cache_bytes(), cache_bytes_most);
    copies = std::clamp<std::size_t>(cache / (b_bytes + c_bytes) + 1, 2, copies_most);
  }
  std::size_t input_bytes() const { return a_bytes + bias_bytes + copies * b_bytes; }
  std::size_t output_bytes() const { return copies * c_bytes; }
};

// Times candidates of one product, each made when its turn first comes.
class Stopwatch {
 public:
  Stopwatch(const MatmulDescription& description, const std::vector<MatmulCandidate>& candidates,
            const Operands& operands, MappedPages& inputs, MappedPages& outputs, const dnnl::engine& engine,
            const dnnl::stream& stream)
      : description_(description),
        candidates_(candidates),
        operands_(operands),
        inputs_(inputs),
        outputs_(outputs),
        engine_(engine),
        stream_(stream),
        made_(candidates.size()) {}

  std::optional<TimedRun> time(std::size_t candidate) {
    try {
      if (!made_[candidate]) made_[candidate].emplace(description_, candidates_[candidate], engine_);
      RunnableMatmul& matmul = *made_[candidate];
      if (matmul.scratch_bytes() > scratch_.size()) {
        scratch_ = MappedPages(matmul.scratch_bytes());
        if (scratch_.size() == 0) return std::nullopt;
        touch_pages(scratch_.data(), scratch_.size());
      }
      const std::uint64_t waited_before_ns = waited_for_processor_ns();
      const auto begin = Clock::now();
      for (int i = 0; i < runs_; ++i) run(matmul);
      const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count(), seconds = elapsed / runs_;
      const auto waited = static_cast<double>(waited_for_processor_ns() - waited_before_ns) * 1e-9;
      if (seconds < sample_seconds) runs_ = std::min(sample_runs_most, static_cast<int>(sample_seconds / seconds) + 1);
      return TimedRun{seconds, waited > most_waiting * elapsed};
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

 private:
  void run(RunnableMatmul& matmul) {
    char* const a = inputs_.data();
    char* const bias = a + operands_.a_bytes;
    const std::size_t copy = turn_++ % operands_.copies;
    matmul.run(stream_, a, bias + operands_.bias_bytes + copy * operands_.b_bytes,
               outputs_.data() + copy * operands_.c_bytes, description_.bias.is_zero() ? nullptr : bias,
               scratch_.data());
  }

  const MatmulDescription& description_;
  const std::vector<MatmulCandidate>& candidates_;
  const Operands& operands_;
  MappedPages &inputs_, &outputs_;
  const dnnl::engine& engine_;
  const dnnl::stream& stream_;
  std::vector<std::optional<RunnableMatmul>> made_;
  MappedPages scratch_;
  std::size_t turn_ = 0;
  int runs_ = 1;
};

// The instruction set that oneDNN generates code for; its number where this does not know its name.
std::string instructions() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "sse41";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    default: return fmt::format("instructions {:#x}", static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
  }
}

}  // namespace

MatmulTuner::Settings MatmulTuner::settings_here() {
  Settings settings;
  const char* const wanted = std::getenv("ASSAY_MATMUL_TUNE");
  settings.mode = compute::algorithm_mode();
  // Unless it is asked for, the rule decides: on a busy server timing has taken kernels that were no faster, and some
  // that took six times as long.
  settings.tune = wanted && std::string_view(wanted) != "0";
  settings.folder = compute::AlgorithmCache::default_folder();
  const dnnl_version_t* const v = dnnl_version();
  const int threads = omp_get_max_threads();
  settings.conditions = {read_processor(), fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch), "none",
                         fmt::format("{}, {} thread{}", instructions(), threads, threads == 1 ? "" : "s")};
  return settings;
}

void MatmulTuner::say_once(const char* why) {
  if (has_said_) return;
  has_said_ = true;
  std::fprintf(stderr, "assay: note: not every matrix product runs what was timed to be the fastest: %s\n", why);
}

MatmulTuner::Choice MatmulTuner::choose(const std::string& key, std::int64_t multiply_adds,
                                        const MatmulDescription& description,
                                        const std::vector<MatmulCandidate>& candidates, const dnnl::engine& engine,
                                        const dnnl::stream& stream, compute::Tuning tuning) {
  if (!settings_.tune || candidates.size() < 2 || multiply_adds < fewest_multiply_adds) return {0, not_timed};
  if (tuning == compute::Tuning::measured)
    if (const auto known = shared_.find(key))
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (candidates[i].name == known->algorithm) return {i, compute::origin_of_told(*known), known->microseconds};
  Choice choice = choose_alone(key, multiply_adds, description, candidates, engine, stream, tuning);
  if (tuning == compute::Tuning::measured) shared_.tell(key, {candidates[choice.candidate].name, choice.microseconds});
  return choice;
}

MatmulTuner::Choice MatmulTuner::choose_alone(const std::string& key, std::int64_t multiply_adds,
                                              const MatmulDescription& description,
                                              const std::vector<MatmulCandidate>& candidates,
                                              const dnnl::engine& engine, const dnnl::stream& stream,
                                              compute::Tuning tuning) {
  if (!cache_) cache_.emplace(settings_.folder, "matmul", settings_.conditions, settings_.mode);
  if (const auto kept = cache_->find(key)) {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == kept->algorithm)
        return {i, fmt::format("{:.3f} ms, measured before", kept->microseconds * 1e-3), kept->microseconds};
    cache_->forget(key);  // nothing of this oneDNN
  }
  if (tuning == compute::Tuning::first_choice) return {0, not_timed};
  cache_->refuse_to_choose(key);
  if (spent_seconds_ > process_seconds) {
    say_once("timing the others has taken long enough; what was found is kept, and the next run goes on");
    return {0, not_timed};
  }
  TimedChoice found = measure(key, description, candidates, engine, stream);
  spent_seconds_ += found.spent_seconds;
  if (found.is_steady) {
    const double rate = static_cast<double>(multiply_adds) / found.seconds;
    double& best = best_rate_[type_of(description.a)];
    best = std::max(best, rate);
    if (rate * implausible < best) found.is_steady = false;
  }
  if (!found.is_steady) {
    if (found.measured > 0) say_once("the processor was busy with something else, and their times were unsteady");
    return {0, "its times were unsteady"};
  }
  cache_->store(key, {candidates[found.candidate].name, found.seconds * 1e6});
  return {found.candidate, fmt::format("{:.3f} ms, best of {}", found.seconds * 1e3, found.measured),
          found.seconds * 1e6};
}

TimedChoice MatmulTuner::choose_twice(std::size_t count,
                                      const std::function<std::optional<TimedRun>(std::size_t)>& time,
                                      const ChoiceLimits& limits) {
  TimedChoice first = choose_by_time(count, time, limits);
  if (!first.is_steady || first.candidate == 0) return first;
  TimedChoice second = choose_by_time(
      2, [&](std::size_t i) { return time(i == 0 ? 0 : first.candidate); }, limits);
  if (second.candidate == 1) second.candidate = first.candidate;
  first.is_steady = agree(first, second, limits);
  first.spent_seconds += second.spent_seconds;
  return first;
}

TimedChoice MatmulTuner::measure(const std::string& key, const MatmulDescription& description,
                                 const std::vector<MatmulCandidate>& candidates, const dnnl::engine& engine,
                                 const dnnl::stream& stream) {
  if (settings_.play)
    return choose_twice(candidates.size(), [&](std::size_t i) { return settings_.play(key, candidates[i]); }, {});
  const Operands operands(description);
  const std::size_t wanted = operands.input_bytes() + operands.output_bytes();
  if (wanted > read_host_memory().free_bytes / share_of_free_memory) {
    say_once("too little memory is free to time them");
    return {};
  }
  if (operands.input_bytes() > inputs_.size()) {
    inputs_ = MappedPages(operands.input_bytes());
    if (inputs_.size() == 0) return {};
    fill(inputs_);
  }
  if (operands.output_bytes() > outputs_.size()) {
    outputs_ = MappedPages(operands.output_bytes());
    if (outputs_.size() == 0) return {};
    touch_pages(outputs_.data(), outputs_.size());
  }
  Stopwatch watch(description, candidates, operands, inputs_, outputs_, engine, stream);
  const std::optional<TimedRun> once = watch.time(0);
  if (!once) return {};
  ChoiceLimits limits;
  if (once->seconds > long_run_seconds) limits.rounds_least = 3;
  if (once->seconds * (limits.rounds_least + 1) * static_cast<double>(candidates.size()) > product_seconds_most) {
    say_once("one run of the largest takes too long to time several ways");
    return {};
  }
  return choose_twice(
      candidates.size(), [&](std::size_t i) { return watch.time(i); }, limits);
}

void MatmulTuner::end_preparing() {
  inputs_ = MappedPages();
  outputs_ = MappedPages();
  if (cache_) cache_->save();
}

}  // namespace assay::cpu
