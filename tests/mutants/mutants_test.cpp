// Every workload is run with every mutant that can change a number in it, and must answer `wrong_result`.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "table.hpp"

namespace assay::mutants {
namespace {

class Mutants : public test::Sandbox {};

// ASSAY_MUTANT_CASES: what the names of the cases to try begin with ("decoder", "ddp/bf16"); absent: all.
bool is_wanted(const TriedCase& c) {
  const char* const wanted = std::getenv("ASSAY_MUTANT_CASES");
  return !wanted || c.name().starts_with(wanted);
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
  // Without a mutant: each case is right through the same libraries, and tells which mutants can reach it.
  std::vector<Trial> controls;
  for (const TriedCase& c : cases)
    if (is_wanted(c)) controls.push_back({.tried = &c});
  run_trials(controls, *this);
  std::vector<Trial> trials;
  for (const Trial& control : controls) {
    EXPECT_EQ(control.status, "ok") << control.tried->name() << " without a mutant: " << first_lines(control.said);
    for (std::size_t mutant = 0; mutant < mutants.size(); ++mutant)
      if (control.reached[mutant] > 0 && control.tried->tries(mutants[mutant].name))
        trials.push_back({.tried = control.tried, .mutant = mutant});
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
      survivors << mutants[f.trial->mutant].name << ' ' << f.trial->tried->name() << ' '
                << (f.exception ? f.exception->reason : "not yet found") << '\n';

  std::vector<bool> tried(mutants.size());
  for (const Finding& f : findings) {
    const std::string name = std::string(mutants[f.trial->mutant].name) + " in " + f.trial->tried->name();
    tried[f.trial->mutant] = true;
    EXPECT_NE(f.verdict, Verdict::survived) << name << " was not found: " << first_lines(f.trial->said);
    EXPECT_NE(f.verdict, Verdict::not_reached) << name << " was never reached";
    EXPECT_NE(f.verdict, Verdict::failed) << name << ": " << f.trial->status << ": " << first_lines(f.trial->said);
    if (f.refuted)
      ADD_FAILURE() << name << " is listed in explained.txt (" << f.refuted->reason
                    << "), but was found: " << first_lines(f.trial->said) << "; take it off the list";
  }
  if (device != "cpu" || controls.size() != cases.size()) return;
  const std::string summary = summary_of(findings, cases);
  std::ofstream(TABLE_FOLDER "/summary_cpu.md") << summary;
  EXPECT_NE(test::text_of(EXPECTATIONS_FOLDER "/README.md").find(summary), std::string::npos)
      << "the table of tests/mutants/README.md is another; replace it by " TABLE_FOLDER "/summary_cpu.md:\n"
      << summary;
  for (std::size_t i = 0; i < mutants.size(); ++i)
    EXPECT_TRUE(tried[i]) << mutants[i].name << " is reached by no case: add one that reaches it";
}

}  // namespace
}  // namespace assay::mutants
