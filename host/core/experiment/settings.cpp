#include "experiment/settings.hpp"

#include "experiment/document.hpp"
#include "experiment/setting_kinds.hpp"
#include "record/status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay::host::experiment {
namespace {

using StoppingRuleOf = decltype(MeasureSettings::until)::value_type;

constexpr std::int64_t most_processes = 65536;  // far above any machine, far below where a count overflows
constexpr std::int64_t most_nodes = 65536;      // as many processes, one on each
constexpr std::int64_t most_repeats = 10'000;
constexpr std::uint64_t smallest_log_bytes = 4096;  // room for the last lines, which the record of a failed case has

// The member that keeps a setting.
template <class Owner, class T>
struct Field {
  std::optional<T> initial;
  std::function<const T*(const Owner&)> find;  // null: the owner has none
  std::function<T&(Owner&)> make;              // made when there is none
};

// GCC 12 takes no member of an unnamed object by a pointer.
template <class Part, class Member>
auto initial_of(Member member) {
  const Part fresh;
  return fresh.*member;
}

// `Base`: the member's own class, which may be one that `Part` is made of.
template <class Part, class Base, class T>
Field<Case, T> in(Part Case::*part, T Base::*member) {
  return {initial_of<Part>(member), [=](const Case& c) { return &(c.*part.*member); },
          [=](Case& c) -> T& { return c.*part.*member; }};
}

template <class Part, class Base, class T>
Field<Case, T> in(Part Case::*part, std::optional<T> Base::*member) {
  return {initial_of<Part>(member), [=](const Case& c) { return (c.*part.*member) ? &*(c.*part.*member) : nullptr; },
          [=](Case& c) -> T& { return (c.*part.*member) ? *(c.*part.*member) : (c.*part.*member).emplace(); }};
}

template <class T>
Field<OutputSettings, T> in(T OutputSettings::*member) {
  return {initial_of<OutputSettings>(member), [=](const OutputSettings& o) { return &(o.*member); },
          [=](OutputSettings& o) -> T& { return o.*member; }};
}

// Setting a member of the stopping rule makes the rule exist.
template <class T>
Field<Case, T> in_until(T StoppingRuleOf::*member) {
  return {initial_of<StoppingRuleOf>(member),
          [=](const Case& c) { return c.measure.until ? &(*c.measure.until.*member) : nullptr; },
          [=](Case& c) -> T& {
            if (!c.measure.until) c.measure.until.emplace();
            return *c.measure.until.*member;
          }};
}

constexpr std::int64_t most_launches = 1'000'000;  // of kernels in a step
// Every sample is kept, in some ten figures of a step: a gigabyte.
constexpr std::int64_t most_steps = 10'000'000;
constexpr std::int64_t most_inner = 1'000'000;  // of them no more than a sum is kept

// The count of steps is no setting of a case whose stopping rule chooses it.
Field<Case, std::int64_t> steps_unless_until() {
  auto field = in(&Case::measure, &MeasureSettings::steps);
  field.find = [](const Case& c) { return c.measure.has_count() ? &*c.measure.steps : nullptr; };
  return field;
}

// An empty list of columns leaves the choice to assay.
Field<OutputSettings, std::vector<std::string>> columns_if_any() {
  auto field = in(&OutputSettings::columns);
  field.initial.reset();
  field.find = [](const OutputSettings& o) { return o.columns.empty() ? nullptr : &o.columns; };
  return field;
}

// With an empty list of hosts the ranks run on this machine.
Field<Case, std::vector<std::string>> hosts_if_any() {
  auto field = in(&Case::run, &RunSettings::hosts);
  field.initial.reset();
  field.find = [](const Case& c) { return c.run.hosts.empty() ? nullptr : &c.run.hosts; };
  return field;
}

template <class T>
std::string default_text(const Kind<T>& kind, const std::optional<T>& initial) {
  if (!initial) return "none";
  const Value value = kind.write(*initial);
  return kind.quotes_default ? shown(value) : to_text(value);
}

// What a row of one value and one of a list have in common.
template <class T>
Setting common_part(std::string section, std::string key, const Kind<T>& kind, Identity identity, std::string help) {
  Setting setting;
  setting.name = section + "." + key;
  setting.section = std::move(section), setting.key = std::move(key);
  setting.identity = identity, setting.help = std::move(help);
  setting.choices = kind.choices;
  setting.hint = kind.hint;
  setting.accept = [kind](const Value& found) -> std::optional<Value> {
    const auto value = kind.read(found);
    return value ? std::optional(kind.write(*value)) : std::nullopt;
  };
  return setting;
}

template <class Owner, class T>
Setting row(std::string section, std::string key, const Kind<T>& kind, const Field<Owner, T>& field, Identity identity,
            std::string help) {
  Setting setting = common_part(std::move(section), std::move(key), kind, identity, std::move(help));
  const std::string standard = fmt::format(" (default {})", default_text(kind, field.initial));
  setting.expected = kind.expected + standard;
  if (!kind.expected_of_empty.empty()) setting.expected_of_empty = kind.expected_of_empty + standard;
  if (field.initial) setting.initial = Values{kind.write(*field.initial)};
  setting.storage = Storage<Owner>{
      [kind, field](const Values& values, Owner& into) { field.make(into) = kind.read(values.at(0)).value(); },
      [kind, field](const Owner& from) -> std::optional<Values> {
        const T* value = field.find(from);
        return value ? std::optional(Values{kind.write(*value)}) : std::nullopt;
      }};
  return setting;
}

// A setting that is an array of such values.
template <class Owner, class T>
Setting list(std::string section, std::string key, const Kind<T>& kind, const Field<Owner, std::vector<T>>& field,
             Identity identity, std::string help) {
  Setting setting = common_part(std::move(section), std::move(key), kind, identity, std::move(help));
  setting.is_list = true;
  setting.expected = kind.choices.empty() ? fmt::format("an array of {}", kind.expected)
                                          : fmt::format("an array of {}", fmt::join(kind.choices, ", "));
  const auto written = [kind](const std::vector<T>& elements) {
    Values values;
    for (const T& element : elements) values.push_back(kind.write(element));
    return values;
  };
  if (field.initial) setting.initial = written(*field.initial);
  setting.storage = Storage<Owner>{[kind, field](const Values& values, Owner& into) {
                                     std::vector<T> elements;
                                     for (const Value& value : values) elements.push_back(kind.read(value).value());
                                     field.make(into) = std::move(elements);
                                   },
                                   [written, field](const Owner& from) -> std::optional<Values> {
                                     const auto* elements = field.find(from);
                                     return elements ? std::optional(written(*elements)) : std::nullopt;
                                   }};
  return setting;
}

// A table whose keys are axes.
Setting relative_to() {
  Setting setting;
  setting.section = "output", setting.key = "relative_to", setting.name = "output.relative_to";
  setting.help = "the case that others are compared with, in columns `*.ratio` and `speedup`";
  setting.expected = "a table of axes, each with the value of the baseline, as in { execution = \"eager\" }";
  setting.is_table = true;
  setting.identity = Identity::ignored;
  setting.accept = [](const Value& found) { return std::optional(found); };
  setting.storage =
      Storage<OutputSettings>{[](const Values& values, OutputSettings& into) {
                                into.relative_to.clear();
                                for (std::size_t i = 0; i + 1 < values.size(); i += 2)
                                  into.relative_to.emplace_back(std::get<std::string>(values[i]), values[i + 1]);
                              },
                              [](const OutputSettings& from) -> std::optional<Values> {
                                if (from.relative_to.empty()) return std::nullopt;
                                Values values;
                                for (const auto& [key, value] : from.relative_to) {
                                  values.emplace_back(key);
                                  values.push_back(value);
                                }
                                return values;
                              }};
  return setting;
}

// One process is one process, whether the file says so or, as all files once did, leaves it out.
Setting ranks() {
  Setting setting = row("run", "ranks", rank_count(most_processes), in(&Case::run, &RunSettings::ranks),
                        Identity::counts, R"(processes: a number, "all" (one per GPU), or "auto")");
  setting.initial_counts_as = std::int64_t{1};
  return setting;
}

// A case with another value takes another time.
Setting decides_duration(Setting setting) {
  setting.decides_duration = true;
  return setting;
}

std::vector<Setting> make_table() {
  using enum Identity;
  // What nsys knows that a training workload on Linux may use; nsys itself says when it was built without one of them.
  const std::vector<std::string> nsys_traces{"cuda",     "nvtx",     "osrt", "cublas", "cublas-verbose", "cudnn",
                                             "cusolver", "cusparse", "mpi",  "ucx",    "openmp",         "syscall"};
  const auto measure = [](auto member) { return in(&Case::measure, member); };
  const auto run = [](auto member) { return in(&Case::run, member); };
  const auto cluster = [](auto member) { return in(&Case::cluster, member); };
  const auto profile = [](auto member) { return in(&Case::profile, member); };
  return {
      decides_duration(row("measure", "warmup", integer(0, most_steps), measure(&MeasureSettings::warmup), counts,
                           "unmeasured steps")),
      decides_duration(row("measure", "steps", integer(1, most_steps), steps_unless_until(), counts,
                           "measured steps, or a rule instead, [measure.until]; absent: 0.5 s, 10 to 50 steps")),
      decides_duration(row("measure.until", "relative_error", share(), in_until(&StoppingRuleOf::relative_error),
                           counts, "half the width of the mean's confidence interval over the mean")),
      decides_duration(row("measure.until", "confidence", share(), in_until(&StoppingRuleOf::confidence), counts,
                           "of that interval")),
      decides_duration(row("measure.until", "min_steps", integer(2, most_steps), in_until(&StoppingRuleOf::min_steps),
                           counts, "at least, however well the mean is known")),
      decides_duration(row("measure.until", "max_steps", integer(2, most_steps), in_until(&StoppingRuleOf::max_steps),
                           counts, "at most, however badly it is known")),
      decides_duration(row("measure", "sync", flag(), measure(&MeasureSettings::sync), counts,
                           "wait for the device after each sample")),
      decides_duration(row("measure", "inner", inner_count(most_inner), measure(&MeasureSettings::inner),
                           counts_unless_default,
                           "steps a sample, back to back (\"Several steps a sample\"); \"auto\": as many as needed")),
      decides_duration(row("measure", "cold_cache", flag(), measure(&MeasureSettings::cold_cache),
                           counts_unless_default, "flush the caches before each step")),
      decides_duration(row("measure", "prepare", flag(), measure(&MeasureSettings::prepare), counts_unless_default,
                           "false: the first step does all set-up (\"Cold start\")")),
      row("measure", "timeout", duration(), measure(&MeasureSettings::timeout), ignored,
          R"(limit of the whole case: "500ms", "90s", "1h30m", or a number of seconds)"),
      row("run", "device", device_name(), run(&RunSettings::device), counts,
          "auto | cpu | cuda; auto takes a GPU if there is one, and reports it"),
      ranks(),
      row("run", "copies", flag(), run(&RunSettings::copies), counts_unless_default,
          "true: independent ranks run side by side, as copies (ranks.md)"),
      decides_duration(row("run", "bind", word({"none", "cores"}), run(&RunSettings::bind), counts_unless_default,
                           "none | cores: each rank keeps to its share of the host's cores")),
      row("run", "stall_timeout", duration_or_none(), run(&RunSettings::stall_timeout), ignored,
          R"(several ranks: how long all may show no sign of life; "0s": no limit)"),
      row("run", "wireup_timeout", duration(), run(&RunSettings::wireup_timeout), ignored,
          "several ranks: how long they wait for one another to start"),
      row("run", "teardown_timeout", duration(), run(&RunSettings::teardown_timeout), ignored,
          "how long a worker may take to end after its result, which is kept"),
      row("run", "isolate", flag(), run(&RunSettings::isolate), ignored, "a worker process per case"),
      list("run", "allow", word(record::status_words()), run(&RunSettings::allow), ignored,
           "statuses that do not fail the run"),
      list("run", "hosts", ssh_host(), hosts_if_any(), ignored,
           "ranks run on these hosts, by ssh; the first has the results (hosts.md)"),
      row("run", "seed", unsigned_integer(), run(&RunSettings::seed), counts, "where random numbers begin"),
      decides_duration(row("run", "threads", integer(0, most_processes), run(&RunSettings::threads), counts,
                           "CPU threads of each rank; 0: OMP_NUM_THREADS, or the usable processors / local ranks")),
      row("run", "memory_limit", size_above_0(), run(&RunSettings::memory_limit_bytes), counts,
          "resident memory of a worker and what it starts; absent: no limit"),
      row("run", "repeat", integer(1, most_repeats), in(&OutputSettings::repeat), ignored,
          "how often each case runs, each with a record (\"Repeats\")"),
      row("run", "order", word({"turns", "together"}), in(&OutputSettings::repeat_order), ignored,
          "of repeats. turns: all cases, then all again; together: case by case"),
      row("run", "verify", word({"full", "first", "sampled"}), in(&OutputSettings::verify), ignored,
          "full: each case; first: the first of cases that compute the same; sampled: one in ten (\"Verifying less\")"),
      row("run", "log_limit", size_from(smallest_log_bytes), run(&RunSettings::log_limit_bytes), ignored,
          "of a worker's log; more is dropped from its middle"),
      row("cluster", "nodes", integer(1, most_nodes), cluster(&ClusterSettings::nodes), counts_unless_default,
          "machines that a case runs on"),
      row("cluster", "ranks_per_node", per_node_count(most_processes), cluster(&ClusterSettings::ranks_per_node),
          counts_unless_default, R"(a number, or "auto": as [run] ranks needs, else 1)"),
      row("cluster", "budget", duration(), cluster(&ClusterSettings::budget), ignored,
          "time of a case with set-up and verification; absent: learned, or the site's"),
      row("cluster", "each_node", flag(), cluster(&ClusterSettings::each_node), ignored,
          "the same cases on each node, or each pair of nodes"),
      row("cluster", "node", node_names(), cluster(&ClusterSettings::node), counts_unless_default,
          "the case runs only there: \"n1\", \"n1+n2\""),
      row("output", "dir", folder(), in(&OutputSettings::dir), ignored,
          "the folder for results, relative to where assay runs"),
      list("output", "formats", word({"json", "csv", "markdown"}), in(&OutputSettings::formats), ignored,
           "files of a run: its summary and its table"),
      list("output", "columns", any_text("column names"), columns_if_any(), ignored,
           "of the tables; absent: chosen from the workload's"),
      relative_to(),
      decides_duration(row("profile", "nvtx", flag(), profile(&ProfileSettings::nvtx), counts,
                           "named ranges: `measure`, in it each `step`, in that its phases; without the warm-up")),
      decides_duration(row("profile", "nsys", flag(), profile(&ProfileSettings::nsys), counts_unless_default,
                           "the worker runs under nsys")),
      list("profile", "nsys_trace", word(nsys_traces), profile(&ProfileSettings::nsys_trace), counts_unless_default,
           "what nsys traces, by its names"),
      decides_duration(row("profile", "ncu", flag(), profile(&ProfileSettings::ncu), counts_unless_default,
                           "Nsight Compute counts one step's work by kernel; the case has no times")),
      decides_duration(row("profile", "ncu_launches", integer(1, most_launches),
                           profile(&ProfileSettings::ncu_launches), counts_unless_default,
                           "kernels at most; each runs several times")),
      decides_duration(row("profile", "kernels", flag(), profile(&ProfileSettings::kernels), counts_unless_default,
                           "a table of kernels per phase")),
      decides_duration(row("profile", "memory_snapshot", flag(), profile(&ProfileSettings::memory_snapshot), counts,
                           "memory_case-NNNN.pickle, for PyTorch's memory viewer")),
  };
}

template <class Predicate>
const Setting* find_if(const std::vector<Setting>& table, Predicate matches) {
  const auto it = std::find_if(table.begin(), table.end(), matches);
  return it == table.end() ? nullptr : &*it;
}

}  // namespace

void Setting::store(const Values& values, Case& of_case, OutputSettings& output) const {
  if (const auto* in_case = std::get_if<Storage<Case>>(&storage))
    in_case->store(values, of_case);
  else
    std::get<Storage<OutputSettings>>(storage).store(values, output);
}

std::optional<Values> Setting::read(const Case& of_case, const OutputSettings& output) const {
  if (const auto* in_case = std::get_if<Storage<Case>>(&storage)) return in_case->read(of_case);
  return std::get<Storage<OutputSettings>>(storage).read(output);
}

void Setting::store(const Value& value, Case& into) const { std::get<Storage<Case>>(storage).store({value}, into); }

std::optional<Value> Setting::apply(const Value& found, Case& into) const {
  auto value = accept(found);
  if (value) store(*value, into);
  return value;
}

std::optional<Value> Setting::read(const Case& from) const {
  const auto values = std::get<Storage<Case>>(storage).read(from);
  return values ? std::optional(values->at(0)) : std::nullopt;
}

bool Setting::apply_list(const Values& found, Case& into) const {
  Values values;
  for (const Value& element : found) {
    const auto value = accept(element);
    if (!value) return false;
    values.push_back(*value);
  }
  std::get<Storage<Case>>(storage).store(values, into);
  return true;
}

std::optional<Values> Setting::read_list(const Case& from) const { return std::get<Storage<Case>>(storage).read(from); }

bool takes_as_long(const std::vector<std::pair<std::string, Value>>& then, const Case& now) {
  for (const Setting& setting : settings_table()) {
    if (!setting.decides_duration) continue;
    const auto recorded =
        std::find_if(then.begin(), then.end(), [&](const auto& each) { return each.first == setting.name; });
    const std::optional<Value> value = setting.read(now);
    // Some are there only where they are given, as `measure.steps`.
    const std::optional<Value> was = recorded != then.end() ? std::optional(recorded->second) : setting.read(Case{});
    if (was != value) return false;
  }
  return true;
}

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> table = make_table();
  return table;
}

const std::vector<Setting>& settings_table() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> of_case;
    for (const auto& section : setting_sections())
      for (const auto& setting : all_settings())
        if (setting.section == section && setting.is_of_case()) of_case.push_back(setting);
    return of_case;
  }();
  return table;
}

const Setting* find_setting(std::string_view name) {
  return find_if(settings_table(), [&](const Setting& setting) { return setting.name == name; });
}

const Setting* find_list_setting(std::string_view name) {
  return find_if(all_settings(),
                 [&](const Setting& setting) { return setting.is_list_of_case() && setting.name == name; });
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& setting : settings_table()) names.push_back(setting.name);
  return names;
}

const std::vector<std::string>& setting_sections() {
  static const std::vector<std::string> sections = [] {
    std::vector<std::string> found;
    for (const auto& setting : all_settings())
      if (std::find(found.begin(), found.end(), setting.section) == found.end()) found.push_back(setting.section);
    return found;
  }();
  return sections;
}

std::vector<std::string> keys_of_section(std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  std::vector<std::string> keys;
  for (const auto& setting : all_settings()) {
    if (!setting.name.starts_with(prefix)) continue;
    auto key = setting.name.substr(prefix.size());
    key.resize(std::min(key.find('.'), key.size()));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

const Setting* find_in_section(std::string_view section, std::string_view key) {
  return find_if(all_settings(),
                 [&](const Setting& setting) { return setting.section == section && setting.key == key; });
}

}  // namespace assay::host::experiment
