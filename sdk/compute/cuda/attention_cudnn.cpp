// The one translation unit that includes cuDNN's frontend.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "attention_graph.hpp"
#include "attention_plans.hpp"
#include "attention_trial.hpp"
#include "common/algorithm_cache.hpp"
#include "common/chosen_algorithms.hpp"
#include "common/parallel_jobs.hpp"
#include "cuda_error.hpp"
#include "gpu_use.hpp"

namespace assay::cuda {
namespace {

constexpr int most_candidates = 3;
constexpr std::size_t workspace_alignment = 256;

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(ASSAY_DEVICE_ERROR, fmt::format("{}: cuDNN says {}", what, cudnnGetErrorString(status)));
}

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    check_cudnn(cudnnCreate(&handle_), "open cuDNN");
    const cudnnStatus_t status = cudnnSetStream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) static_cast<void>(cudnnDestroy(handle_));
    check_cudnn(status, "give cuDNN its stream");
  }
  ~Handle() { static_cast<void>(cudnnDestroy(handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

bool tuning_wanted() {
  const char* const text = std::getenv("ASSAY_ATTENTION_TUNE");
  return !text || std::string_view(text) != "0";
}

std::size_t workspace_of(const fe::graph::Graph& graph, std::int64_t index) {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, graph.get_workspace_size_plan_at_index(index)));
}

struct Plan {
  std::shared_ptr<fe::graph::Graph> graph;
  compute::Tuning tuning = compute::Tuning::measured;
  std::int64_t candidate = 0;
  std::size_t workspace_bytes = 0;
  std::optional<double> microseconds;
  std::vector<double> times_us;  // of the rounds of the candidate that was chosen; empty where nothing was compared
  // By cuDNN's names; the values are set anew for each launch.
  std::unordered_map<std::int64_t, void*> pointers;

  std::size_t workspace_of(std::int64_t index) const { return cuda::workspace_of(*graph, index); }
  void point_at(const AttentionKey& key, const AttentionPointers& given, const AttentionTables& tables) {
    for (std::size_t i = 0; i < operands_of(key); ++i)
      if (key.sinks || i != index_of(AttentionOperand::sinks)) pointers[static_cast<std::int64_t>(i) + 1] = given[i];
    if (key.documents > 0) {
      for (std::size_t i = 0; i < operands_of(key); ++i)
        if (i != index_of(AttentionOperand::sinks))
          pointers[first_offsets_uid + static_cast<std::int64_t>(i)] = tables.documents.offsets_of(i, key.documents);
      pointers[query_lengths_uid] = pointers[key_lengths_uid] = tables.documents.lengths;
    }
    if (key.dropout == 0.0F) return;
    pointers[seed_uid] = tables.random;
    pointers[offset_uid] = tables.random + 1;
  }
  void launch(cudnnHandle_t handle, void* workspace, std::int64_t index, const AttentionKey& key) {
    fe::error_t status = graph->execute_plan_at_index(handle, pointers, workspace, index);
    if (status.is_bad())
      throw Error(ASSAY_DEVICE_ERROR, fmt::format("{}: cuDNN says {}", key.text(), status.get_message()));
  }
};

// Runs the candidates on separate memory and keeps the fastest. A single one is run too: that loads its kernels, which
// must not happen during a stream capture. With too little memory the first one stays.
void try_out(Plan& plan, const std::vector<std::int64_t>& built, const AttentionKey& key, cudnnHandle_t handle,
             cudaStream_t stream) {
  constexpr int rounds = 3, launches_per_round = 4;
  std::size_t workspace_bytes = 0, total = 0, free_bytes = 0, all_bytes = 0;
  for (const std::int64_t index : built) workspace_bytes = std::max(workspace_bytes, plan.workspace_of(index));
  for (std::size_t i = 0; i < operands_of(key); ++i) total += operand_bytes(key, i);
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "ask for free memory to time attention");
  if (total + workspace_bytes > free_bytes / 10 * 9) return;
  TrialMemory memory;
  AttentionPointers pointers{};
  for (std::size_t i = 0; i < operands_of(key); ++i) {
    pointers[i] = memory.take(operand_bytes(key, i));
    if (!pointers[i]) return;
    // 0x3c3c is 0.0115 as bf16 and 1.06 as fp16: idle zeros would draw less power than real data.
    check(cudaMemsetAsync(pointers[i], 0x3c, operand_bytes(key, i), stream), "fill memory to time attention");
  }
  void* const workspace = memory.take(workspace_bytes);
  auto* const random = static_cast<std::int64_t*>(memory.take(2 * sizeof(std::int64_t)));
  if (!workspace || !random) return;
  check(cudaMemsetAsync(random, 0, 2 * sizeof(std::int64_t), stream), "fill memory to time attention");
  AttentionTables tables{random, {}};
  if (key.documents > 0) {
    tables.documents = trial_documents(key, memory, stream);
    if (!tables.documents.offsets) return;
  }
  plan.point_at(key, pointers, tables);
  Stopwatch watch;
  std::string last_error;
  bool one_runs = false;
  for (const std::int64_t index : built) {
    try {
      plan.launch(handle, workspace, index, key);
    } catch (const Error& e) {
      last_error = e.what();  // one of several engines: the others may do
      continue;
    }
    if (!one_runs) plan.candidate = index;
    one_runs = true;
    if (built.size() == 1) break;
    std::vector<double> times_us;
    for (int round = 0; round < rounds; ++round) {
      watch.start(stream);
      for (int i = 0; i < launches_per_round; ++i) plan.launch(handle, workspace, index, key);
      times_us.push_back(watch.stop_us(stream) / launches_per_round);
    }
    const double best = *std::min_element(times_us.begin(), times_us.end());
    if (!plan.microseconds || best < *plan.microseconds) {
      plan.microseconds = best;
      plan.candidate = index;
      plan.times_us = std::move(times_us);
    }
  }
  check(cudaStreamSynchronize(stream), "time attention");  // before the memory goes
  if (!one_runs) throw Error(ASSAY_DEVICE_ERROR, last_error);
}

std::string name_of_plan(const fe::graph::Graph& graph, std::int64_t index) {
  std::string name;
  return graph.get_plan_name_at_index(index, name).is_bad() || name.empty() ? "unnamed engine" : name;
}

// What is needed to choose among candidates, and to choose the same in the next process and on the other ranks.
struct Chooser {
  GpuUse gpu;
  compute::AlgorithmCache cache;
  compute::SharedAlgorithms& shared;

  Chooser(int ordinal, compute::SharedAlgorithms& with)
      : gpu(ordinal),
        cache(compute::AlgorithmCache::default_folder(), "attention", gpu.conditions(AttentionPlans::library()),
              compute::algorithm_mode()),
        shared(with) {}

  // The name of the candidate that was chosen elsewhere, by the rank that leads or in an earlier process; or empty.
  std::string known(const AttentionKey& key, compute::Tuning tuning) const {
    if (tuning == compute::Tuning::measured)
      if (const auto choice = shared.find(key.text_with_strides())) return choice->algorithm;
    const auto kept = cache.find(key.text_with_strides());
    return kept ? kept->algorithm : "";
  }
  void keep(const Plan& plan, const AttentionKey& key) {
    if (plan.microseconds && gpu.may_keep(plan.times_us))
      cache.store(key.text_with_strides(), {name_of_plan(*plan.graph, plan.candidate), *plan.microseconds});
  }
  void tell(const Plan& plan, const AttentionKey& key) {
    shared.tell(key.text_with_strides(), {name_of_plan(*plan.graph, plan.candidate), plan.microseconds.value_or(0.0)});
  }
};

// With dropout both passes must draw one mask, and cuDNN promises that of no two engines in particular: its first
// choice for each pass is what everybody runs together.
bool is_choice(const AttentionKey& key) { return tuning_wanted() && key.dropout == 0.0F; }

// The candidates of one graph that were built, first choice first; none: why not.
struct Candidates {
  std::shared_ptr<fe::graph::Graph> graph;
  std::vector<std::int64_t> built;
  std::string refusal;
};

// Compiles kernels, so that it takes a second; runs nothing on the GPU. `known`: the name of the candidate that was
// chosen elsewhere, or empty; it is then the only one that is built.
Candidates build(std::shared_ptr<fe::graph::Graph> described, cudnnHandle_t handle, int wanted,
                 const std::string& known) {
  Candidates candidates{std::move(described), {}, {}};
  fe::graph::Graph& graph = *candidates.graph;
  if (candidates.refusal = find_candidates(graph, handle); !candidates.refusal.empty()) return candidates;
  std::vector<std::int64_t>& built = candidates.built;
  const std::int64_t count = graph.get_execution_plan_count();
  for (std::int64_t i = 0; i < count && !known.empty() && built.empty(); ++i)
    if (name_of_plan(graph, i) == known && graph.build_plan_at_index(i).is_good()) built.push_back(i);
  if (!built.empty()) return candidates;
  candidates.refusal = "no plan could be built";
  for (std::int64_t i = 0; i < count && static_cast<int>(built.size()) < wanted; ++i) {
    fe::error_t status = graph.build_plan_at_index(i);
    if (status.is_bad()) {
      candidates.refusal = status.get_message();
      continue;
    }
    // A later candidate that wants far more memory is no alternative: its speed would be paid for elsewhere.
    constexpr std::size_t margin = std::size_t{64} << 20;
    if (!built.empty() && workspace_of(graph, i) > 2 * workspace_of(graph, built.front()) + margin) continue;
    built.push_back(i);
  }
  return candidates;
}

// Of what was built. Runs on the GPU.
Plan choose(Candidates candidates, const AttentionKey& key, compute::Tuning tuning, const std::string& known,
            cudnnHandle_t handle, cudaStream_t stream, Chooser& chooser) {
  const auto require_one = [&] {
    if (candidates.built.empty())
      throw Error(ASSAY_UNSUPPORTED,
                  fmt::format("{}: cuDNN {} does not serve it: {}", key.text(), cudnnGetVersion(), candidates.refusal));
  };
  const bool measure = is_choice(key) && tuning == compute::Tuning::measured;
  Plan plan;
  plan.tuning = tuning;
  const auto try_all = [&] {
    require_one();
    plan.graph = candidates.graph;
    plan.candidate = candidates.built.front();
    if (measure && candidates.built.size() > 1) chooser.cache.refuse_to_choose(key.text_with_strides());
    try_out(plan, candidates.built, key, handle, stream);
  };
  try {
    try_all();
  } catch (const Error&) {
    if (known.empty() || candidates.built.empty()) throw;
    // One that is known and does not run: the others are tried as if none were known.
    candidates = build(describe(key), handle, measure ? most_candidates : 1, "");
    try_all();
  }
  if (measure) {
    chooser.keep(plan, key);
    chooser.tell(plan, key);
  }
  plan.workspace_bytes =
      (plan.workspace_of(plan.candidate) + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
  return plan;
}

// cuDNN's frontend logs where CUDNN_FRONTEND_LOG_INFO asks for it, by a stream that it does not guard.
std::size_t most_builders() {
  static_cast<void>(fe::getLogger());  // whose making writes what all threads read
  if (fe::isLoggingEnabled()) return 1;
  constexpr int enough = 8;
  return static_cast<std::size_t>(std::min(compute::usable_processors(), enough));
}

}  // namespace

struct AttentionPlans::Impl {
  // What the first preparation opens.
  struct Tools {
    Handle handle;  // the first is made alone, as cuDNN's documentation has it; then each thread has its own
    Chooser chooser;
    // cuDNN's plans may know the handle that they were built with: these go after them.
    std::vector<std::optional<Handle>> builders;

    Tools(int ordinal, cudaStream_t stream, compute::SharedAlgorithms& shared)
        : handle(stream), chooser(ordinal, shared), builders(most_builders()) {}
  };

  int ordinal;
  cudaStream_t stream;
  compute::SharedAlgorithms& shared;
  compute::Tuning tuning = compute::Tuning::measured;
  std::optional<Tools> tools;
  std::map<AttentionKey, Plan> plans;
  struct Begun {
    std::future<Candidates> candidates;
    compute::Tuning tuning;
    std::string known;
  };
  std::map<AttentionKey, Begun> begun;
  std::optional<compute::ParallelJobs> jobs;  // the last, so that it goes first: its threads use what is above
  bool is_building = false;

  Impl(int of, cudaStream_t on, compute::SharedAlgorithms& with) : ordinal(of), stream(on), shared(with) {}

  // Whether there is a plan that serves whoever prepares now.
  bool has(const AttentionKey& key) const {
    const auto found = plans.find(key);
    return found != plans.end() &&
           (found->second.tuning == compute::Tuning::measured || tuning == compute::Tuning::first_choice);
  }

  Plan& at(const AttentionKey& key) {
    const auto found = plans.find(key);
    if (found == plans.end())
      throw Error(ASSAY_INVALID_ARGUMENT,
                  fmt::format("{}: not prepared; run the step once in prepare mode, with these shapes and strides",
                              key.text()));
    return found->second;
  }

  // On a separate thread.
  Candidates build_on(std::size_t thread, const AttentionKey& key, int wanted, const std::string& known) {
    check(cudaSetDevice(ordinal), "make the device current to a thread");
    std::optional<Handle>& own = tools->builders[thread];
    if (!own) own.emplace(stream);
    return build(describe(key), own->get(), wanted, known);
  }
};

AttentionPlans::AttentionPlans(int ordinal, cudaStream_t stream, compute::SharedAlgorithms& shared)
    : impl_(std::make_unique<Impl>(ordinal, stream, shared)) {}
AttentionPlans::~AttentionPlans() = default;

std::string AttentionPlans::library() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void AttentionPlans::set_tuning(compute::Tuning tuning) { impl_->tuning = tuning; }

void AttentionPlans::start(const AttentionKey& key) {
  if (impl_->has(key) || impl_->begun.contains(key)) return;
  if (!impl_->tools) impl_->tools.emplace(impl_->ordinal, impl_->stream, impl_->shared);
  if (!impl_->jobs) impl_->jobs.emplace(impl_->tools->builders.size());
  // All that is asked of the cache, the other ranks, the environment and the device is asked here, and not by threads.
  const compute::Tuning tuning = impl_->tuning;
  const int wanted = is_choice(key) && tuning == compute::Tuning::measured ? most_candidates : 1;
  const std::string known = is_choice(key) ? impl_->tools->chooser.known(key, tuning) : "";
  auto candidates = impl_->jobs->start([impl = impl_.get(), key, wanted, known](std::size_t thread) {
    return impl->build_on(thread, key, wanted, known);
  });
  impl_->begun.emplace(key, Impl::Begun{std::move(candidates), tuning, known});
  impl_->is_building = true;
}

bool AttentionPlans::is_building() const { return impl_->is_building; }

void AttentionPlans::wait() {
  if (!impl_->is_building) return;
  impl_->jobs->wait();
  impl_->is_building = false;
}

void AttentionPlans::forget_begun() {
  wait();
  impl_->begun.clear();
}

std::size_t AttentionPlans::prepare(const AttentionKey& key) {
  if (!impl_->begun.contains(key) && impl_->has(key)) return impl_->plans.find(key)->second.workspace_bytes;
  start(key);
  wait();
  Impl::Begun begun = std::move(impl_->begun.extract(key).mapped());
  Impl::Tools& tools = *impl_->tools;
  const Plan& plan = impl_->plans
                         .insert_or_assign(key, choose(begun.candidates.get(), key, begun.tuning, begun.known,
                                                       tools.handle.get(), impl_->stream, tools.chooser))
                         .first->second;
  if (plan.tuning == compute::Tuning::first_choice) return plan.workspace_bytes;
  compute::note_algorithm(key.text(), "cuDNN " + name_of_plan(*plan.graph, plan.candidate));
  return plan.workspace_bytes;
}

std::size_t AttentionPlans::workspace_bytes(const AttentionKey& key) const { return impl_->at(key).workspace_bytes; }

void AttentionPlans::execute(const AttentionKey& key, const AttentionPointers& pointers, const AttentionTables& tables,
                             void* workspace) {
  Plan& plan = impl_->at(key);
  plan.point_at(key, pointers, tables);
  plan.launch(impl_->tools->handle.get(), workspace, plan.candidate, key);
}

std::vector<compute::PrimitiveInfo> AttentionPlans::primitives() const {
  std::vector<compute::PrimitiveInfo> all;
  for (const auto& [key, plan] : impl_->plans) {
    all.push_back({key.text(), fmt::format("cuDNN {}{}", name_of_plan(*plan.graph, plan.candidate),
                                           plan.microseconds ? fmt::format(" {:.1f} us", *plan.microseconds) : "")});
  }
  return all;
}

AttentionSupport attention_support(const AttentionKey& key, std::string_view device_properties) {
  const auto device = std::make_shared<fe::DeviceProperties>();
  fe::error_t status =
      device->deserialize(std::vector<std::uint8_t>(device_properties.begin(), device_properties.end()));
  if (status.is_bad())
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("read the device properties: {}", status.get_message()));
  const std::shared_ptr<fe::graph::Graph> graph = describe(key);
  graph->set_device_properties(device);
  AttentionSupport support;
  support.reason = find_candidates(*graph, nullptr);
  if (support.reason.empty()) support.candidates = static_cast<int>(graph->get_execution_plan_count());
  return support;
}

std::vector<AttentionSupport> attention_support(const std::vector<AttentionKey>& keys, cudaStream_t stream) {
  const Handle handle(stream);
  std::vector<AttentionSupport> all;
  for (const AttentionKey& key : keys) {
    const std::shared_ptr<fe::graph::Graph> graph = describe(key);
    AttentionSupport& support = all.emplace_back();
    support.reason = find_candidates(*graph, handle.get());
    if (support.reason.empty()) support.candidates = static_cast<int>(graph->get_execution_plan_count());
  }
  return all;
}

}  // namespace assay::cuda
