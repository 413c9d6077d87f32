#include "summaries.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace assay::mutants {

void Counts::add(Verdict v) {
  switch (v) {
    case Verdict::killed: ++killed; break;
    case Verdict::explained: ++explained; break;
    case Verdict::known_to_survive:
    case Verdict::survived: ++survived; break;
    case Verdict::not_reached:
    case Verdict::failed: ++other; break;
  }
}

std::string Counts::text() const {
  const int all = this->all();
  if (all == 0) return "-";
  if (killed == all) return "killed";
  std::string text;
  const auto part = [&](int count, const char* word) {
    if (count > 0) text += (text.empty() ? "" : ", ") + (count == all ? "" : std::to_string(count) + " ") + word;
  };
  part(killed, "killed");
  part(explained, "explained");
  part(survived, "SURVIVED");
  part(other, "FAILED");
  return text;
}

std::vector<std::string> workloads_of(const std::vector<TriedCase>& cases) {
  std::vector<std::string> workloads;
  for (const TriedCase& c : cases)
    if (std::find(workloads.begin(), workloads.end(), c.workload) == workloads.end()) workloads.push_back(c.workload);
  return workloads;
}

std::string summary_of(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases) {
  std::string text = "| workload | cases | mutants | trials | killed | explained | survived |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- |\n";
  const auto add_row = [&](const std::string& title, const std::string& workload) {  // "": all of them
    std::set<std::string> tried_in;
    std::set<std::size_t> of_mutants;
    Counts counts;
    for (const Finding& f : findings) {
      if (!workload.empty() && f.trial->tried->workload != workload) continue;
      tried_in.insert(f.trial->tried->name());
      of_mutants.insert(f.trial->mutant);
      counts.add(f.verdict);
    }
    text += "| " + title;
    for (const std::size_t n : {tried_in.size(), of_mutants.size()}) text += " | " + std::to_string(n);
    for (const int n : {counts.all(), counts.killed, counts.explained, counts.survived})
      text += " | " + std::to_string(n);
    text += " |\n";
  };
  for (const std::string& workload : workloads_of(cases)) add_row(workload, workload);
  add_row("all", "");
  return text;
}

// A mutant counts as killed where each case that tries it finds it or has explained it.
std::string summary_of_classes(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases) {
  std::vector<std::string> classes;
  for (const AnyMutant& m : all_mutants())
    if (std::find(classes.begin(), classes.end(), m.mutant_class) == classes.end())
      classes.emplace_back(m.mutant_class);
  const auto cell = [&](const std::string& workload, const std::string& mutant_class) {  // workload "": all of them
    std::map<std::size_t, bool> found;
    for (const Finding& f : findings) {
      if (all_mutants()[f.trial->mutant].mutant_class != mutant_class) continue;
      if (!workload.empty() && f.trial->tried->workload != workload) continue;
      const bool here = f.verdict == Verdict::killed || f.verdict == Verdict::explained;
      const auto at = found.emplace(f.trial->mutant, true).first;
      at->second = at->second && here;
    }
    if (found.empty()) return std::string("-");
    const auto killed = std::count_if(found.begin(), found.end(), [](const auto& one) { return one.second; });
    return std::to_string(killed) + " / " + std::to_string(found.size());
  };
  std::string text = "| workload |", rule = "| --- |";
  for (const std::string& c : classes) text += " " + c + " |", rule += " --- |";
  text += "\n" + rule + "\n";
  const auto add_row = [&](const std::string& title, const std::string& workload) {
    text += "| " + title + " |";
    for (const std::string& c : classes) text += " " + cell(workload, c) + " |";
    text += "\n";
  };
  for (const std::string& workload : workloads_of(cases)) add_row(workload, workload);
  add_row("all", "");
  return text;
}

}  // namespace assay::mutants
