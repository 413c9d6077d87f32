// Every workload is run with every mutant that can change a number in it, and must answer `wrong_result`.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>
#include <utility>

#include "summaries.hpp"
#include "table.hpp"

namespace assay::mutants {
namespace {

class Mutants : public test::Sandbox {};

// ASSAY_MUTANT_CASES: what the names of the cases to try begin with ("decoder", "ddp/bf16"); absent: all.
bool is_wanted(const TriedCase& c) {
  const char* const wanted = std::getenv("ASSAY_MUTANT_CASES");
  return !wanted || c.name().starts_with(wanted);
}

// ASSAY_MUTANT_NAMES: what the names of the mutants to try begin with ("model.", "matmul"); absent: all.
bool is_wanted(const AnyMutant& mutant) {
  const char* const wanted = std::getenv("ASSAY_MUTANT_NAMES");
  return !wanted || mutant.name.starts_with(wanted);
}

// ASSAY_MUTANTS=in_every_case: an operation's mutant runs in every case that reaches it; absent: in the first of each
// workload.
bool run_in_every_case() {
  const char* const wanted = std::getenv("ASSAY_MUTANTS");
  return wanted && std::string_view(wanted) == "in_every_case";
}

bool tries_what_is_wanted(const TriedCase& c) {
  return is_wanted(c) && std::any_of(all_mutants().begin(), all_mutants().end(),
                                     [&](const AnyMutant& m) { return is_wanted(m) && c.tries(m); });
}

std::string first_lines(const std::string& text) { return text.substr(0, 2000); }

// ASSAY_MUTANT_DEVICE: "cuda", or absent: "cpu".
std::string tried_device() {
  const char* const device = std::getenv("ASSAY_MUTANT_DEVICE");
  return device ? device : "cpu";
}

TEST_F(Mutants, EveryWorkloadAnswersWrongResult) {
  const std::string device = tried_device();
  if (device == "cuda" && !std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "there is no GPU";
  const std::vector<TriedCase>& cases = tried_cases(device);
  // Without a mutant: each case is right through the same libraries, and shows which mutants can reach it.
  std::vector<Trial> controls;
  for (const TriedCase& c : cases)
    if (tries_what_is_wanted(c)) controls.push_back({.tried = &c});
  run_trials(controls, *this);
  std::vector<Trial> trials;
  const bool in_every_case = run_in_every_case();
  std::set<std::pair<std::string, std::size_t>> tried_in;  // workload, mutant of an operation
  for (const Trial& control : controls) {
    EXPECT_EQ(control.status, "ok") << control.tried->name() << " without a mutant: " << first_lines(control.said);
    for (std::size_t mutant = 0; mutant < all_mutants().size(); ++mutant) {
      const AnyMutant& m = all_mutants()[mutant];
      if (!is_wanted(m) || !control.tried->tries(m)) continue;
      // A source mutant names its cases: one that does not reach it is a mistake of the table.
      const bool is_new =
          m.is_of_sources() ||
          (control.reached[mutant] > 0 && (tried_in.emplace(control.tried->workload, mutant).second || in_every_case));
      if (is_new) trials.push_back({.tried = control.tried, .mutant = mutant});
    }
  }
  run_trials(trials, *this);

  std::vector<Finding> findings;
  for (const Trial& trial : trials) findings.push_back(judge(trial));
  const std::string table = table_of(findings, cases);
  std::cout << table << std::flush;
  std::ofstream(TABLE_FOLDER "/table_" + device + ".md") << table;

  // As known_to_survive.txt would have to be.
  std::ofstream survivors(TABLE_FOLDER "/survivors_" + device + ".txt");
  for (const Finding& f : findings)
    if (f.verdict == Verdict::known_to_survive || f.verdict == Verdict::survived)
      survivors << all_mutants()[f.trial->mutant].name << ' ' << f.trial->tried->name() << ' '
                << (f.exception ? f.exception->reason : "not yet found") << '\n';

  std::vector<bool> tried(all_mutants().size());
  for (const Finding& f : findings) {
    const std::string name = std::string(all_mutants()[f.trial->mutant].name) + " in " + f.trial->tried->name();
    tried[f.trial->mutant] = true;
    EXPECT_NE(f.verdict, Verdict::survived) << name << " was not found: " << first_lines(f.trial->said);
    EXPECT_NE(f.verdict, Verdict::not_reached) << name << " was never reached";
    EXPECT_NE(f.verdict, Verdict::failed) << name << ": " << f.trial->status << ": " << first_lines(f.trial->said);
    if (f.refuted)
      ADD_FAILURE() << name << " is listed in explained.txt (" << f.refuted->reason
                    << "), but was found: " << first_lines(f.trial->said) << "; take it off the list";
  }
  const std::string summaries[] = {summary_of(findings, cases), summary_of_classes(findings, cases)};
  std::ofstream(TABLE_FOLDER "/summary_" + device + ".md") << summaries[0] << '\n' << summaries[1];
  const bool is_whole = controls.size() == cases.size() && !std::getenv("ASSAY_MUTANT_NAMES") && !in_every_case;
  if (device != "cpu" || !is_whole) return;
  for (const std::string& summary : summaries)
    EXPECT_NE(test::text_of(EXPECTATIONS_FOLDER "/README.md").find(summary), std::string::npos)
        << "a table of tests/mutants/README.md is another; replace it by that of " TABLE_FOLDER "/summary_cpu.md:\n"
        << summary;
  for (std::size_t i = 0; i < all_mutants().size(); ++i)
    EXPECT_TRUE(tried[i]) << all_mutants()[i].name << " is reached by no case: add one that reaches it";
}

}  // namespace
}  // namespace assay::mutants
