#include "settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>

#include "words.hpp"

namespace command {
namespace {

// What {name} may stand for beside parameters.
constexpr std::array<const char*, 4> own_names{"rank", "rank_count", "seed", "device"};

[[noreturn]] void refuse(const std::string& text) { throw assay::Error(ASSAY_INVALID_ARGUMENT, text); }

bool is_in_table(std::string_view name) {
  for (std::size_t i = 0; i < params.size(); ++i)
    if (name == params[i].row.name) return true;
  return false;
}

// The values that {name} stands for, and which of them were asked for.
class Values {
 public:
  explicit Values(const assay::Case& c) : case_(c), host_(c.host().abi()) {
    names_ = c.host().extension<assay_names>(ASSAY_EXT_NAMES);
    if (!names_) throw assay::Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_NAMES "; update assay");
  }

  std::string operator()(std::string_view name) {
    used_.insert(std::string(name));
    if (name == "rank") return std::to_string(case_.rank());
    if (name == "rank_count") return std::to_string(case_.rank_count());
    if (name == "seed") return std::to_string(case_.seed());
    if (name == "device") return std::string(case_.device_kind());
    if (auto text = text_of(name)) return *text;
    refuse("{" + std::string(name) +
           "} stands for no parameter: give it a value in [workload.params] or [sweep], or write {{" +
           std::string(name) + "}} for the braces themselves");
  }

  // A parameter that changes nothing would still distinguish its rows.
  void check_all_are_used() const {
    for (const std::string& name : case_names()) {
      if (is_in_table(name)) continue;
      if (std::find(own_names.begin(), own_names.end(), name) != own_names.end())
        refuse("the parameter '" + name + "' has a name that {" + name + "} stands for already; rename it");
      if (!used_.count(name))
        refuse("the parameter '" + name + "' reaches the program nowhere; write {" + name +
               "} in command or variables, or remove it");
    }
    for (const char* file : {"script", "input"})
      if (!used_.count(file) && !case_.get<std::string_view>(file).empty())
        refuse(std::string("the parameter '") + file + "' names a file that the program does not receive; write {" +
               file + "} in command or variables, or remove it");
  }

 private:
  std::vector<std::string> case_names() const {
    std::vector<std::string> names;
    assay_str name{};
    for (std::uint64_t i = 0; names_->param(names_, config(), i, &name) == ASSAY_OK; ++i)
      names.emplace_back(name.data, name.size);
    return names;
  }
  const assay_config* config() const { return case_.config(); }

  std::optional<std::string> text_of(std::string_view name) const {
    const assay_str key{name.data(), name.size()};
    std::int32_t flag = 0;
    std::int64_t integer = 0;
    double real = 0;
    assay_str text{};
    if (host_->get_string(config(), key, &text) == ASSAY_OK) return std::string(text.data, text.size);
    if (host_->get_int(config(), key, &integer) == ASSAY_OK) return std::to_string(integer);
    if (host_->get_bool(config(), key, &flag) == ASSAY_OK) return flag != 0 ? "true" : "false";
    if (host_->get_float(config(), key, &real) != ASSAY_OK) return std::nullopt;
    std::array<char, 40> digits{};  // the shortest that read back to the same
    return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), real).ptr);
  }

  const assay::Case& case_;
  const assay_host* host_;
  const assay_names* names_;
  std::set<std::string> used_;
};

Variable variable_in(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (word.empty() || equals == 0) refuse("parameter 'variables' has '" + word + "'; expected NAME=value, or NAME");
  if (equals == std::string::npos) return {word, std::nullopt};
  Variable variable{word.substr(0, equals), word.substr(equals + 1)};
  if (variable.name == "ASSAY_FD" || variable.name == "ASSAY_WAITING")
    refuse("parameter 'variables' sets " + variable.name + ", which is assay's to set; remove it" +
           (variable.name == "ASSAY_WAITING" ? ", and set the parameter waiting" : ""));
  return variable;
}

}  // namespace

Settings::Settings(const assay::Case& c) {
  Values values(c);
  const auto words = [&](const char* parameter) {
    std::vector<std::string> found = words_of(c.get<std::string_view>(parameter), parameter);
    for (std::string& word : found) word = filled(word, std::ref(values));
    return found;
  };
  command = words("command");
  if (command.empty() || command.front().empty()) refuse("parameter 'command' names no program");
  for (const std::string& word : words("variables")) environment.push_back(variable_in(word));
  directory = filled(c.get<std::string_view>("directory"), std::ref(values));
  step_is = c.choice("step_is", steps);
  waiting = c.choice("waiting", waiting_choices);
  if (waiting && step_is == StepIs::program)
    refuse("waiting applies between reported steps, which step_is = \"program\" does not have; remove waiting");
  items_per_step = c.get<std::uint64_t>("items_per_step");
  verify_metric = c.get<std::string>("verify_metric");
  verify_min = c.get<double>("verify_min"), verify_max = c.get<double>("verify_max");
  const bool has_range = verify_min > -no_bound || verify_max < no_bound;
  if (verify_metric.empty() && has_range)
    refuse("verify_min and verify_max are a range of no metric; name it in verify_metric");
  if (!verify_metric.empty() && !has_range)
    refuse("verify_metric is '" + verify_metric +
           "', and every value of it would be right; give verify_min or verify_max");
  if (!(verify_min <= verify_max)) refuse("verify_min is above verify_max: no value would be right");
  values.check_all_are_used();
}

}  // namespace command
