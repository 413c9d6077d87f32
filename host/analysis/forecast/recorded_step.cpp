#include "forecast/recorded_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <variant>

namespace assay::host::forecast {
namespace {

using record::CaseRecord;

constexpr double s_of_a_ms = 1e-3;
// A workload that waits for its collectives hides some of them all the same, where ranks wait for one another.
constexpr double least_overlap = 0.2;
constexpr int most_ranks = 1 << 20;
// Of the operations of forward and backward, which multiplies each matrix twice.
constexpr double backward_share = 2.0 / 3;

std::optional<double> phase_s(const CaseRecord& r, std::string_view name) {
  const record::Phase* const phase = record::find(r.result.phases, name);
  if (!phase || !phase->mean_ms) return std::nullopt;
  return *phase->mean_ms * s_of_a_ms;
}

std::string param_text(const CaseRecord& r, std::string_view name) {
  const Value* const value = record::find(r.identity.params, name);
  return value ? to_text(*value) : "";
}

double param_number(const CaseRecord& r, std::string_view name, double otherwise) {
  const Value* const value = record::find(r.identity.params, name);
  if (!value) return otherwise;
  if (const auto* const whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  const auto* const real = std::get_if<double>(value);
  return real ? *real : otherwise;
}

// Reads figures that a step needs, and keeps the names of those that the record lacks, or that cannot be.
class Figures {
 public:
  explicit Figures(const CaseRecord& r) : r_(r) {}

  double amount(const char* name) {
    const std::optional<double> found = metric(r_, name);
    if (!found)
      missing_.push_back(name);
    else if (!is_amount(found))
      are_possible_ = false;
    return is_amount(found) ? *found : 0;
  }
  // Within a graph no collective is timed.
  std::optional<double> seconds(const char* name) {
    if (!metric(r_, name) && param_text(r_, "execution") == "graph") return std::nullopt;
    return amount(name) * s_of_a_ms;
  }
  const std::vector<std::string>& missing() const { return missing_; }
  bool are_possible() const { return are_possible_; }

 private:
  const CaseRecord& r_;
  std::vector<std::string> missing_;
  bool are_possible_ = true;
};

// Times that the whole case reports, of collectives that run in one exchange.
void take_times(const CaseRecord& r, Figures& figures, Exchange& exchange) {
  exchange.busy_s = figures.seconds("communication_ms");
  if (!exchange.busy_s) return;
  exchange.exposed_s = metric(r, "exposed_ms") ? figures.seconds("exposed_ms") : exchange.busy_s;
}

// The step's phases that hide collectives, or else so much of the step without them.
void take_beside(const CaseRecord& r, std::initializer_list<const char*> phases, double usual_share, Exchange& exchange,
                 MeasuredStep& step) {
  double sum_s = 0;
  for (const char* const name : phases) sum_s += phase_s(r, name).value_or(0);
  exchange.beside_s = sum_s;
  if (sum_s > 0 || !exchange.overlaps || exchange.busy_s) return;
  exchange.beside_s = usual_share * step.silent_s.value_or(step.step_s);
  step.assumes_beside = true;
}

// ---- a reader for each way in which ranks share a training
// ------------------------------------------------------------

// Collectives that run beside the backward: as the workload's strategy says, or else as their times show.
bool says_overlap(const CaseRecord& r) {
  if (const std::string strategy = param_text(r, "strategy"); !strategy.empty()) return strategy.starts_with("overlap");
  return metric(r, "overlap_share").value_or(0) > least_overlap;
}

void read_averages(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  const double count = figures.amount("collectives"), bytes = figures.amount("communication_bytes");
  Exchange averages{.overlaps = says_overlap(r)};
  take_times(r, figures, averages);
  const auto small = metric(r, "small_collectives"), small_bytes = metric(r, "small_communication_bytes");
  const bool is_split = is_amount(small) && is_amount(small_bytes) && *small <= count && *small_bytes <= bytes;
  if (is_split && *small > 0) averages.messages.push_back({Collective::all_reduce, *small, *small_bytes});
  const double large = count - (is_split ? *small : 0);
  if (large > 0) averages.messages.push_back({Collective::all_reduce, large, bytes - (is_split ? *small_bytes : 0)});
  take_beside(r, {"backward"}, backward_share, averages, step);
  step.exchanges.push_back(std::move(averages));
}

// Gatherings and reductions to parts cost alike.
void read_blocks(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  Exchange blocks{
      .messages = {{Collective::all_gather, figures.amount("messages"), figures.amount("communication_bytes")}},
      .overlaps = true,
      .unhidden = 2};  // the first block's parameters, the last one's gradients
  take_times(r, figures, blocks);
  take_beside(r, {"forward", "backward"}, 1, blocks, step);
  step.exchanges.push_back(std::move(blocks));
}

// Rows go in chunks: beside each exchange of a layer, but that of the last chunk, the next chunk's products run. The
// exchanges of a layer are those of plugins/tensor_parallel/README.md, and nothing runs beside the others.
void read_terms(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  const bool by_parts = param_text(r, "sequence_parallel") != "false";
  const double chunks = param_number(r, "communication_chunks", 1);
  const double of_layer = (by_parts ? 10 : 4) + (param_text(r, "activation_checkpointing") == "true" ? 1 : 0);
  const double count = figures.amount("messages");
  const double hidden =
      (chunks - 1) * of_layer * param_number(r, "layers", 0) * param_number(r, "accumulation_steps", 1);
  Exchange terms{.messages = {{by_parts ? Collective::all_gather : Collective::all_reduce, count,
                               figures.amount("communication_bytes")}},
                 .overlaps = chunks > 1,
                 .unhidden = std::max(0.0, count - hidden)};
  take_times(r, figures, terms);
  take_beside(r, {"forward", "backward"}, 1, terms, step);
  terms.beside_s = std::max(0.0, terms.beside_s - terms.exposed_s.value_or(0));  // the phases have the waits, too
  step.exchanges.push_back(std::move(terms));
}

void read_sharded_update(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  const double buckets = figures.amount("buckets"), bytes = figures.amount("communication_bytes");
  const bool shares = param_text(r, "variant") == "zero1";
  Exchange update{.messages = {{Collective::all_reduce, buckets, bytes}}, .overlaps = true};
  if (shares)  // gradients to their owners beside the backward, and updated parameters from them
    update.messages = {{Collective::reduce_scatter, buckets, bytes / 2}, {Collective::all_gather, buckets, bytes / 2}};
  update.busy_s = figures.seconds("communication_ms");
  if (update.busy_s)
    update.exposed_s = phase_s(r, "gradient_wait").value_or(0) + phase_s(r, "parameter_wait").value_or(0);
  take_beside(r, {"backward"}, backward_share, update, step);
  step.computation = shares ? Computation::partly : Computation::same;
  step.exchanges.push_back(std::move(update));
}

// Rows to the experts' ranks and back, which the step waits for, and sums of what all ranks have.
void read_experts(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  const double others = step.ranks - 1, ranks = step.ranks;
  double sent = figures.amount("dispatch_bytes");
  sent += figures.amount("combine_bytes");
  Exchange rows{.messages = {{Collective::all_to_all, figures.amount("expert_exchanges"), sent * ranks / others}},
                .grows_with_imbalance = true};
  rows.busy_s = figures.seconds("expert_exchange_ms");
  rows.exposed_s = figures.seconds("expert_exchange_exposed_ms");
  Exchange sums{
      .messages = {{Collective::all_reduce, figures.amount("collectives"), figures.amount("communication_bytes")}},
      .overlaps = true};
  take_times(r, figures, sums);
  take_beside(r, {"backward"}, backward_share, sums, step);
  step.exchanges = {std::move(rows), std::move(sums)};

  ExpertLoads loads{.imbalance = std::max(1.0, figures.amount("rank_imbalance"))};
  loads.experts = static_cast<int>(param_number(r, "experts", 1));
  const double layers = param_number(r, "layers", 0) - param_number(r, "first_dense_layers", 0);
  const double of_experts = 3 * param_number(r, "experts_per_token", 0) * param_number(r, "d_model", 0) *
                            param_number(r, "expert_d_ff", 0) * layers;
  if (const double active = figures.amount("active_parameters"); active > 0)
    loads.share_of_compute = std::clamp(of_experts / active, 0.0, 1.0);
  step.experts = loads;
}

// Times of messages between stages hold waiting for neighbours, so that none of them counts. Most travel beside the
// work; those of the first micro-batch on its way forward, and of the last one on its way back, have nothing beside
// them.
void read_stages(const CaseRecord& r, Figures& figures, MeasuredStep& step) {
  const double messages = figures.amount("messages"), bytes = figures.amount("communication_bytes");
  const double exposed = 2.0 * (step.ranks - 1);
  if (messages > 0)
    step.exchanges.push_back(
        {.messages = {{Collective::send_receive, exposed, exposed * bytes / messages}}, .grows_with_stages = true});
  PipelineShape shape{.micro_batches = param_number(r, "accumulation_steps", 1),
                      .virtual_stages = param_number(r, "virtual_stages", 1),
                      .layers = param_number(r, "layers", 1),
                      .head_layers = metric(r, "head_layers"),
                      .by_work = param_text(r, "balance") != "layers"};
  const double work_s = step.silent_s.value_or(step.step_s);
  shape.share_of_micro_batches = std::clamp(1 - phase_s(r, "optimizer").value_or(0) / work_s, 0.0, 1.0);
  step.pipeline = shape;
}

// ---- rows -----------------------------------------------------------------------------------------------------------

struct Row {
  std::string_view workload;
  Computation computation;
  void (*read)(const CaseRecord&, Figures&, MeasuredStep&);  // of several ranks
};
constexpr std::array rows{
    Row{"ddp", Computation::same, read_averages},
    Row{"fsdp", Computation::partly, read_blocks},
    Row{"moe", Computation::partly, read_experts},
    Row{"pipeline_parallel", Computation::shared, read_stages},
    Row{"sharded_optimizer", Computation::same, read_sharded_update},
    Row{"tensor_parallel", Computation::shared, read_terms},
};
// Of workloads of others, that report what ddp does.
constexpr Row any_other{"", Computation::same, read_averages};

// Records of which the figures do not say enough, whatever they are.
std::string unknown_kind(const CaseRecord& r) {
  if (r.identity.workload == "sharded_optimizer" &&
      (param_text(r, "variant") == "broadcast" || param_text(r, "optimizer") == "muon"))
    return "its owners send parts one by one, and no figure says how many; of this workload variant = \"baseline\" and "
           "\"zero1\" can be forecast, of optimizers other than muon";
  if (param_number(r, "replicas", 1) > 1)
    return "its ranks are replicas of a model that several share, and a forecast knows one of the two axes; records "
           "with replicas = 1 can be forecast";
  const bool is_row =
      std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.workload == r.identity.workload; });
  if (is_row || metric(r, "collectives")) return "";
  return metric(r, "messages") ? "its 'messages' are of several kinds, without a figure for each"
                               : "it has no figure 'collectives', the number of a step's all-reduces, as ddp has it";
}

const Row& row_of(const CaseRecord& r) {
  for (const Row& row : rows)
    if (row.workload == r.identity.workload) return row;
  return any_other;
}

std::string why_not(const Figures& figures, const MeasuredStep& step) {
  if (!figures.missing().empty())
    return fmt::format("it has no figure '{}'; run its experiment again", fmt::join(figures.missing(), "', '"));
  if (!figures.are_possible()) return "it has figures that cannot be: a number or a time below 0";
  if (!step.is_timed() && !step.silent_s)
    return "its collectives have no times (as those of a graph), and it has no steps without communication to compare "
           "its steps with; run its experiment again";
  return "";
}

}  // namespace

std::optional<double> metric(const CaseRecord& r, std::string_view name) {
  const record::CaseMetric* const found = record::find(r.result.metrics, name);
  return found ? std::optional(found->value) : std::nullopt;
}

bool is_amount(const std::optional<double>& x) { return x && std::isfinite(*x) && *x >= 0; }

std::optional<double> ranks_at_full_speed(const ObservedCase& observed) {
  const CaseRecord& r = *observed.record;
  const bool is_cpu = r.result.device && r.result.device->kind == "cpu";
  if (!is_cpu || !observed.processors || r.result.threads.count.value_or(0) < 1) return std::nullopt;
  return std::max(1.0, *observed.processors / static_cast<double>(*r.result.threads.count));
}

int machines_of(const CaseRecord& r) {
  std::set<std::string> hosts;
  for (const record::RankEntry& rank : r.result.by_rank) hosts.insert(rank.host);
  return std::max(1, static_cast<int>(hosts.size()));
}

Link link_of(const CaseRecord& r, std::string_view library_param) {
  if (!r.result.device) return {};
  std::string library = param_text(r, library_param);
  if (library.empty() || library == "auto") library = r.result.device->kind == "cpu" ? "gloo" : "nccl";
  Link link{r.result.device->name, library, machines_of(r) > 1};
  if (library != "nccl") return link;  // the others know neither graphs nor registered memory
  link.in_graph = param_text(r, "execution") == "graph";
  const std::string gathers = param_text(r, "gathers");
  if (gathers == "windows" || gathers == "copy_engines")
    link.memory = MessageMemory::windows;
  else if (gathers == "registered")
    link.memory = MessageMemory::registered;
  else if (param_text(r, "registered") == "true")
    link.memory = param_text(r, "windows") == "false" ? MessageMemory::registered : MessageMemory::windows;
  return link;
}

RecordedStep recorded_step(const ObservedCase& observed) {
  const CaseRecord& r = *observed.record;
  if (std::string why = unknown_kind(r); !why.empty()) return {{}, std::move(why)};
  const auto step_s = phase_s(r, "step");
  if (!step_s) return {{}, "it has no time of a step"};
  const int ranks = r.identity.ranks.value_or(0);
  if (!is_amount(step_s) || *step_s == 0 || ranks < 1 || ranks > most_ranks)
    return {{}, "it has figures that cannot be: a step of 0 ms, or no number of ranks"};
  const Row& row = row_of(r);
  MeasuredStep step{.ranks = ranks, .step_s = *step_s, .computation = row.computation};
  if (r.result.silent && is_amount(r.result.silent->step_mean_ms))
    step.silent_s = *r.result.silent->step_mean_ms * s_of_a_ms;
  Figures figures(r);
  if (ranks > 1) row.read(r, figures, step);
  if (std::string why = why_not(figures, step); !why.empty()) return {{}, std::move(why)};
  step.link = link_of(r, "comm");
  step.machines = machines_of(r);
  step.ranks_at_full_speed = ranks_at_full_speed(observed);
  if (r.result.rates && is_amount(r.result.rates->items_per_s)) step.items = *r.result.rates->items_per_s * *step_s;
  return {std::move(step), ""};
}

}  // namespace assay::host::forecast
