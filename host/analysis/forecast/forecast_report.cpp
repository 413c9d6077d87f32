#include "forecast/forecast_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "common/text_format.hpp"
#include "results/table_page.hpp"

namespace assay::host::forecast {
namespace {

using record::number_cell;
using record::text_cell;

constexpr double us_of_a_s = 1e6;

// Nothing of a number of ranks that it is expected from: that comes out whatever the model is worth. Nor where the
// measured step had another network.
std::optional<double> off_percent(const FamilyForecast& one, const StepForecast& o) {
  if (!o.measured_s || o.is_basis || one.assumptions.network) return std::nullopt;
  return (o.step_s / *o.measured_s - 1) * 100;
}

results::Table table_of(const FamilyForecast& one) {
  const std::string items = one.family->item_unit.empty() ? "items" : one.family->item_unit;
  results::Table table;
  table.columns = {"ranks",     "step_ms",    "compute_ms",     "exposed_ms",  "slowed_ms", "communication_ms",
                   "algorithm", "efficiency", items + "_per_s", "measured_ms", "off_%"};
  const std::vector<MeasuredStep>& steps = one.family->steps;
  const bool is_pipeline =  // a record of one rank has no stages
      std::any_of(steps.begin(), steps.end(), [](const MeasuredStep& step) { return step.pipeline.has_value(); });
  constexpr std::ptrdiff_t bubble_column = 3;  // behind compute_ms
  if (is_pipeline) table.columns.insert(table.columns.begin() + bubble_column, "bubble_ms");
  for (const StepForecast& o : one.forecasts) {
    const auto measured = o.measured_s ? std::optional(*o.measured_s * ms_of_a_s) : std::nullopt;
    table.rows.push_back({record::count_cell(o.ranks), number_cell(o.step_s * ms_of_a_s),
                          number_cell(o.compute_s * ms_of_a_s), number_cell(o.exposed_s * ms_of_a_s),
                          number_cell(o.slowed_s * ms_of_a_s), number_cell(o.communication_s * ms_of_a_s),
                          text_cell(o.ranks > 1 ? name_of(o.algorithm) : ""), number_cell(o.efficiency),
                          number_cell(o.items_per_s), number_cell(measured), number_cell(off_percent(one, o))});
    if (is_pipeline)
      table.rows.back().insert(table.rows.back().begin() + bubble_column, number_cell(o.bubble_s * ms_of_a_s));
  }
  return table;
}

// Two lines through few points fit whatever they are.
constexpr std::size_t sizes_to_judge_by = 3;
constexpr double far_off = 0.3;

std::string costs_of(const Wire& wire) {
  if (!wire.has_latency) return "latency not known, of one size alone, ";
  std::string text;
  if (wire.algorithm != Algorithm::direct || wire.latency_s > 0)
    text += fmt::format("{:.3g} us for each step of the algorithm, ", wire.latency_s * us_of_a_s);
  if (wire.message_s > 0)
    text += fmt::format("{:.3g} us for each {}, ", wire.message_s * us_of_a_s,
                        wire.algorithm == Algorithm::direct ? "message to a rank" : "collective");
  return text;
}

std::string sentence_of(const Wire& wire) {
  const std::string worth = wire.sizes < sizes_to_judge_by ? "too few sizes to say how well it fits"
                            : wire.worst > far_off
                                ? fmt::format("a poor fit, {:.0f}% off where it is worst", wire.worst * 100)
                                : fmt::format("{:.0f}% off where it is worst", wire.worst * 100);
  return fmt::format("{}: {}{:.3g} GB/s sent by each rank; {} measurement{}, {}", name_of(wire.algorithm),
                     costs_of(wire), wire.seconds_per_byte > 0 ? 1e-9 / wire.seconds_per_byte : 0.0, wire.points,
                     wire.points == 1 ? "" : "s", worth);
}

// What a direct collective costs for each rank more is not to be seen where all records are of one number of ranks.
std::string assumed_of_messages(const Wire& wire) {
  if (wire.message_s > 0) return "a rank sends a message to each other one, and each takes the time above";
  return wire.rank_counts > 1
             ? "a rank sends a message to each other one, all at once, and only their bytes take time, as the records "
               "show"
             : "a rank sends a message to each other one, all at once, and only their bytes take time (add all_reduce "
               "records on a second number of ranks to measure more)";
}

std::string assumed_of_computing(const FamilyForecast& one, const MeasuredStep& basis) {
  const ComputeScaling scaling = scaling_of(*one.family, one.from);
  if (basis.computation == Computation::same) return "each rank has as much to compute as today";
  if (scaling.ranks.empty())
    return basis.computation == Computation::shared
               ? "the ranks share all computing evenly (records on a second number of ranks would show what they do "
                 "not)"
               : "each rank has as much to compute as today (records on a second number of ranks would show what the "
                 "ranks share)";
  return fmt::format("the ranks share {:.0f}% of what one of them computes alone, as the records on {} ranks show",
                     100 * scaling.shared / scaling.of(1), fmt::join(scaling.ranks, ", "));
}

std::vector<std::string> assumed(const FamilyForecast& one) {
  std::vector<std::string> lines;
  const MeasuredStep& basis = basis_of(*one.family, one.from, one.forecasts.back().ranks);
  lines.push_back(assumed_of_computing(one, basis));
  lines.push_back("each step of a collective costs what it costs today");
  if (!one.assumptions.wires_of.empty())
    lines.push_back(fmt::format("messages cost what they cost on {}, since no record shows {}",
                                one.assumptions.wires_of, basis.link.text()));
  if (!basis.is_timed() && !basis.pipeline)
    lines.push_back(
        "in a graph no collective is timed: each takes as long as alone, and slowed_ms has the rest of the measured "
        "step");
  if (basis.assumes_beside)
    lines.push_back("the record has no phases, and a usual share of the step hides collectives");
  if (basis.experts && one.forecasts.back().ranks > 1)
    lines.push_back(fmt::format(
        "loads of experts are independent, so the busiest of {} ranks has {:.3g} of the mean; it has {:.3g} on {}",
        one.forecasts.back().ranks, imbalance_on(one.forecasts.back().ranks, basis.experts->imbalance, basis.ranks),
        basis.experts->imbalance, basis.ranks));
  if (basis.pipeline)
    lines.push_back(
        fmt::format("a rank waits for (ranks - 1) / {:g} of its micro-batches' work while they fill and leave "
                    "the pipeline",
                    basis.pipeline->micro_batches * basis.pipeline->virtual_stages));
  const auto is_direct = [](const Wire& wire) { return wire.algorithm == Algorithm::direct; };
  if (one.assumptions.network) {
    const int ranks = one.assumptions.network->ranks_per_machine;
    const bool by_own_share = std::any_of(one.assumptions.wires.begin(), one.assumptions.wires.end(), is_direct);
    lines.push_back(fmt::format("beyond {} ranks messages cross a network, {}", ranks,
                                by_own_share ? "what a rank sends to other machines over its own share of it"
                                             : fmt::format("over the shares of all {} ranks of a machine", ranks)));
  } else
    lines.push_back(
        "links between machines are as those that were measured (--ranks-per-machine gives them their own)");
  for (const Wire& wire : one.assumptions.wires)
    if (is_direct(wire) && wire.has_latency) lines.push_back(assumed_of_messages(wire));
  if (basis.machines > 1 && !one.assumptions.network)
    lines.push_back(fmt::format("as many ranks to a machine as in the record on {} ranks and {} machines", basis.ranks,
                                basis.machines));
  if (const auto room = basis.ranks_at_full_speed)
    lines.push_back(fmt::format(
        "more than {:g} ranks of a machine take turns on its processors, in computing and in communicating", *room));
  bool overlaps = false;
  for (const MeasuredStep& step : one.family->steps)
    overlaps = overlaps || (step.overlaps() && one.from.contains(step.ranks));
  if (overlaps)
    lines.push_back(
        "collectives beside the computation have equal sizes and become ready at equal intervals. The last one is "
        "exposed (of fsdp also the first, of rows in chunks each exchange's last). Unequal buckets and updates beside "
        "them are in slowed_ms");
  if (!one.family->taken_to_agree.empty())
    lines.push_back(fmt::format("records that do not say these parameters agree with those that do: {}",
                                fmt::join(one.family->taken_to_agree, ", ")));
  return lines;
}

// Broken between words, what follows the first line two columns farther in.
std::string line_of(const std::string& text, std::size_t indent, std::size_t width_columns) {
  constexpr std::size_t more = 2, fewest = 20;
  std::string all;
  for (const std::string& line : wrapped(text, std::max(width_columns, indent + more + fewest) - indent - more))
    all += std::string(all.empty() ? indent : indent + more, ' ') + line + "\n";
  return all;
}

}  // namespace

std::string text_of(const std::vector<FamilyForecast>& families, const Wires& wires, std::size_t width_columns) {
  std::string text;
  for (const auto& [link, of_link] : wires) {
    text += line_of(fmt::format("Messages, as measured on {}:", link.text()), 0, width_columns);
    for (const Wire& wire : of_link) text += line_of(sentence_of(wire), 2, width_columns);
  }
  std::vector<std::string> before;
  for (const FamilyForecast& one : families) {
    std::vector<std::string> basis;
    for (const MeasuredStep& step : one.family->steps)
      if (one.from.contains(step.ranks))
        basis.push_back(fmt::format("{}{}", step.ranks,
                                    step.records > 1 ? fmt::format(" (mean of {} records)", step.records) : ""));
    text += "\n" + line_of(fmt::format("{}, from records on {} rank{}:", one.family->label, fmt::join(basis, ", "),
                                       *one.from.rbegin() == 1 ? "" : "s"),
                           0, width_columns);
    text += results::table_on_terminal(table_of(one), width_columns);
    if (!one.family->doubts.empty())
      text += line_of(
          fmt::format("note: the validity of records that this comes from is {}", fmt::join(one.family->doubts, ", ")),
          0, width_columns);
    const std::vector<std::string> lines = assumed(one);
    if (lines == before) {
      text += "assumed: the same\n";
      continue;
    }
    text += "assumed:\n";
    for (const std::string& line : lines) text += line_of(line, 2, width_columns);
    before = lines;
  }
  return text;
}

std::string json_of(const std::vector<FamilyForecast>& families, const Wires& wires) {
  using Json = nlohmann::ordered_json;
  Json all{{"wires", Json::array()}, {"families", Json::array()}};
  for (const auto& [link, of_link] : wires)
    for (const Wire& wire : of_link)
      all["wires"].push_back({{"link", link.text()},
                              {"algorithm", name_of(wire.algorithm)},
                              {"latency_us", wire.has_latency ? Json(wire.latency_s * us_of_a_s) : Json()},
                              {"message_us", wire.has_latency ? Json(wire.message_s * us_of_a_s) : Json()},
                              {"seconds_per_byte", wire.seconds_per_byte},
                              {"points", wire.points},
                              {"sizes", wire.sizes},
                              {"worst_percent", wire.worst * 100}});
  for (const FamilyForecast& one : families) {
    Json family{{"case", one.family->label},
                {"link", basis_of(*one.family, one.from, one.forecasts.back().ranks).link.text()},
                {"from_ranks", one.from},
                {"doubts", one.family->doubts},
                {"item_unit", one.family->item_unit},
                {"assumed", assumed(one)},
                {"ranks", Json::array()}};
    if (const auto& network = one.assumptions.network)
      family["network"] = {{"ranks_per_machine", network->ranks_per_machine},
                           {"gbytes_per_s", 1e-9 / network->seconds_per_byte},
                           {"latency_us", network->latency_s * us_of_a_s}};
    for (const StepForecast& o : one.forecasts) {
      Json row{{"ranks", o.ranks},
               {"step_ms", o.step_s * ms_of_a_s},
               {"compute_ms", o.compute_s * ms_of_a_s},
               {"bubble_ms", o.bubble_s * ms_of_a_s},
               {"exposed_ms", o.exposed_s * ms_of_a_s},
               {"slowed_ms", o.slowed_s * ms_of_a_s},
               {"communication_ms", o.communication_s * ms_of_a_s},
               {"algorithm", o.ranks > 1 ? Json(name_of(o.algorithm)) : Json()},
               {"efficiency", o.efficiency},
               {"items_per_s", o.items_per_s > 0 ? Json(o.items_per_s) : Json()}};
      if (o.measured_s) row["measured_ms"] = *o.measured_s * ms_of_a_s;
      if (const auto off = off_percent(one, o)) row["off_percent"] = *off;
      family["ranks"].push_back(std::move(row));
    }
    all["families"].push_back(std::move(family));
  }
  return all.dump(2) + "\n";
}

}  // namespace assay::host::forecast
