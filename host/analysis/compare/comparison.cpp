#include "compare/comparison.hpp"

#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/utc.hpp"
#include "compare/assumptions.hpp"
#include "compare/ends.hpp"
#include "compare/family.hpp"
#include "compare/figure_alone.hpp"
#include "compare/training_length.hpp"
#include "record/columns.hpp"
#include "results/case_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::host::compare {
namespace {

std::string text_at(const record::CaseRecord& record, const char* column) {
  return record::display_text(record::cell_of(record, column));
}

std::vector<const record::CaseRecord*> records_of(const Side& side) {
  std::vector<const record::CaseRecord*> records;
  for (const ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records) records.push_back(&record);
  return records;
}

// Why this side's case has no figure to compare; "" when it has one in every run.
std::string reason_against(const SideCase& c, const std::string& label) {
  for (const record::CaseRecord* record : c.records) {
    const record::Status status = record->result.status;
    if (status == record::Status::ok) continue;
    const std::string reason = text_at(*record, "reason");
    const std::string what =
        status == record::Status::wrong_result ? "verification failed" : record->result.status_text();
    return fmt::format("{}: {}{}{}", label, what, reason.empty() ? "" : ": ", reason);
  }
  return {};
}

struct Figures {
  std::vector<RunFigure> runs;
  MetricOfRecord first;
  std::string problem;
};

std::string why_no_figure(const record::CaseRecord& record, const std::string& metric, const std::string& label) {
  if (const std::optional<double> value = figure_of(record, metric))
    return fmt::format("{} has {} = {:.4g}, and a ratio needs a figure above 0", label, metric, *value);
  const std::vector<std::string> names = metric_names(record);
  return fmt::format("{} has no figure of {}{}", label, metric,
                     names.empty() ? "" : fmt::format("; it has {}", fmt::join(names, ", ")));
}

Figures figures_of(const SideCase& c, const std::string& metric, const std::string& label) {
  Figures figures;
  for (const record::CaseRecord* record : c.records) {
    std::optional<MetricOfRecord> found = metric_of(*record, metric);
    if (!found) {
      figures.problem = why_no_figure(*record, metric, label);
      return figures;
    }
    if (figures.runs.empty()) figures.first = *found;
    if (found->unit != figures.first.unit) {
      figures.problem =
          fmt::format("the runs of {} have other units: {} and {}", label, figures.first.unit, found->unit);
      return figures;
    }
    if (const auto started = parse_utc(record->started))
      found->figure.started_s = std::chrono::duration<double>(started->time_since_epoch()).count();
    figures.runs.push_back(std::move(found->figure));
  }
  return figures;
}

// The GPUs that a case keeps busy; on the CPU, the machines. A rate of copies is that of one.
double devices_of(const record::CaseRecord& record) {
  if (record.result.copies) return 1;
  if (!record.result.device || record.result.device->kind != "cpu") return record.identity.ranks.value_or(1);
  std::set<std::string> hosts;
  for (const record::RankEntry& rank : record.result.by_rank) hosts.insert(rank.host);
  return std::max<double>(1.0, static_cast<double>(hosts.size()));
}

// All the time is paid for, that of slow steps too: the mean rate.
std::optional<double> items_per_dollar(const SideCase& c, double dollars_per_gpu_hour) {
  constexpr double kSecondsPerHour = 3600;
  double logs = 0;  // over runs the geometric mean, as of the rate itself
  for (const record::CaseRecord* record : c.records) {
    const auto rate = record::cell_of(*record, "items_per_s").number();
    if (!rate || !(*rate > 0)) return std::nullopt;
    logs += std::log(*rate * kSecondsPerHour / (dollars_per_gpu_hour * devices_of(*record)));
  }
  return std::exp(logs / static_cast<double>(c.records.size()));
}

void fill_costs(Entry& entry, const SideCase& c, std::size_t side, const ComparisonOptions& options) {
  if (!options.dollars_per_gpu_hour.empty())
    entry.items_per_dollar = items_per_dollar(c, options.dollars_per_gpu_hour[side]);
}

// What the records say of the device's clocks: throttling, and clocks that were not the same.
std::vector<std::string> clock_notes(const SideCase& a, const SideCase& b, const Side& side_a, const Side& side_b) {
  constexpr double kOtherClock = 0.02;
  std::vector<std::string> notes;
  std::set<std::string> throttled;
  for (const auto& [c, side] : {std::pair(&a, &side_a), std::pair(&b, &side_b)})
    for (const record::CaseRecord* record : c->records)
      if (record->result.validity && record->result.validity->verdict == record::ValidityVerdict::throttled)
        throttled.insert(fmt::format("{} was throttled: {}", side->label, text_at(*record, "validity.text")));
  notes.assign(throttled.begin(), throttled.end());
  const auto mean_clock = [](const SideCase& c) {
    double sum = 0;
    for (const record::CaseRecord* record : c.records) {
      const auto& telemetry = record->result.telemetry;
      if (!telemetry || !telemetry->sm_clock_mhz) return 0.0;
      sum += telemetry->sm_clock_mhz->mean;
    }
    return sum / static_cast<double>(c.records.size());
  };
  const double of_a = mean_clock(a), of_b = mean_clock(b);
  const bool same_device = text_at(*a.records[0], "device.name") == text_at(*b.records[0], "device.name");
  if (of_a > 0 && of_b > 0 && same_device && std::abs(of_b / of_a - 1) > kOtherClock)
    notes.push_back(
        fmt::format("mean clock {:.0f} MHz in {}, {:.0f} MHz in {}", of_a, side_a.label, of_b, side_b.label));
  return notes;
}

// Where others may have used the machine and the record cannot say it, waiting counts for nothing.
std::vector<std::string> validity_notes(const SideCase& a, const SideCase& b, const Side& side_a, const Side& side_b) {
  std::vector<std::string> notes;
  for (const auto& [c, side] : {std::pair(&a, &side_a), std::pair(&b, &side_b)}) {
    const auto is_unknown = [](const record::CaseRecord* record) {
      const auto& validity = record->result.validity;
      return record->result.device && record->result.device->kind == "cpu" && validity &&
             validity->verdict == record::ValidityVerdict::unknown;
    };
    const auto count = std::count_if(c->records.begin(), c->records.end(), is_unknown);
    if (count > 0)
      notes.push_back(
          fmt::format("{}: {} of {} runs cannot say whether others used the machine: too short, or the kernel "
                      "does not count it (validity.text). Measure longer: --set measure.steps=N",
                      side->label, count, c->records.size()));
  }
  return notes;
}

// A figure is worth what its verification is.
std::vector<std::string> verification_notes(const SideCase& a, const SideCase& b, const Side& side_a,
                                            const Side& side_b) {
  std::vector<std::string> notes;
  constexpr std::pair<record::Verification, const char*> less[] = {
      {record::Verification::partial, "was verified in part; the record's verify.text names the part"},
      {record::Verification::as_case,
       "was not verified itself; it refers to a case of its run that computes the same (verify.refers_to)"},
      {record::Verification::by_account, "was verified by the account of its steps alone"}};
  for (const auto& [c, side] : {std::pair(&a, &side_a), std::pair(&b, &side_b)})
    for (const auto& [status, words] : less)
      if (std::any_of(c->records.begin(), c->records.end(), [&status = status](const record::CaseRecord* record) {
            return record->result.verify && record->result.verify->status == status;
          }))
        notes.push_back(fmt::format("{} {}", side->label, words));
  return notes;
}

// Measured steps without the events that time phases, beside measured steps that may have them.
std::vector<std::string> phase_notes(const SideCase& a, const SideCase& b, const Side& side_a, const Side& side_b) {
  const auto has_pass = [](const SideCase& c) {
    return std::any_of(c.records.begin(), c.records.end(),
                       [](const record::CaseRecord* record) { return record->result.phase_pass.has_value(); });
  };
  if (has_pass(a) == has_pass(b)) return {};
  const auto& [apart, other] = has_pass(a) ? std::pair(&side_a, &side_b) : std::pair(&side_b, &side_a);
  return {fmt::format("phases come from separate steps in {}, and from the measured ones in {}", apart->label,
                      other->label)};
}

// Results are often published with five or six digits, and rounded there.
constexpr double threshold_of_results = 1e-5;

struct Words {
  bool has_any = false;
  std::string word, problem;
};

// The word that every run of the case has for the metric.
Words words_of(const SideCase& c, const std::string& metric, const std::string& label) {
  Words words;
  std::vector<std::string> all;
  for (const record::CaseRecord* record : c.records) {
    const std::optional<std::string> word = word_of(*record, metric);
    words.has_any = words.has_any || word.has_value();
    if (!word)
      words.problem = fmt::format("{} has no word for {}", label, metric);
    else if (std::find(all.begin(), all.end(), *word) == all.end())
      all.push_back(*word);
  }
  if (words.problem.empty() && all.size() > 1)
    words.problem = fmt::format("the runs of {} have other words: {}", label, fmt::join(all, ", "));
  if (!all.empty()) words.word = all.front();
  return words;
}

// Words are equal, or they are not.
void compare_words(Entry& entry, const Words& a, const Words& b, std::size_t runs) {
  for (const Words* words : {&a, &b})
    if (!words->problem.empty()) {
      entry.reason = words->problem;
      return;
    }
  entry.kind = Entry::Kind::compared;
  entry.word = b.word;
  entry.outcome = a.word == b.word ? Outcome::same : Outcome::differs;
  entry.verdict = verdict_word(entry.outcome, "", {});
  entry.runs = runs;
}

// A verdict that the figures cannot give, whatever they are.
void withhold(Entry& entry, const std::string& why) {
  entry.outcome = Outcome::cannot_tell;
  entry.verdict = verdict_word(entry.outcome, "", {});
  entry.worse = false;
  // That of exact figures is the ratio itself; of others it would be taken for what more runs narrow.
  if (entry.low != entry.high) entry.low.reset(), entry.high.reset();
  entry.chance.reset(), entry.runs_to_settle.reset(), entry.scatter.reset();
  entry.notes = {why};
}

Entry compared(const SideCase& a, const SideCase& b, const Side& side_a, const Side& side_b, const std::string& metric,
               const ComparisonOptions& options) {
  Entry entry;
  entry.kind = Entry::Kind::refused;
  const std::string against_a = reason_against(a, side_a.label), against_b = reason_against(b, side_b.label);
  if (!against_a.empty() || !against_b.empty()) {
    entry.reason =
        against_a.empty() || against_b.empty() ? against_a + against_b : fmt::format("{}; {}", against_a, against_b);
    entry.failed = against_a.empty();
    return entry;
  }
  const Words words_a = words_of(a, metric, side_a.label), words_b = words_of(b, metric, side_b.label);
  if (words_a.has_any || words_b.has_any) {
    compare_words(entry, words_a, words_b, b.records.size());
    return entry;
  }
  const Figures figures_a = figures_of(a, metric, side_a.label), figures_b = figures_of(b, metric, side_b.label);
  for (const Figures* figures : {&figures_a, &figures_b}) {
    if (figures->problem.empty()) continue;
    entry.reason = figures->problem;
    return entry;
  }
  if (figures_a.first.unit != figures_b.first.unit) {
    entry.reason = fmt::format("other unit: {} / {}", figures_a.first.unit, figures_b.first.unit);
    return entry;
  }
  TestOptions test = options.test;
  if (figures_a.first.is_result()) {
    test.threshold = std::min(test.threshold, threshold_of_results);
    entry.digits = record::result_digits;
  }
  const TestResult result = compare_figures({side_a.label, figures_a.runs}, {side_b.label, figures_b.runs}, test);
  entry.kind = Entry::Kind::compared;
  entry.value = result.value_b;
  entry.ratio = result.ratio;
  const Ends ends = ends_of(result.ratio, result.low, result.high);
  entry.low = ends.low, entry.high = ends.high;
  entry.outcome = result.outcome;
  entry.verdict = verdict_word(result.outcome, metric, figures_b.first);
  entry.worse = is_worse(result.outcome, figures_b.first.better);
  entry.statistic = result.statistic;
  entry.other_ratio = result.other_ratio;
  entry.by_samples = result.by_samples;
  entry.runs = result.runs_b;
  entry.notes = result.notes;
  entry.chance = result.chance;
  entry.runs_to_settle = result.runs_to_settle;
  entry.scatter = result.scatter;
  const bool is_equal = figures_a.first.figure.exact && entry.outcome == Outcome::same;
  if (const std::string why = other_training_length(a, b, side_a.label, side_b.label, metric);
      !why.empty() && !is_equal)
    withhold(entry, why);
  if (figures_b.first.figure.timed)
    for (std::string& note : validity_notes(a, b, side_a, side_b)) entry.notes.push_back(std::move(note));
  for (std::string& note : verification_notes(a, b, side_a, side_b)) entry.notes.push_back(std::move(note));
  for (std::string& note : clock_notes(a, b, side_a, side_b)) entry.notes.push_back(std::move(note));
  for (std::string& note : phase_notes(a, b, side_a, side_b)) entry.notes.push_back(std::move(note));
  return entry;
}

Entry baseline_entry(const SideCase& c, const std::string& metric, const Side& side, const TestOptions& test) {
  Entry entry;
  entry.kind = Entry::Kind::baseline;
  entry.reason = reason_against(c, side.label);
  if (!entry.reason.empty()) return entry;
  if (const Words words = words_of(c, metric, side.label); words.has_any) {
    entry.reason = words.problem;
    if (words.problem.empty()) entry.word = words.word;
    entry.runs = c.records.size();
    return entry;
  }
  const Figures figures = figures_of(c, metric, side.label);
  if (!figures.problem.empty()) {
    entry.reason = figures.problem;
    return entry;
  }
  const FigureAlone own = figure_alone({side.label, figures.runs}, test);
  entry.value = own.value;
  if (figures.first.is_result()) entry.digits = record::result_digits;
  entry.runs = own.runs;
  entry.statistic = own.statistic;
  entry.by_samples = own.by_samples;
  return entry;
}

// "tokens_per_s" is items_per_s of a workload that counts tokens: `--metric` takes either, and "all" has it once.
std::vector<std::string> rates_by_unit(const std::vector<Side>& sides) {
  std::set<std::string> names;
  for (const Side& side : sides)
    for (const record::CaseRecord* record : records_of(side))
      if (const auto& work = record->result.work; work && !work->item_unit.empty() && work->item_unit != "items")
        names.insert(work->item_unit + "_per_s");
  return {names.begin(), names.end()};
}

std::vector<std::string> all_metric_names(const std::vector<Side>& sides) {
  std::vector<std::string> names;
  for (const Side& side : sides)
    for (const record::CaseRecord* record : records_of(side))
      for (std::string& name : metric_names(*record))
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> comparable_metric_names(const std::vector<Side>& sides) {
  std::vector<std::string> names = all_metric_names(sides);
  // Two sides at least have it.
  std::erase_if(names, [&sides](const std::string& name) {
    return std::count_if(sides.begin(), sides.end(), [&name](const Side& side) {
             const auto records = records_of(side);
             return std::any_of(records.begin(), records.end(), [&name](const record::CaseRecord* record) {
               return metric_of(*record, name) || word_of(*record, name);
             });
           }) < 2;
  });
  return names;
}

// "all" stands for every metric, unless there is one of that name.
std::vector<std::string> wanted_metrics(const std::vector<Side>& sides, const std::vector<std::string>& asked) {
  const std::vector<std::string> all = comparable_metric_names(sides);
  std::vector<std::string> wanted;
  for (const std::string& metric : asked) {
    const bool is_every = metric == "all" && std::find(all.begin(), all.end(), metric) == all.end();
    for (const std::string& name : is_every ? all : std::vector<std::string>{metric})
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(name);
  }
  return wanted;
}

void require_metric(const std::vector<Side>& sides, const std::string& metric) {
  for (const Side& side : sides)
    for (const record::CaseRecord* record : records_of(side))
      if (metric_of(*record, metric) || word_of(*record, metric)) return;
  std::vector<std::string> names = all_metric_names(sides);
  for (std::string& rate : rates_by_unit(sides)) names.push_back(std::move(rate));
  if (std::find(names.begin(), names.end(), metric) != names.end())
    throw NoMetricError(fmt::format("no case has a figure of '{}' above 0, and a ratio needs one", metric));
  throw NoMetricError(fmt::format("no case has a figure of '{}'{}", metric, known_instead(metric, names)));
}

std::string name_of(const SideCase& c) {
  const std::string label = results::case_label(c.records.front()->identity.axes);
  return fmt::format("{}{}{}", c.inputs.workload(), label.empty() ? "" : " ", label);
}

}  // namespace

Comparison compare_sides(std::vector<Side> sides, const ComparisonOptions& options) {
  Comparison comparison;
  comparison.sides = std::move(sides);
  comparison.rules = options.rules;
  const std::vector<std::string> metrics = wanted_metrics(comparison.sides, options.metrics);
  for (const std::string& metric : metrics) require_metric(comparison.sides, metric);
  comparison.differences = find_differences(comparison.sides);
  comparison.side_facts = facts_of(comparison.sides, options.rules);

  std::vector<const record::CaseRecord*> all;
  for (const Side& side : comparison.sides)
    for (const record::CaseRecord* record : records_of(side)) all.push_back(record);
  const std::vector<std::string> axes = axes_of(all);
  const std::set<std::string> axis_set(axes.begin(), axes.end());
  std::vector<std::vector<SideCase>> cases;
  for (const Side& side : comparison.sides) cases.push_back(cases_of(records_of(side), axis_set));
  std::vector<Matches> matches(1);
  for (std::size_t i = 1; i < cases.size(); ++i) matches.push_back(match_cases(cases[0], cases[i], options.rules));

  // An axis that has one value in all of the baseline distinguishes nothing.
  for (const std::string& axis : axes) {
    std::set<std::string> values;
    for (const SideCase& c : cases[0]) values.insert(c.inputs.value(axis).value_or(""));
    if (values.size() > 1) comparison.axes.push_back(axis);
  }
  for (const std::string& asked : metrics) {
    const std::string metric = name_for_all(all, asked);
    ComparedMetric compared_metric{metric, Direction::neither, {}};
    for (std::size_t c = 0; c < cases[0].size(); ++c) {
      const SideCase& a = cases[0][c];
      ComparedCase row{a.inputs.workload(), {}, "", {}};
      for (const std::string& axis : comparison.axes) row.axis_values.push_back(a.inputs.value(axis).value_or(""));
      if (const auto found = metric_of(*a.records.front(), metric)) {
        row.unit = found->unit;
        compared_metric.better = found->better;
      }
      row.entries.push_back(baseline_entry(a, metric, comparison.sides[0], options.test));
      fill_costs(row.entries.back(), a, 0, options);
      bool found_somewhere = false;
      for (std::size_t s = 1; s < cases.size(); ++s) {
        const Match& match = matches[s].of_baseline[c];
        Entry entry;
        if (match.kind == Match::Kind::found) {
          entry = compared(a, *match.other, comparison.sides[0], comparison.sides[s], metric, options);
          fill_costs(entry, *match.other, s, options);
        } else if (match.kind == Match::Kind::refused) {
          entry.kind = Entry::Kind::refused;
          entry.reason = match.reason;
        }
        found_somewhere = found_somewhere || match.kind != Match::Kind::missing;
        row.entries.push_back(std::move(entry));
      }
      if (found_somewhere)
        compared_metric.cases.push_back(std::move(row));
      else if (asked == metrics.front())
        comparison.unmatched.push_back(fmt::format("only in {}: {}", comparison.sides[0].label, name_of(a)));
    }
    comparison.metrics.push_back(std::move(compared_metric));
  }
  control_family(comparison, options.test);
  std::set<std::string> units;
  for (const record::CaseRecord* record : all)
    if (record->result.work && !record::cell_of(*record, "items_per_s").empty())
      units.insert(one_line(record->result.work->item_unit));
  comparison.item_unit = units.size() == 1 ? *units.begin() : "items";
  for (std::size_t s = 1; s < cases.size(); ++s) {
    const std::string& label = comparison.sides[s].label;
    for (const SideCase* c : matches[s].only_other)
      comparison.unmatched.push_back(fmt::format("only in {}: {}", label, name_of(*c)));
    std::set<std::string> of_baseline, of_other;
    for (const Match& match : matches[s].of_baseline) {
      of_baseline.insert(match.only_baseline.begin(), match.only_baseline.end());
      of_other.insert(match.only_other.begin(), match.only_other.end());
    }
    const auto say = [&comparison](const std::string& who, const std::string& not_who,
                                   const std::set<std::string>& inputs) {
      if (!inputs.empty())
        comparison.unknown.push_back(fmt::format("only {} states these inputs, and {} is assumed to agree: {}", who,
                                                 not_who, fmt::join(inputs, ", ")));
    };
    say(comparison.sides[0].label, label, of_baseline);
    say(label, comparison.sides[0].label, of_other);
  }
  for (const Side& side : comparison.sides)
    if (const std::string assumed = assumptions_of(records_of(side)); !assumed.empty())
      comparison.unknown.push_back(fmt::format("{} assumes what its source does not say: {}", side.label, assumed));
  return comparison;
}

}  // namespace assay::host::compare
