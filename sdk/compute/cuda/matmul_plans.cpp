#include "matmul_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "common/algorithm_cache.hpp"
#include "common/checks.hpp"
#include "common/chosen_algorithms.hpp"
#include "gpu_use.hpp"
#include "lt_problem.hpp"
#include "matmul_tuner.hpp"

namespace assay::cuda {
namespace {

// To be raised with every change of what follows, or of LtProblem::candidates and with_other_tiles: 1 had no other
// tiles.
constexpr int candidates_version = 2;
constexpr int candidates_most = 32;
// Of products that take this many operations the heuristics' first choices are tried with other tiles, too: they are
// worth the time.
constexpr double operations_for_other_tiles = 1e11;
constexpr std::size_t choices_with_other_tiles = 4;
constexpr int other_tiles_most = 12;
// What was measured is written at once when to lose it would cost more than this, and at the end otherwise.
constexpr std::chrono::milliseconds worth_saving{500};

bool tuning_wanted() {
  const char* const wanted = std::getenv("ASSAY_MATMUL_TUNE");
  return !wanted || std::string_view(wanted) != "0";
}

LtHandle make_handle() {
  cublasLtHandle_t handle = nullptr;
  check_lt(cublasLtCreate(&handle), "open cuBLASLt");
  return LtHandle(handle);
}

using AlgorithmBytes = std::array<std::byte, 64>;
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(AlgorithmBytes));

}  // namespace

struct MatmulPlans::Plan {
  explicit Plan(const MatmulKey& key) : problem(key), operation(describe(key)) {}

  LtProblem problem;
  LtAlgorithm algorithm;
  std::string operation, origin;  // "12.3 us, best of 16"
  double microseconds = 0.0;      // 0: not timed
  compute::Tuning tuning = compute::Tuning::measured;
};

struct MatmulPlans::Impl {
  // What the first preparation opens.
  struct Tools {
    LtHandle handle = make_handle();
    int multiprocessors = 0;
    MatmulTuner tuner;
    GpuUse gpu;
    compute::AlgorithmCache cache;

    explicit Tools(int ordinal)
        : tuner(ordinal),
          gpu(ordinal),
          cache(compute::AlgorithmCache::default_folder(), "matmul", gpu.conditions(library()),
                compute::algorithm_mode()) {
      check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ordinal),
            "count the multiprocessors");
    }
  };

  int ordinal;
  compute::SharedAlgorithms& shared;
  bool tune = tuning_wanted();
  compute::Tuning tuning = compute::Tuning::measured;
  std::optional<Tools> tools;
  std::unordered_map<MatmulKey, std::unique_ptr<Plan>, HashMatmulKey> plans;
  std::vector<const Plan*> in_order;  // of preparation
  std::chrono::steady_clock::duration unsaved{};

  Impl(int on, compute::SharedAlgorithms& with) : ordinal(on), shared(with) {}

  // An algorithm that was chosen elsewhere, once it has run here.
  bool take(Plan& plan, const MatmulKey& key, const compute::CachedAlgorithm& known) {
    const std::optional<AlgorithmBytes> bytes = compute::from_hex(known.algorithm);
    if (!bytes) return false;
    LtAlgorithm algorithm;
    std::memcpy(&algorithm.algorithm, bytes->data(), bytes->size());
    if (!plan.problem.accepts(tools->handle.get(), algorithm) ||
        !tools->tuner.warm_up(tools->handle.get(), plan.problem, key, algorithm))
      return false;
    plan.algorithm = algorithm;
    plan.microseconds = known.microseconds;
    return true;
  }

  bool take_told(Plan& plan, const MatmulKey& key) {
    const std::optional<compute::CachedAlgorithm> choice = shared.find(plan.operation);
    if (!choice || !take(plan, key, *choice)) return false;
    plan.origin = compute::origin_of_told(*choice);
    return true;
  }

  bool take_cached(Plan& plan, const MatmulKey& key) {
    const std::optional<compute::CachedAlgorithm> cached = tools->cache.find(plan.operation);
    if (!cached) return false;
    if (!take(plan, key, *cached)) {
      tools->cache.forget(plan.operation);
      return false;
    }
    plan.origin = fmt::format("{:.1f} us, measured before", cached->microseconds);
    return true;
  }

  bool take_measured(Plan& plan, const MatmulKey& key, const std::vector<LtAlgorithm>& candidates) {
    const auto began = std::chrono::steady_clock::now();
    const auto chosen = tools->tuner.choose(tools->handle.get(), plan.problem, key, candidates);
    unsaved += std::chrono::steady_clock::now() - began;
    if (!chosen) return false;
    plan.algorithm = chosen->algorithm;
    plan.microseconds = chosen->microseconds;
    plan.origin = fmt::format("{:.1f} us, best of {}", chosen->microseconds, chosen->candidates);
    if (tools->gpu.may_keep(chosen->times_us)) tools->cache.store(plan.operation, chosen_by(plan));
    return true;
  }

  static compute::CachedAlgorithm chosen_by(const Plan& plan) {
    AlgorithmBytes bytes;
    std::memcpy(bytes.data(), &plan.algorithm.algorithm, bytes.size());
    return {compute::to_hex(bytes), plan.microseconds};
  }

  void add_other_tiles(std::vector<LtAlgorithm>& candidates, const LtProblem& problem, const MatmulKey& key) const {
    const double operations =
        2.0 * static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k) * key.batch;
    if (operations < operations_for_other_tiles) return;
    const int multiprocessors =
        key.multiprocessors > 0 ? static_cast<int>(key.multiprocessors) : tools->multiprocessors;
    const std::vector<LtAlgorithm> first(
        candidates.begin(),
        candidates.begin() + static_cast<std::ptrdiff_t>(std::min(candidates.size(), choices_with_other_tiles)));
    for (const LtAlgorithm& like : first)
      for (const LtAlgorithm& other :
           problem.with_other_tiles(tools->handle.get(), like, multiprocessors, other_tiles_most))
        candidates.push_back(other);
  }

  std::unique_ptr<Plan> make(const MatmulKey& key) {
    if (!tools) tools.emplace(ordinal);
    auto plan = std::make_unique<Plan>(key);
    plan->tuning = tuning;
    const bool measure = tune && tuning == compute::Tuning::measured;
    if (measure && take_told(*plan, key)) return plan;
    choose(*plan, key, measure);
    if (measure) shared.tell(plan->operation, chosen_by(*plan));
    return plan;
  }

  void choose(Plan& plan, const MatmulKey& key, bool measure) {
    if (tune && take_cached(plan, key)) return;
    if (measure) tools->cache.refuse_to_choose(plan.operation);
    std::vector<LtAlgorithm> candidates = plan.problem.candidates(tools->handle.get(), candidates_most);
    if (measure) add_other_tiles(candidates, plan.problem, key);
    if (measure && !candidates.empty() && take_measured(plan, key, candidates)) return;
    for (const LtAlgorithm& candidate : candidates) {
      if (!tools->tuner.warm_up(tools->handle.get(), plan.problem, key, candidate)) continue;
      plan.algorithm = candidate;
      plan.origin = "cuBLASLt's first choice, not measured";
      return;
    }
    if (has_bias(key) && key.bias != key.output)
      compute::reject(
          plan.operation.c_str(),
          fmt::format("cuBLASLt has no algorithm that adds a bias of {} to a result of {}; expected a bias of "
                      "the result's type",
                      name_of(key.bias), name_of(key.output)));
    if (key.scaled)
      compute::reject(plan.operation.c_str(),
                      "cuBLASLt has no algorithm for numbers of 8 bits of this shape on this GPU; expected compute "
                      "capability 9.0, which alone has them with a scale for each row: use bf16");
    compute::reject(plan.operation.c_str(),
                    "cuBLASLt has no algorithm for this shape, type and alignment; expected one: use another "
                    "precision, or rows that begin at multiples of 16 bytes");
  }
};

MatmulPlans::MatmulPlans(int ordinal, compute::SharedAlgorithms& shared)
    : impl_(std::make_unique<Impl>(ordinal, shared)) {}
MatmulPlans::~MatmulPlans() = default;

std::string MatmulPlans::library() {
  const std::size_t version = cublasLtGetVersion();
  return fmt::format("cublasLt {}.{}.{}, candidates {}", version / 10000, version / 100 % 100, version % 100,
                     candidates_version);
}

void MatmulPlans::set_tuning(compute::Tuning tuning) { impl_->tuning = tuning; }

const MatmulPlans::Plan& MatmulPlans::prepare(const MatmulKey& key) {
  using compute::Tuning;
  if (const auto found = impl_->plans.find(key); found != impl_->plans.end()) {
    if (found->second->tuning == Tuning::measured || impl_->tuning == Tuning::first_choice) return *found->second;
    std::erase(impl_->in_order, found->second.get());
    impl_->plans.erase(found);
  }
  const Plan& plan = *impl_->plans.emplace(key, impl_->make(key)).first->second;
  impl_->in_order.push_back(&plan);
  if (plan.tuning == Tuning::first_choice) return plan;
  compute::note_algorithm(plan.operation, fmt::format("cublasLt {} workspace {} KiB", describe(plan.algorithm),
                                                      plan.algorithm.workspace_bytes / 1024));
  return plan;
}

const MatmulPlans::Plan& MatmulPlans::find(const MatmulKey& key) const {
  if (const auto found = impl_->plans.find(key); found != impl_->plans.end()) return *found->second;
  throw Error(ASSAY_INVALID_ARGUMENT,
              describe(key) +
                  " was not prepared on the GPU; run the operation once in prepare mode, on the same "
                  "addresses, before executing it");
}

std::size_t MatmulPlans::workspace_bytes(const Plan& plan) { return plan.algorithm.workspace_bytes; }

void MatmulPlans::execute(const Plan& plan, const MatmulCall& call, void* workspace, cudaStream_t stream) const {
  const auto input_bytes = static_cast<std::int64_t>(size_of(call.key.input));
  const auto output_bytes = static_cast<std::int64_t>(size_of(call.key.output));
  for (std::int64_t i = 0; i < call.outer; ++i) {
    const LtOperands at{.a = static_cast<const char*>(call.a) + i * call.a_outer_step * input_bytes,
                        .b = static_cast<const char*>(call.b) + i * call.b_outer_step * input_bytes,
                        .c = static_cast<char*>(call.c) + i * call.c_outer_step * output_bytes,
                        .bias = call.bias,
                        .residual = static_cast<const char*>(call.residual) + i * call.c_outer_step * output_bytes,
                        .residual_scale = call.residual_scale,
                        .a_scale = call.a_scale,
                        .b_scale = call.b_scale};
    const cublasStatus_t status =
        plan.problem.run(impl_->tools->handle.get(), plan.algorithm, call.alpha, at, workspace, stream);
    if (status != CUBLAS_STATUS_SUCCESS) check_lt(status, plan.operation);
  }
}

void MatmulPlans::end_preparing() {
  if (!impl_->tools) return;
  impl_->tools->tuner.release();
  if (impl_->unsaved < worth_saving) return;
  impl_->tools->cache.save();
  impl_->unsaved = {};
}

std::vector<compute::PrimitiveInfo> MatmulPlans::primitives() const {
  std::vector<compute::PrimitiveInfo> list;
  for (const Plan* plan : impl_->in_order)
    list.push_back({plan->operation, fmt::format("cublasLt {} workspace {} KiB, {}", describe(plan->algorithm),
                                                 plan->algorithm.workspace_bytes / 1024, plan->origin)});
  return list;
}

}  // namespace assay::cuda
