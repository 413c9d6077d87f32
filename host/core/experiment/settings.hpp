// The settings of an experiment file: [measure], [run], [output] and [profile], a row each.
//
// Reading and checking a file, the resolved file, hashes, --set, axes, filters, columns and the settings in a record
// walk this table, and the tests hold docs/experiment.md to it. A new setting is a row here, with its member in
// experiment.hpp, and the place that uses it.
#pragma once
#include "experiment/experiment.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace assay::host::experiment {

// Whether another value makes another case, whose earlier results do not count for it (--resume).
enum class Identity {
  counts,
  counts_unless_default,  // it came after results had been written, which keep their hashes this way
  ignored,                // it changes no figure
};

// A setting as a file has it: one value, the elements of an array, or the keys of a table, each before its value.
using Values = std::vector<Value>;

// Where a setting is kept while the host runs.
template <class Owner>
struct Storage {
  std::function<void(const Values&, Owner&)> store;         // values in their written form
  std::function<std::optional<Values>(const Owner&)> read;  // nothing when the owner has none
};

struct Setting {
  std::string section;  // "run"; "measure.until" for a table in a section
  std::string key;      // "seed"
  std::string name;     // "run.seed": the name of an axis, of a column and for --set
  std::string help;     // as docs/experiment.md has it

  std::string expected;  // by a message: "an integer >= 0 (default 5)"
  // By the message for an empty string, where that is wrong for another reason than every other text; else "".
  std::string expected_of_empty;
  std::vector<std::string> choices;  // the words it takes
  // What to take in place of a word that it does not, as the end of a message ("; ..."), or ""; it may be empty.
  std::function<std::string(const std::string& word)> hint;
  bool is_list = false;
  bool is_table = false;          // its keys are the experiment's own, and what they may be is checked with the sweep
  std::optional<Values> initial;  // what it is when the file does not set it; absent: it is not set then

  Identity identity = Identity::counts;
  std::optional<Value> initial_counts_as;  // in the hash, in place of `initial`
  // It says how much is done, so that what a case took with another value does not say how long it takes now. Ranks and
  // the device do so, too, but are known only when a plan is made; limits and seeds do not.
  bool decides_duration = false;

  // One value, or one element of a list, in its one written form ("600s" becomes "10m"). Nothing when the setting does
  // not take it.
  std::function<std::optional<Value>(const Value& found)> accept;
  // In a case, or in what is of the run as a whole.
  std::variant<Storage<Case>, Storage<OutputSettings>> storage;

  // Cases may differ in it: it may be an axis, a column and a key of --filter, and a record has it.
  bool is_of_case() const { return !is_list && !is_table && std::holds_alternative<Storage<Case>>(storage); }

  // A list that a case has: it travels with the case to its worker, and may count in the hash.
  bool is_list_of_case() const { return is_list && std::holds_alternative<Storage<Case>>(storage); }

  void store(const Values& values, Case& of_case, OutputSettings& output) const;
  std::optional<Values> read(const Case& of_case, const OutputSettings& output) const;
  // The same for a setting of a case.
  void store(const Value& value, Case& into) const;
  std::optional<Value> apply(const Value& found, Case& into) const;  // accept(), and store() what it gave
  std::optional<Value> read(const Case& from) const;
  // The same for a list of a case: stores nothing, and says so, unless all elements are accepted.
  bool apply_list(const Values& found, Case& into) const;
  std::optional<Values> read_list(const Case& from) const;
};

// Every setting. Those of a section stand together; a table in a section stands where its key is listed.
const std::vector<Setting>& all_settings();
// Those of a case, section by section, in the order in which a resolved file has them.
const std::vector<Setting>& settings_table();
const Setting* find_setting(std::string_view name);       // of a case
const Setting* find_list_setting(std::string_view name);  // a list of a case
std::vector<std::string> setting_names();                 // of a case

// Does a case that had the settings `then`, as its record has them, take as long as `now`, as far as settings decide
// it? A setting that came after the record had its default.
bool takes_as_long(const std::vector<std::pair<std::string, Value>>& then, const Case& now);

// "measure", "measure.until", "run", "output", "profile": in the order of a resolved file.
const std::vector<std::string>& setting_sections();
inline bool is_in_another(std::string_view section) { return section.find('.') != std::string_view::npos; }
// The keys of a section in the table's order, a table in it among them: "warmup", "steps", "until", ...
std::vector<std::string> keys_of_section(std::string_view section);
const Setting* find_in_section(std::string_view section, std::string_view key);

}  // namespace assay::host::experiment
