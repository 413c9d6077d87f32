#include "matmul_tuner.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

namespace assay::cuda {
namespace {

constexpr std::size_t buffer_alignment = 256;
constexpr std::size_t flush_bytes_wanted = std::size_t{64} << 20;
constexpr std::size_t memory_left_free_bytes = std::size_t{256} << 20;
constexpr std::size_t pattern_bytes = std::size_t{1} << 20;

constexpr double first_round_us = 35e3, final_rounds_us = 25e3;  // of the device's time
constexpr double first_round_runs = 200;                         // of the best candidate, where that is longer
constexpr double batch_us = 100.0;
constexpr std::size_t least_candidates = 4, finalists_most = 4;
constexpr int batch_runs_most = 8, rounds_least = 3, rounds_most = 5;
constexpr double finalist_margin = 1.15;
constexpr std::chrono::seconds host_time_limit{1};  // loading kernels counts here
constexpr double never = std::numeric_limits<double>::infinity();

// Numbers between 2^-7 and 2 of either sign: the power that a product draws, and so its clock, depends on its data.
std::vector<std::uint32_t> random_pattern(compute::DType dtype) {
  std::vector<std::uint32_t> words(pattern_bytes / sizeof(std::uint32_t));
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  for (std::uint32_t& word : words) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const auto random = static_cast<std::uint32_t>(state >> 32);
    // Sign and mantissa as they come; of the exponent the three lowest bits, below a fixed "just under 1".
    switch (dtype) {
      case compute::DType::bf16: word = (random & 0x83ff83ffu) | 0x3c003c00u; break;
      case compute::DType::f8_e4m3: word = (random & 0x9f9f9f9fu) | 0x20202020u; break;
      case compute::DType::f16: word = (random & 0x9fff9fffu) | 0x20002000u; break;
      default: word = (random & 0x83ffffffu) | 0x3c000000u; break;
    }
  }
  return words;
}

std::size_t bytes_of(std::int64_t elements, compute::DType dtype) {
  return static_cast<std::size_t>(elements) * compute::size_of(dtype);
}

std::size_t aligned(std::size_t bytes) { return round_up(bytes + buffer_alignment, buffer_alignment); }

// Addresses no better aligned than the real ones.
std::size_t shift_of(std::int32_t alignment) {
  return alignment < static_cast<std::int32_t>(buffer_alignment) ? static_cast<std::size_t>(alignment) : 0;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MatmulTuner::MatmulTuner(int ordinal)
    : stream_(make_stream(priority_of_side_work)),
      begin_(make_event(cudaEventDefault)),
      end_(make_event(cudaEventDefault)) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, ordinal), "read the size of the cache");
  l2_bytes_ = static_cast<std::size_t>(bytes);
}

void MatmulTuner::release() {
  pool_.reset();
  accounted_ = AccountedBytes();
  pool_bytes_ = 0;
}

bool MatmulTuner::reserve(std::size_t bytes) {
  if (bytes <= pool_bytes_) return true;
  release();
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "read the free memory");
  if (bytes + memory_left_free_bytes > free_bytes) return false;
  void* address = nullptr;
  if (cudaMalloc(&address, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  pool_.reset(address);
  accounted_ = AccountedBytes(bytes, "timing of matrix products");
  pool_bytes_ = bytes;
  return true;
}

void MatmulTuner::say_memory_is_short() {
  if (said_) return;
  said_ = true;
  std::fprintf(stderr,
               "assay: note: too little free memory on the GPU to time the algorithms of every matrix product; taking "
               "cuBLASLt's first choice for those that do not fit\n");
}

std::optional<MatmulTuner::Buffers> MatmulTuner::place(const MatmulKey& key, std::size_t workspace_bytes,
                                                       std::size_t copies, std::size_t flush_bytes) {
  const std::size_t a_bytes = aligned(bytes_of(span_of_a(key), key.input));
  Buffers at;
  at.copies = copies;
  at.flush_bytes = flush_bytes;
  at.b_step = aligned(bytes_of(span_of_b(key), key.input));
  at.c_step = aligned(bytes_of(span_of_c(key), key.output));
  const std::size_t bias_bytes = has_bias(key) ? aligned(bytes_of(key.n, key.bias)) : 0;
  // One vector serves for both: its numbers change no time.
  const std::size_t scale_bytes = key.scaled ? aligned(bytes_of(std::max(key.m, key.n), compute::DType::f32)) : 0;
  const std::size_t head = flush_bytes + aligned(workspace_bytes) + bias_bytes + scale_bytes;
  if (!reserve(head + a_bytes + copies * (at.b_step + at.c_step))) return std::nullopt;
  char* const pool = static_cast<char*>(pool_.get());
  at.flush = pool;
  at.workspace = pool + flush_bytes;
  at.scales = pool + head - bias_bytes - scale_bytes;
  at.bias = pool + head - bias_bytes + shift_of(key.bias_alignment);
  at.a = pool + head + shift_of(key.a_alignment);
  at.b = pool + head + a_bytes + shift_of(key.b_alignment);
  at.c = pool + head + a_bytes + copies * at.b_step + shift_of(key.c_alignment);
  return at;
}

// The pattern once from the host, then doubled in place until it covers all.
void MatmulTuner::fill(const MatmulKey& key, char* from, std::size_t bytes) {
  const std::vector<std::uint32_t> pattern = random_pattern(key.input);
  std::size_t filled = std::min(bytes, pattern_bytes);
  check(cudaMemcpyAsync(from, pattern.data(), filled, cudaMemcpyHostToDevice, stream_.get()), "fill buffers");
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    check(cudaMemcpyAsync(from + filled, from, more, cudaMemcpyDeviceToDevice, stream_.get()), "fill buffers");
    filled += more;
  }
  check(cudaStreamSynchronize(stream_.get()), "fill buffers");
}

// One choice: what it runs on, and the time it has taken.
struct MatmulTuner::Contest {
  MatmulTuner& tuner;
  cublasLtHandle_t handle;
  const LtProblem& problem;
  Buffers buffers;
  std::size_t turn = 0;
  double spent_us = 0.0;

  bool run(const LtAlgorithm& algorithm) {
    const std::size_t copy = turn++ % buffers.copies;
    const auto* const scales = reinterpret_cast<const float*>(buffers.scales);
    const LtOperands at{.a = buffers.a,
                        .b = buffers.b + copy * buffers.b_step,
                        .c = buffers.c + copy * buffers.c_step,
                        .bias = buffers.bias,
                        .residual = buffers.c + (copy + 1) % buffers.copies * buffers.c_step,
                        .a_scale = scales,
                        .b_scale = scales};
    return problem.run(handle, algorithm, 1.0F, at, buffers.workspace, tuner.stream_.get()) == CUBLAS_STATUS_SUCCESS;
  }

  // Microseconds a run; `never` when the algorithm refuses.
  double time(const LtAlgorithm& algorithm, int runs) {
    const cudaStream_t stream = tuner.stream_.get();
    // Empties the cache, and keeps the device busy while the host enqueues the runs: without gaps between them.
    if (buffers.flush_bytes) check(cudaMemsetAsync(buffers.flush, 0, buffers.flush_bytes, stream), "flush the cache");
    check(cudaEventRecord(tuner.begin_.get(), stream), "time an algorithm");
    bool ran = true;
    for (int i = 0; i < runs && ran; ++i) ran = run(algorithm);
    check(cudaEventRecord(tuner.end_.get(), stream), "time an algorithm");
    check(cudaEventSynchronize(tuner.end_.get()), "time an algorithm");
    if (!ran) return never;
    float elapsed_ms = 0.0F;
    check(cudaEventElapsedTime(&elapsed_ms, tuner.begin_.get(), tuner.end_.get()), "time an algorithm");
    spent_us += static_cast<double>(elapsed_ms) * 1e3;
    return static_cast<double>(elapsed_ms) * 1e3 / runs;
  }
};

std::optional<MeasuredAlgorithm> MatmulTuner::choose(cublasLtHandle_t handle, const LtProblem& problem,
                                                     const MatmulKey& key, const std::vector<LtAlgorithm>& candidates) {
  std::size_t workspace_bytes = 0;
  for (const LtAlgorithm& c : candidates) workspace_bytes = std::max(workspace_bytes, c.workspace_bytes);
  const std::size_t turning = bytes_of(span_of_b(key), key.input) + bytes_of(span_of_c(key), key.output);
  const std::size_t copies = std::clamp<std::size_t>(2 * l2_bytes_ / std::max<std::size_t>(turning, 1) + 1, 2, 8);
  std::optional<Buffers> buffers = place(key, workspace_bytes, copies, flush_bytes_wanted);
  if (!buffers) buffers = place(key, workspace_bytes, 1, 0);
  if (!buffers) {
    say_memory_is_short();
    return std::nullopt;
  }
  check(cudaDeviceSynchronize(), "wait for the device to be idle");
  char* const operands = buffers->workspace + aligned(workspace_bytes);
  fill(key, operands,
       static_cast<std::size_t>(buffers->c - operands) + buffers->copies * buffers->c_step - shift_of(key.c_alignment));

  // Every candidate once, best guess first, as far as the time goes.
  struct Entry {
    const LtAlgorithm* algorithm;
    std::vector<double> times_us;
  };
  Contest contest{*this, handle, problem, *buffers};
  std::vector<Entry> entries;
  double best_us = never;
  int runs = 2;
  const auto give_up_at = std::chrono::steady_clock::now() + host_time_limit;
  for (const LtAlgorithm& candidate : candidates) {
    if (entries.size() >= least_candidates &&
        (contest.spent_us > std::max(first_round_us, first_round_runs * best_us) ||
         std::chrono::steady_clock::now() > give_up_at))
      break;
    if (!contest.run(candidate)) continue;  // loads the kernel
    const double time_us = contest.time(candidate, runs);
    if (time_us == never) continue;
    contest.spent_us += time_us;  // the run before
    entries.push_back({&candidate, {time_us}});
    best_us = std::min(best_us, time_us);
    runs = std::clamp(static_cast<int>(batch_us / std::max(best_us, 1.0)), 1, batch_runs_most);
  }
  (void)cudaGetLastError();  // of a candidate that refused
  if (entries.empty()) return std::nullopt;
  const std::size_t measured = entries.size();

  // The best of them in turns, so that a change of the clock meets all alike.
  const auto by_time = [](const Entry& x, const Entry& y) { return median(x.times_us) < median(y.times_us); };
  std::stable_sort(entries.begin(), entries.end(), by_time);
  const auto slower = std::find_if(entries.begin(), entries.end(),
                                   [&](const Entry& e) { return e.times_us[0] > best_us * finalist_margin; });
  entries.erase(slower, entries.end());
  if (entries.size() > finalists_most) entries.erase(entries.begin() + finalists_most, entries.end());
  if (entries.size() > 1) {
    const double round_us = best_us * runs * static_cast<double>(entries.size());
    const int rounds = std::clamp(static_cast<int>(final_rounds_us / round_us), rounds_least, rounds_most);
    for (int round = 0; round < rounds; ++round)
      for (Entry& e : entries) e.times_us.push_back(contest.time(*e.algorithm, runs));
    std::stable_sort(entries.begin(), entries.end(), by_time);
  }
  std::vector<double> deciding = entries[0].times_us;
  if (deciding.size() > 1) deciding.erase(deciding.begin());  // of the first round, with another number of runs
  return MeasuredAlgorithm{*entries[0].algorithm, median(entries[0].times_us), measured, std::move(deciding)};
}

bool MatmulTuner::warm_up(cublasLtHandle_t handle, const LtProblem& problem, const MatmulKey& key,
                          const LtAlgorithm& algorithm) {
  const std::optional<Buffers> buffers = place(key, algorithm.workspace_bytes, 1, 0);
  if (!buffers) return true;
  check(cudaMemsetAsync(pool_.get(), 0, pool_bytes_, stream_.get()), "clear buffers");  // nothing undefined is read
  Contest contest{*this, handle, problem, *buffers};
  const bool ran = contest.run(algorithm);
  check(cudaStreamSynchronize(stream_.get()), "try an algorithm of a matrix product");
  if (!ran) (void)cudaGetLastError();
  return ran;
}

}  // namespace assay::cuda
