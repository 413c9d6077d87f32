// Finds the fastest of cuBLASLt's algorithms for a matrix product by running them on separate memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda_handles.hpp"
#include "lt_problem.hpp"
#include "memory_account.hpp"

namespace assay::cuda {

struct MeasuredAlgorithm {
  LtAlgorithm algorithm;
  double microseconds = 0.0;
  std::size_t candidates = 0;    // that were measured
  std::vector<double> times_us;  // of the rounds that decided; one alone where there was no rival
};

class MatmulTuner {
 public:
  explicit MatmulTuner(int ordinal);

  // The fastest candidate; none when memory is short (said once on stderr) or no candidate runs. Takes at most about
  // 60 ms of the device's time for products under 175 us, and some 400 times its own time for a longer one.
  std::optional<MeasuredAlgorithm> choose(cublasLtHandle_t handle, const LtProblem& problem, const MatmulKey& key,
                                          const std::vector<LtAlgorithm>& candidates);
  // Runs the algorithm once, so that its kernel is loaded before a step needs it. False when it does not run; true
  // without a try when memory is short.
  bool warm_up(cublasLtHandle_t handle, const LtProblem& problem, const MatmulKey& key, const LtAlgorithm& algorithm);
  void release();  // the memory

 private:
  // b and c in several copies that take turns, so that they come from memory and not from cache, as weights and stored
  // activations do in a step; a stays warm, as what the operation before has just written does.
  struct Buffers {
    char *flush = nullptr, *workspace = nullptr, *bias = nullptr, *scales = nullptr, *a = nullptr, *b = nullptr,
         *c = nullptr;
    std::size_t flush_bytes = 0, b_step = 0, c_step = 0, copies = 1;
  };
  struct Contest;
  std::optional<Buffers> place(const MatmulKey& key, std::size_t workspace_bytes, std::size_t copies,
                               std::size_t flush_bytes);
  void fill(const MatmulKey& key, char* from, std::size_t bytes);
  bool reserve(std::size_t bytes);
  void say_memory_is_short();

  Stream stream_;
  Event begin_, end_;
  DeviceMemory pool_;
  AccountedBytes accounted_;
  std::size_t pool_bytes_ = 0;
  std::size_t l2_bytes_ = 0;
  bool said_ = false;
};

}  // namespace assay::cuda
