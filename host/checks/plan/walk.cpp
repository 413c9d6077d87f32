#include "plan/walk.hpp"

#include <assay/planning.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "common/memory_kinds.hpp"
#include "measure/recorder.hpp"
#include "plan/asked_children.hpp"
#include "plan/distinct_requests.hpp"
#include "plan/imagined_ranks.hpp"
#include "plugin/plugin_library.hpp"
#include "worker/device_timeline.hpp"
#include "worker/host_services.hpp"
#include "worker/rank_services.hpp"
#include "worker/workload_object.hpp"

namespace assay::host::plan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path& folder_of_stand_ins() {
  static const fs::path folder = [] {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    return self.parent_path().parent_path() / "lib/assay/planned";
  }();
  return folder;
}

const char* arithmetic_name(assay_arithmetic arithmetic) {
  static_assert(ASSAY_ARITHMETIC_FP64 == 1 && ASSAY_ARITHMETIC_FP8 == experiment::arithmetics.size());
  const auto index = static_cast<std::size_t>(arithmetic) - 1;
  return index < experiment::arithmetics.size() ? experiment::arithmetics[index] : "";
}

// Thrown at the first call that does not succeed.
struct Stopped {
  WalkState state;
  std::string reason;
};

// The plugin and the stand-in, open in a child process.
class Walker {
 public:
  enum class Way { whole, creation };  // creation: `create` and `work` alone

  Walker(const WalkedPlugin& plugin, const experiment::DeviceDescription& device, Way way = Way::whole)
      : plugin_(plugin), description_(device), way_(way), library_(open_without_files(plugin.file)) {
    // What one case frees, the next one takes: memory that went back to the kernel in between would be zeroed for each.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    workload_ = &library_->workload(plugin.schema.id);
    const auto backend = plugin::DeviceLibrary::open(folder_of_stand_ins() / "devices" /
                                                     fmt::format("libassay_device_{}.so", device.kind));
    planning_ = static_cast<const assay_planning*>(backend->api().get_extension(ASSAY_EXT_PLANNING));
    if (!planning_) throw plugin::PluginError("the stand-in for a device does not offer " ASSAY_EXT_PLANNING);
    assay_stand_in stand_in{};
    stand_in.struct_size = sizeof stand_in;
    stand_in.name = device.name.c_str();
    stand_in.memory_total_bytes = static_cast<std::uint64_t>(device.memory_total_mib * mib);
    stand_in.compute_units = static_cast<std::int32_t>(device.compute_units);
    if (planning_->describe(&stand_in) != ASSAY_OK) throw plugin::PluginError(backend->api().error_text());
    device_.emplace(backend, 0);
  }

  // The first or the last rank, whichever takes more.
  Walk walk(const WalkRequest& request) {
    Walk most = walk_rank(request, 0);
    if (request.ranks == 1 || most.state != WalkState::walked) return most;
    Walk last = walk_rank(request, request.ranks - 1);
    return last.state != WalkState::walked || last.peak_total > most.peak_total ? last : most;
  }

 private:
  // No file grows from here on: a setup that would make a data set first finds no room.
  static std::shared_ptr<const plugin::PluginLibrary> open_without_files(const fs::path& file) {
    const rlimit nothing{0, 0};
    setrlimit(RLIMIT_FSIZE, &nothing);
    std::signal(SIGXFSZ, SIG_IGN);  // an error of the write
    return plugin::PluginLibrary::open(file);
  }

  struct ObjectOf {
    const assay_workload& workload;
    assay_workload_self*& object;
    ~ObjectOf() {
      if (object) workload.destroy(object);
    }
  };

  // To which a workload with open tables may add, and which the next case has as it was.
  struct SchemaOfCase {
    Walker& walker;
    explicit SchemaOfCase(Walker& of) : walker(of) {}
    SchemaOfCase(const SchemaOfCase&) = delete;
    SchemaOfCase& operator=(const SchemaOfCase&) = delete;
    ~SchemaOfCase() {
      const plugin::WorkloadSchema& original = walker.plugin_.schema;
      if (walker.schema_.phases.size() != original.phases.size() ||
          walker.schema_.metrics.size() != original.metrics.size())
        walker.schema_ = original;
    }
  };

  WalkState state_after(assay_status status) const {
    switch (status) {
      case ASSAY_OK: return WalkState::walked;
      case ASSAY_INVALID_ARGUMENT: return WalkState::refused;
      case ASSAY_UNSUPPORTED: return WalkState::unsupported;
      // Memory of this machine may be short, too; that is no limit of the device.
      case ASSAY_OUT_OF_MEMORY:
        return planning_->refusals() > refusals_before_ ? WalkState::too_large : WalkState::not_known;
      default: return WalkState::not_known;
    }
  }

  Walk walk_rank(const WalkRequest& request, std::int32_t rank) {
    Walk walk;
    walk.rank = rank;
    if (!plugin_.schema.runs_on(description_.kind)) {
      walk.state = WalkState::unsupported;
      walk.reason = fmt::format("workload '{}' does not run on device '{}'", plugin_.schema.id, description_.kind);
      return walk;
    }
    worker::CaseSpec spec;
    // Of a case's values what these services read; its parameters go to the workload alone.
    spec.values.run = request.values.run, spec.values.measure = request.values.measure;
    spec.workload = plugin_.schema.id;
    spec.device_kind = description_.kind;
    spec.comm_folder = (folder_of_stand_ins() / "comm").string();
    spec.ranks.rank = rank, spec.ranks.count = request.ranks;
    spec.ranks.local_rank = rank, spec.ranks.local_count = request.ranks;
    spec.ranks.host_name = "planned";
    assay_workload_self* object = nullptr;
    refusals_before_ = planning_->refusals();
    try {
      worker::CaseObserver nobody;
      worker::RankServices ranks(spec, nobody, std::make_unique<ImaginedRanks>());
      const SchemaOfCase schema(*this);
      worker::HostServices services(*device_, nobody, ranks, schema_);
      worker::DeviceTimeline timeline(*device_, nobody);
      measure::Recorder recorder(timeline, plugin_.schema.phases.size(), plugin_.schema.metrics.size());
      assay_config config;
      config.params.insert(request.values.params.begin(), request.values.params.end());
      const ObjectOf owned{*workload_, object};  // gone before what it uses
      live(walk, spec, services, recorder, config, object);
      walk.state = WalkState::walked;
    } catch (const Stopped& stopped) {
      walk.state = stopped.state, walk.reason = stopped.reason;
    } catch (const std::exception& e) {
      walk.state = WalkState::not_known, walk.reason = e.what();
    }
    planning_->listen(nullptr, nullptr);
    return walk;
  }

  void live(Walk& walk, const worker::CaseSpec& spec, worker::HostServices& services, measure::Recorder& recorder,
            const assay_config& config, assay_workload_self*& object) {
    const auto check = [&](const char* what, assay_status status) {
      std::string text = services.messages().take();
      if (status == ASSAY_OK) return;
      if (text.empty()) text = fmt::format("{} says no, without a text", what);
      throw Stopped{state_after(status), std::move(text)};
    };
    if (!is_initialized_ && library_->entry().init) check("init", library_->entry().init(services.abi()));
    is_initialized_ = true;
    const assay_case c = worker::case_of(spec, config);
    check("create", workload_->create(services.abi(), &c, &object));
    if (!object) throw Stopped{WalkState::not_known, "create returned ASSAY_OK and no object"};
    if (workload_->work) {
      assay_work work{};
      work.struct_size = sizeof work;
      check("work", workload_->work(object, &work));
      walk.flops = static_cast<double>(work.flops), walk.bytes = static_cast<double>(work.bytes);
      walk.arithmetic = arithmetic_name(work.arithmetic);
    }
    if (way_ == Way::creation) return;
    listened_ = &walk;
    const auto* planner = workload_->get_extension
                              ? static_cast<const assay_planner*>(workload_->get_extension(object, ASSAY_EXT_PLAN))
                              : nullptr;
    if (planner && ASSAY_HAS(planner, assay_planner, plan) && planner->plan) {
      walk.is_declared = true;
      measure::MemoryLedger ledger;
      DeclaredHere here{*this, ledger};
      const assay_plan plan{sizeof plan, &here, take_told, hear_told};
      check("plan", planner->plan(object, &plan));
      if (here.mistake.empty() && ledger.peak_total() == 0 && operations_declared(walk) == 0)
        here.mistake = "plan() declares nothing";
      if (!here.mistake.empty()) throw Stopped{WalkState::not_known, here.mistake};
      note(walk, ledger);
      return;
    }
    const std::uint64_t communicators_before = planning_->communicators();
    const assay_launch setup = services.launch(ASSAY_STAGE_SETUP, 0, &recorder);
    check("setup", workload_->setup(object, &setup));
    services.rethrow_mark_failure();
    planning_->listen(hear, this);
    const assay_launch step = services.launch(ASSAY_STAGE_WARMUP, 0, &recorder);
    recorder.prepare(1, true);
    recorder.begin_step();
    check("run", workload_->run(object, &step));
    recorder.end_step();
    services.rethrow_mark_failure();
    walk.communicates = planning_->communicators() > communicators_before;
    note(walk, services.memory().ledger());
  }

  static void note(Walk& walk, const measure::MemoryLedger& ledger) {
    walk.peak = ledger.peak();
    walk.at_step = ledger.current();
    walk.peak_total = ledger.peak_total();
  }

  // What a workload that declares its plan is given.
  struct DeclaredHere {
    const Walker& walker;
    measure::MemoryLedger& ledger;
    std::string mistake;  // in what it declared
  };

  static std::int64_t operations_declared(const Walk& walk) {
    std::int64_t count = 0;
    for (const OperationSum& sum : walk.operations) count += sum.count;
    return count;
  }

  void add(const assay_planned_operation& operation) const {
    const auto kind = static_cast<std::size_t>(operation.kind);
    if (kind >= operation_kinds.size()) return;
    OperationSum& sum = listened_->operations[kind];
    const auto flops = static_cast<double>(operation.flops), bytes = static_cast<double>(operation.bytes);
    ++sum.count;
    sum.flops += flops, sum.bytes += bytes;
    const double rate = kind == collective_kind ? description_.link_gbytes_per_s : description_.memory_gbytes_per_s;
    const double peak = description_.flops_per_s(arithmetic_name(operation.arithmetic));
    const double flops_s = peak > 0 ? flops / peak : 0;
    sum.flops_s += flops_s;
    sum.least_s += std::max(flops_s, rate > 0 ? bytes / (rate * 1e9) : 0);
  }
  static void hear(void* context, const assay_planned_operation* operation) noexcept {
    static_cast<Walker*>(context)->add(*operation);
  }
  static void take_told(const assay_plan* plan, assay_memory_kind kind, std::int64_t delta) noexcept {
    auto& here = *static_cast<DeclaredHere*>(plan->impl);
    if (kind < 0 || kind >= ASSAY_MEMORY_KIND_COUNT) {
      here.mistake = fmt::format("plan() declares memory of kind {}, which does not exist", kind);
      return;
    }
    const auto index = static_cast<std::size_t>(kind);
    constexpr std::int64_t most = std::int64_t{1} << 60;
    const std::int64_t held = here.ledger.current().bytes[index];
    if (delta > most - held || delta < -held)
      here.mistake =
          fmt::format("plan() declares {} bytes of {} where {} are held", delta, memory_kind_name(index), held);
    else
      here.ledger.add(index, delta);
  }
  static void hear_told(const assay_plan* plan, const assay_planned_operation* operation) noexcept {
    auto& here = *static_cast<DeclaredHere*>(plan->impl);
    if (!operation || !ASSAY_HAS(operation, assay_planned_operation, bytes) || operation->kind < 0 ||
        static_cast<std::size_t>(operation->kind) >= operation_kinds.size())
      here.mistake = "plan() declares an operation of no known kind";
    else
      here.walker.add(*operation);
  }

  const WalkedPlugin& plugin_;
  const experiment::DeviceDescription& description_;
  Way way_;
  plugin::WorkloadSchema schema_ = plugin_.schema;
  std::shared_ptr<const plugin::PluginLibrary> library_;
  const assay_workload* workload_;
  const assay_planning* planning_ = nullptr;
  std::optional<plugin::OpenDevice> device_;
  bool is_initialized_ = false;
  std::uint64_t refusals_before_ = 0;
  Walk* listened_ = nullptr;
};

Json to_json(const Walk& walk) {
  // Of one that was not walked there are no figures, and of many such each is a line less to write and to read.
  if (walk.state != WalkState::walked) return {{"state", static_cast<int>(walk.state)}, {"reason", walk.reason}};
  Json operations = Json::array();
  for (const OperationSum& sum : walk.operations)
    operations.push_back({sum.count, sum.flops, sum.bytes, sum.flops_s, sum.least_s});
  return {{"state", static_cast<int>(walk.state)},
          {"reason", walk.reason},
          {"rank", walk.rank},
          {"declared", walk.is_declared},
          {"communicates", walk.communicates},
          {"peak", walk.peak.bytes},
          {"at_step", walk.at_step.bytes},
          {"peak_total", walk.peak_total},
          {"operations", std::move(operations)},
          {"work", {walk.flops, walk.bytes}},
          {"arithmetic", walk.arithmetic}};
}

Walk walk_from_json(const Json& json) {
  Walk walk;
  walk.state = static_cast<WalkState>(json.at("state").get<int>());
  json.at("reason").get_to(walk.reason);
  if (walk.state != WalkState::walked) return walk;
  json.at("rank").get_to(walk.rank);
  json.at("declared").get_to(walk.is_declared);
  json.at("communicates").get_to(walk.communicates);
  json.at("peak").get_to(walk.peak.bytes);
  json.at("at_step").get_to(walk.at_step.bytes);
  json.at("peak_total").get_to(walk.peak_total);
  for (std::size_t i = 0; i < walk.operations.size(); ++i) {
    const Json& sum = json.at("operations").at(i);
    walk.operations[i] = {sum.at(0).get<std::int64_t>(), sum.at(1), sum.at(2), sum.at(3), sum.at(4)};
  }
  walk.flops = json.at("work").at(0), walk.bytes = json.at("work").at(1);
  json.at("arithmetic").get_to(walk.arithmetic);
  return walk;
}

std::string reason_of_death(const ChildDeath& death) {
  const bool touched = death.signal == SIGSEGV || death.signal == SIGBUS;
  return fmt::format(
      "its process ended with {} in its setup or step on a device that carries nothing out{}", death.how,
      touched ? fmt::format(
                    "; a workload that reads or writes its memory by itself declares it in plan(), docs/plan.md ({})",
                    ASSAY_EXT_PLAN)
              : "");
}

Json walk_of_death(const ChildDeath& death) {
  Walk walk;
  walk.reason = reason_of_death(death);
  return to_json(walk);
}

// All of them, so that any first part of it is spread over the whole: what there is time for then meets every value of
// every axis. Steps of the golden ratio do that.
std::vector<std::size_t> spread_order(std::size_t count) {
  std::size_t step = std::max<std::size_t>(static_cast<std::size_t>(static_cast<double>(count) * 0.618034), 1);
  while (std::gcd(step, count) != 1 && count > 0) ++step;
  std::vector<std::size_t> order(count);
  for (std::size_t i = 1; i < count; ++i) order[i] = (order[i - 1] + step) % count;
  return order;
}

// By doubling, and then between the largest that fits and the least that does not.
class LargestSearch {
 public:
  LargestSearch(Walker& walker, WalkRequest request, const std::string& name, const FitsAsked& fits, std::int64_t bound)
      : walker_(walker), request_(std::move(request)), name_(name), fits_(fits), bound_(bound) {}

  Largest search() {
    const auto own = std::get<std::int64_t>(request_.values.params.at(name_));
    if (!try_value(own)) return none(fmt::format("{} does not fit", own));
    std::int64_t low = own, high = own;
    while (low < bound_ && high == low) {
      const std::int64_t next = low > bound_ / 2 ? bound_ : std::max<std::int64_t>(low * 2, low + 1);
      (try_value(next) ? low : high) = next;
      if (low == next) high = low;
      if (!stopped_.empty()) return none("");
    }
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (try_value(middle) ? low : high) = middle;
      if (!stopped_.empty()) return none("");
    }
    if (low == bound_ && bound_ == no_bound) return none(fmt::format("{} changes no memory", name_));
    return {low, low == bound_, ""};
  }

  static constexpr std::int64_t no_bound = std::int64_t{1} << 40;

 private:
  bool try_value(std::int64_t value) {
    request_.values.params[name_] = value;
    const Walk walk = walker_.walk(request_);
    if (walk.state != WalkState::walked && walk.state != WalkState::too_large)
      stopped_ = fmt::format("not every value is allowed: {} = {}: {}", name_, value, walk.reason);
    return walk.state == WalkState::walked && fits_(request_, walk);
  }
  Largest none(const std::string& why) const { return {std::nullopt, false, stopped_.empty() ? why : stopped_}; }

  Walker& walker_;
  WalkRequest request_;
  const std::string& name_;
  const FitsAsked& fits_;
  std::int64_t bound_;
  std::string stopped_;
};

}  // namespace

std::vector<Walk> walk_cases(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                             const std::vector<WalkRequest>& requests) {
  const DistinctRequests distinct = distinct_among(requests);
  const auto open = [&]() -> Answer {
    return [walker = std::make_shared<Walker>(plugin, device), &requests, &distinct](std::size_t i) {
      return to_json(walker->walk(requests[distinct.first[i]]));
    };
  };
  std::vector<Walk> of_kinds, walks;
  for (const Json& answer : ask_children(distinct.first.size(), open, walk_of_death))
    of_kinds.push_back(walk_from_json(answer));
  for (const std::size_t kind : distinct.kind) walks.push_back(of_kinds[kind]);
  return walks;
}

std::vector<Walk> create_cases(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                               const std::vector<WalkRequest>& requests, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const DistinctRequests distinct = distinct_among(requests);
  const std::vector<std::size_t> order = spread_order(distinct.first.size());
  const auto open = [&]() -> Answer {
    return [walker = std::make_shared<Walker>(plugin, device, Walker::Way::creation), &requests, &distinct, &order,
            end](std::size_t i) {
      const WalkRequest& request = requests[distinct.first[order[i]]];
      return to_json(std::chrono::steady_clock::now() < end ? walker->walk(request) : Walk{});
    };
  };
  std::vector<Walk> of_kinds(order.size()), walks;
  const std::vector<Json> answers = ask_children(order.size(), open, walk_of_death, {patience, 1});
  for (std::size_t i = 0; i < answers.size(); ++i) of_kinds[order[i]] = walk_from_json(answers[i]);
  for (const std::size_t kind : distinct.kind) walks.push_back(of_kinds[kind]);
  return walks;
}

std::vector<Largest> largest_that_fit(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                                      const std::vector<WalkRequest>& requests, const std::string& name,
                                      const FitsAsked& fits) {
  std::int64_t bound = LargestSearch::no_bound;
  for (const plugin::ParamSpec& p : plugin.schema.params)
    if (p.name == name && p.max && *p.max < static_cast<double>(bound)) bound = static_cast<std::int64_t>(*p.max);
  const auto open = [&]() -> Answer {
    return [walker = std::make_shared<Walker>(plugin, device), &requests, &name, &fits, bound](std::size_t i) {
      const Largest found = LargestSearch(*walker, requests[i], name, fits, bound).search();
      return Json{{"value", found.value ? Json(*found.value) : Json()},
                  {"is_bound", found.is_bound},
                  {"why_none", found.why_none}};
    };
  };
  const auto dead = [](const ChildDeath& death) {
    return Json{{"value", Json()}, {"is_bound", false}, {"why_none", reason_of_death(death)}};
  };
  std::vector<Largest> all;
  for (const Json& answer : ask_children(requests.size(), open, dead)) {
    Largest& largest = all.emplace_back();
    if (answer.at("value").is_number()) largest.value = answer.at("value").get<std::int64_t>();
    largest.is_bound = answer.at("is_bound");
    answer.at("why_none").get_to(largest.why_none);
  }
  return all;
}

}  // namespace assay::host::plan
