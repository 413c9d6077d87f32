// The table of settings itself: whatever holds for every row.
#include "experiment/settings.hpp"

#include "demo_workload.hpp"
#include "experiment/hash.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace assay::host::experiment::test {
namespace {

std::string literal(const Setting& setting, const Values& values) {
  if (setting.is_table) return "{ " + to_text(values.at(0)) + " = " + shown(values.at(1)) + " }";
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + shown(value);
  return setting.is_list ? "[" + text + "]" : text;
}

// A value that the setting takes and that is not what it is at first.
Values other_values(const Setting& setting) {
  std::vector<Value> pool(setting.choices.begin(), setting.choices.end());
  for (const char* text : {"90s", "3MiB", "elsewhere"}) pool.emplace_back(std::string(text));
  for (const std::int64_t number : {77, 3}) pool.emplace_back(number);
  for (const double number : {0.25, 0.5}) pool.emplace_back(number);
  for (const bool on : {false, true}) pool.emplace_back(on);
  if (setting.name == "output.columns") return {std::string("size")};
  if (setting.is_table) return {std::string("size"), std::string("small")};
  for (const auto& value : pool) {
    const auto accepted = setting.accept(value);
    if (accepted && Values{*accepted} != setting.initial) return {*accepted};
  }
  ADD_FAILURE() << setting.name << " takes none of the values of this test; expected one more in its pool";
  return {};
}

// A table of axes needs a sweep that has them.
std::string text_before(const Setting& setting) { return setting.is_table ? "[sweep]\nsize = [\"small\"]\n" : ""; }

std::string text_with(const Setting& setting, const Values& values) {
  return experiment_text(text_before(setting) + "[" + setting.section + "]\n" + setting.key + " = " +
                         literal(setting, values) + "\n");
}

class EverySetting : public testing::TestWithParam<Setting> {};

TEST_P(EverySetting, HasANameAndAHelpOfOneLine) {
  const Setting& setting = GetParam();
  EXPECT_EQ(setting.name, setting.section + "." + setting.key);
  EXPECT_FALSE(setting.help.empty());
  EXPECT_EQ(setting.help.find('\n'), std::string::npos);
  EXPECT_FALSE(setting.expected.empty());
}

TEST_P(EverySetting, TakesItsDefaultAsItIsWritten) {
  const Setting& setting = GetParam();
  for (const auto& value : setting.initial.value_or(Values{})) EXPECT_EQ(setting.accept(value), value);
  if (setting.is_list || !setting.initial) return;
  EXPECT_PRED2([](const std::string& text, const std::string& end) { return text.find(end) != std::string::npos; },
               setting.expected, to_text(setting.initial->at(0)));
}

TEST_P(EverySetting, IsReadBackAsItWasStored) {
  const Setting& setting = GetParam();
  Case c;
  OutputSettings output;
  if (setting.section != "measure.until") {
    EXPECT_EQ(setting.read(c, output), setting.initial);
  }
  const Values values = other_values(setting);
  setting.store(values, c, output);
  EXPECT_EQ(setting.read(c, output), values);
}

TEST_P(EverySetting, IsReadFromAFileWrittenOutAndReadAgain) {
  const Setting& setting = GetParam();
  const Values values = other_values(setting);
  const std::size_t cases = setting.name == "run.repeat" ? 77 : 1;
  for (const auto& experiment :
       {good(text_with(setting, values)),
        good(experiment_text(text_before(setting)), {setting.name + "=" + literal(setting, values)})}) {
    ASSERT_EQ(experiment.cases.size(), cases);
    EXPECT_EQ(setting.read(experiment.cases[0], experiment.output), values);
    const auto& resolved = experiment.resolved_toml;
    const auto section = resolved.find("\n[" + setting.section + "]\n");
    ASSERT_NE(section, std::string::npos) << resolved;
    const auto line = resolved.find("\n" + setting.key + " = " + literal(setting, values) + "\n", section);
    EXPECT_LT(line, resolved.find("\n\n", section)) << resolved;
    const auto again = good(resolved);
    ASSERT_EQ(again.cases.size(), cases);
    EXPECT_EQ(setting.read(again.cases[0], again.output), values);
  }
}

TEST_P(EverySetting, IsAnAxisAndAColumnExactlyWhenItIsOfACase) {
  const Setting& setting = GetParam();
  const std::string value = literal(setting, other_values(setting));
  const auto swept = parse(experiment_text("[sweep]\n\"" + setting.name + "\" = [" + value + "]\n"));
  EXPECT_EQ(swept.experiment.has_value(), setting.is_of_case());
  EXPECT_EQ(find_setting(setting.name) != nullptr, setting.is_of_case());
  EXPECT_EQ(parse(experiment_text("[output]\ncolumns = [\"" + setting.name + "\"]\n")).experiment.has_value(),
            setting.is_of_case());
  const auto in_record = good(text_with(setting, other_values(setting))).cases.at(0).settings();
  EXPECT_EQ(in_record.count(setting.name) == 1, setting.is_of_case());
}

TEST_P(EverySetting, CountsInTheHashAsItsRowSays) {
  const Setting& setting = GetParam();
  Case plain, other;
  OutputSettings output;
  if (setting.section == "measure.until") plain.measure.until.emplace(), other.measure.until.emplace();
  setting.store(other_values(setting), other, output);
  EXPECT_EQ(case_hash(plain, "demo", {}) == case_hash(other, "demo", {}), setting.identity == Identity::ignored);
}

TEST_P(EverySetting, AWrongValueIsAMistakeThatSaysWhatIsExpected) {
  const Setting& setting = GetParam();
  const auto messages = lines(parse(experiment_text("[" + setting.section + "]\n" + setting.key + " = 2020-01-01\n")));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].find("[" + setting.section + "] " + setting.key + " is 2020-01-01 (a date or time); expected " +
                             setting.expected),
            std::string::npos)
      << messages[0];
}

INSTANTIATE_TEST_SUITE_P(Settings, EverySetting, testing::ValuesIn(all_settings()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(Settings, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const auto& setting : all_settings()) EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
  EXPECT_EQ(setting_sections(),
            (std::vector<std::string>{"measure", "measure.until", "run", "cluster", "output", "profile"}));
}

TEST(Settings, StandTogetherSectionBySection) {
  std::vector<std::string> sections;
  for (const auto& setting : all_settings()) {
    const auto section = setting.section.substr(0, setting.section.find('.'));
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  EXPECT_EQ(std::set<std::string>(sections.begin(), sections.end()).size(), sections.size());
}

TEST(Settings, KeysAreListedInTheTablesOrderWithTheTablesAmongThem) {
  EXPECT_EQ(keys_of_section("measure"), (std::vector<std::string>{"warmup", "steps", "until", "sync", "inner",
                                                                  "cold_cache", "prepare", "timeout"}));
  EXPECT_EQ(keys_of_section("measure.until"),
            (std::vector<std::string>{"relative_error", "confidence", "min_steps", "max_steps"}));
  EXPECT_EQ(keys_of_section("nothing"), std::vector<std::string>{});
}

// docs/experiment.md is where users look the settings up.
class ExperimentPage : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(EXPERIMENT_PAGE);
    page_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    ASSERT_FALSE(page_.empty()) << EXPERIMENT_PAGE;
    std::istringstream lines(page_);
    bool in_example = false;
    std::string section;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) in_example = line == "```toml", section.clear();
      if (!in_example || line.starts_with("```")) continue;
      if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1);
      const auto key = line.substr(0, line.find(" = "));
      if (key.size() < line.size() && !section.empty()) examples_[section + "." + key] = line;
    }
  }
  std::string page_;
  std::map<std::string, std::string> examples_;  // "run.seed" -> its line
};

TEST_F(ExperimentPage, ShowsEverySettingWithItsHelp) {
  for (const auto& setting : all_settings()) {
    const auto line = examples_.find(setting.name);
    if (line == examples_.end()) {
      ADD_FAILURE() << "expected in an example's [" << setting.section << "]:\n"
                    << setting.key << " = ...  # " << setting.help;
      continue;
    }
    EXPECT_TRUE(line->second.ends_with("# " + setting.help))
        << line->second << "\nexpected its end: # " << setting.help;
  }
}

TEST_F(ExperimentPage, ShowsValuesThatTheSettingsTake) {
  for (const auto& [name, line] : examples_) {
    const auto dot = name.rfind('.');
    const Setting* setting = find_in_section(name.substr(0, dot), name.substr(dot + 1));
    if (!setting || name == "output.columns" || setting->is_table)
      continue;  // those of the example are another workload's
    const auto messages = lines(parse(experiment_text("[" + setting->section + "]\n" + line + "\n")));
    EXPECT_EQ(messages, std::vector<std::string>{}) << line;
  }
}

TEST_F(ExperimentPage, NamesTheSettingsThatAreNoPartOfACasesIdentity) {
  const auto begin = page_.find("do not count in it");
  ASSERT_NE(begin, std::string::npos);
  const auto paragraph_begin = page_.rfind("\n\n", begin);
  const auto paragraph = page_.substr(paragraph_begin, page_.find("\n\n", begin) - paragraph_begin);
  for (const auto& setting : all_settings()) {
    if (setting.section == "output") continue;  // named as a whole
    EXPECT_EQ(paragraph.find("`" + setting.name + "`") != std::string::npos, setting.identity == Identity::ignored)
        << setting.name << " in:" << paragraph;
  }
}

}  // namespace
}  // namespace assay::host::experiment::test
