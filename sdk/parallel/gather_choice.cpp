#include "assay/parallel/gather_choice.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/comm/registered_memory.hpp>
#include <assay/compute/workspace.hpp>

namespace assay::parallel {
namespace {

using comm::MemoryKind;
using compute::DType;
using compute::Tensor;

namespace op = compute::op;

// What runs beside a gathering: products of random numbers, which take as much power as a step's.
class Products {
 public:
  Products(const TrialGround& ground, const GatherTrial& trial) : backend_(ground.backend), count_(trial.products) {
    if (count_ == 0) return;
    const std::int64_t wide = 4 * trial.width;
    const auto take = [&](std::int64_t rows, std::int64_t columns) {
      memory_.emplace_back(ground.host, ASSAY_MEMORY_WORKSPACE,
                           static_cast<std::size_t>(rows * columns) * compute::size_of(trial.dtype),
                           "products beside gatherings that are tried");
      return Tensor(memory_.back().data(), trial.dtype, {rows, columns});
    };
    a_ = take(trial.rows, trial.width);
    b_ = take(trial.width, wide);
    out_ = take(trial.rows, wide);
    backend_.set_tuning(compute::Tuning::first_choice);
    workspace_.prepare(ground.host, backend_, [this] { fill(), enqueue(); });
    fill();
  }
  void enqueue() const {
    for (std::int64_t i = 0; i < count_; ++i) backend_.run(op::Matmul{.a = a_, .b = b_, .c = out_});
  }

 private:
  void fill() const {
    backend_.run(op::RandomNormal{.x = a_, .seed = 1, .stream = 0, .mean = 0, .std = 1});
    backend_.run(op::RandomNormal{.x = b_, .seed = 1, .stream = 1, .mean = 0, .std = 1});
  }

  compute::Backend& backend_;
  std::int64_t count_;
  std::vector<DeviceMemory> memory_;
  compute::Workspace workspace_;
  Tensor a_, b_, out_;
};

// What gatherings of a kind need. The memory goes after the communicator, and that after its graph.
struct Gatherings {
  Gatherings(const TrialGround& ground, const GatherTrial& trial, MemoryKind kind) {
    const std::size_t most = *std::max_element(trial.bytes.begin(), trial.bytes.end());
    communicator = ground.open(kind == MemoryKind::copy_engines);
    const auto take = [&](comm::CollectiveMemory& memory, std::size_t bytes) {
      memory = comm::CollectiveMemory(ground.host, *communicator, comm::registration_of(kind),
                                      ASSAY_MEMORY_COMMUNICATION, bytes, "gatherings that are tried");
      comm::require_registration("gathers", kind, memory.registration(), *communicator);
    };
    take(whole, most);
    if (!trial.in_place) take(part, most / static_cast<std::size_t>(communicator->size()));
  }

  comm::CollectiveMemory whole, part;
  std::unique_ptr<comm::Communicator> communicator;
};

std::string text_of(const GatherTrial& trial) {
  std::string sizes;
  for (std::size_t i = 0; i < trial.bytes.size();) {
    std::size_t end = i;
    while (end < trial.bytes.size() && trial.bytes[end] == trial.bytes[i]) ++end;
    sizes += (sizes.empty() ? "" : " + ") + (end - i > 1 ? std::to_string(end - i) + " x " : std::string()) +
             std::to_string(trial.bytes[i]);
    i = end;
  }
  sizes += " bytes";
  if (trial.in_place) sizes += " in place";
  if (trial.products > 0)
    sizes += " beside " + std::to_string(trial.products) + " products " + compute::name_of(trial.dtype) + " " +
             std::to_string(trial.rows) + "x" + std::to_string(trial.width);
  return sizes;
}

}  // namespace

std::vector<std::size_t> few_of_each(const std::vector<std::size_t>& bytes) {
  constexpr std::size_t most = 4;
  std::vector<std::size_t> few;
  for (const std::size_t b : bytes)
    if (few.size() < most || !std::all_of(few.end() - most, few.end(), [b](std::size_t f) { return f == b; }))
      few.push_back(b);
  return few;
}

std::array<double, comm::timed_rounds> time_gatherings(const TrialGround& ground, const GatherTrial& trial,
                                                       MemoryKind kind) {
  const Gatherings gatherings(ground, trial, kind);
  comm::Communicator* const communicator = gatherings.communicator.get();
  // These are the ranks of the case, or those of one replica.
  const auto ranks = static_cast<std::size_t>(communicator->size()),
             rank = static_cast<std::size_t>(communicator->rank());
  const Products products(ground, trial);

  const auto enqueue = [&] {
    for (const std::size_t bytes : trial.bytes) {
      const auto n = static_cast<std::int64_t>(bytes / ranks);
      const Tensor to(gatherings.whole.data(), DType::u8, {n * static_cast<std::int64_t>(ranks)});
      const Tensor from = trial.in_place ? to.slice(0, static_cast<std::int64_t>(rank) * n, n)
                                         : Tensor(gatherings.part.data(), DType::u8, {n});
      const comm::Ticket ticket = communicator->all_gather(from, to);
      products.enqueue();
      communicator->wait(ticket);
    }
  };
  enqueue();  // the library connects, and kernels are loaded
  communicator->synchronize();
  std::unique_ptr<compute::Graph> graph;
  if (trial.graph && communicator->captures()) graph = communicator->watch(ground.backend.capture(enqueue));

  return comm::time_rounds(*communicator, ground.backend, ground.seconds, [&] { graph ? graph->launch() : enqueue(); });
}

GatherChoice choose_gathers(const TrialGround& ground, const std::string& name, const GatherTrial& trial) {
  const std::vector<MemoryKind> kinds = comm::kinds_on(ground.backend.kind(), true);
  std::vector<comm::TimedKind> timed;
  for (const MemoryKind kind : kinds) {
    timed.push_back({comm::memory_kinds.name_of(kind), [&, kind] { return time_gatherings(ground, trial, kind); }});
    if (kind != MemoryKind::any_memory) timed.back().open = [&, kind] { const Gatherings opened(ground, trial, kind); };
  }
  std::string key;
  std::unique_ptr<compute::KeptChoices> kept;
  if (kinds.size() > 1 && !comm::carries_nothing_out(ground.host)) {
    const std::unique_ptr<comm::Communicator> communicator = ground.open(false);
    const std::string library = communicator->description();
    const bool is_whole = communicator->size() == comm::ranks_of(ground.host).rank_count;
    kept = compute::open_kept_choices(ground.host, "collectives", library);
    key = comm::choice_key(ground.host, "all_gather", library, trial.graph, text_of(trial)) +
          (is_whole ? "" : ", of which " + std::to_string(communicator->size()) + " share a model");
  }
  const comm::MeasuredChoice choice = comm::choose_by_time(ground.host, name, key, kept.get(), timed);
  return {kinds[choice.kind], "gathers = \"" + std::string(timed[choice.kind].name) + "\": " + choice.text};
}

}  // namespace assay::parallel
