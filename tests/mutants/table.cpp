#include "table.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace assay::mutants {
namespace {

const Exception* find(const std::vector<Exception>& list, const Trial& trial) {
  for (const Exception& e : list)
    if (e.is_of(mutants[trial.mutant].name, trial.tried->name())) return &e;
  return nullptr;
}

std::string list_of(const std::vector<Finding>& findings, Verdict verdict, const std::string& title) {
  std::string text;
  for (const Finding& f : findings) {
    if (f.verdict != verdict) continue;
    text += "- `" + std::string(mutants[f.trial->mutant].name) + "` in " + f.trial->tried->name() + ": ";
    if (f.exception) text += f.exception->reason + (verdict == Verdict::explained ? "" : "; ");
    if (verdict != Verdict::explained) text += f.trial->status + "; " + f.trial->said;
    text += "\n";
  }
  return text.empty() ? "" : "\n" + title + "\n\n" + text;
}

struct Counts {
  int killed = 0, explained = 0, survived = 0, other = 0;
  void add(Verdict v) {
    switch (v) {
      case Verdict::killed: ++killed; break;
      case Verdict::explained: ++explained; break;
      case Verdict::known_to_survive:
      case Verdict::survived: ++survived; break;
      case Verdict::not_reached:
      case Verdict::failed: ++other; break;
    }
  }
  int all() const { return killed + explained + survived + other; }
  std::string text() const {
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
};

std::vector<std::string> workloads_of(const std::vector<TriedCase>& cases) {
  std::vector<std::string> workloads;
  for (const TriedCase& c : cases)
    if (workloads.empty() || workloads.back() != c.workload) workloads.push_back(c.workload);
  return workloads;
}

}  // namespace

Finding judge(const Trial& trial) {
  if (trial.reached[trial.mutant] == 0) return {&trial, Verdict::not_reached};
  const Exception* const reason = find(explained(), trial);
  const Exception* const known = find(known_to_survive(), trial);
  if (trial.status == "wrong_result") return {&trial, Verdict::killed, nullptr, reason};
  if (trial.status != "ok") return {&trial, Verdict::failed};
  if (reason) return {&trial, Verdict::explained, reason};
  if (known) return {&trial, Verdict::known_to_survive, known};
  return {&trial, Verdict::survived};
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

std::string table_of(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases) {
  const std::vector<std::string> workloads = workloads_of(cases);
  std::map<std::size_t, std::map<std::string, Counts>> rows;
  std::map<Verdict, int> totals;
  for (const Finding& f : findings) {
    rows[f.trial->mutant][f.trial->tried->workload].add(f.verdict);
    ++totals[f.verdict];
  }
  std::string text = "| mutant | what is broken |";
  std::string rule = "| --- | --- |";
  for (const std::string& w : workloads) text += " " + w + " |", rule += " --- |";
  text += "\n" + rule + "\n";
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    if (rows[i].empty()) continue;
    text += "| " + std::string(mutants[i].name) + " | " + std::string(mutants[i].what) + " |";
    for (const std::string& w : workloads) text += " " + rows[i][w].text() + " |";
    text += "\n";
  }
  text += "\n" +
          std::to_string(std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.second.empty(); })) +
          " mutants in " + std::to_string(findings.size()) + " trials: " + std::to_string(totals[Verdict::killed]) +
          " killed, " + std::to_string(totals[Verdict::explained]) + " explained, " +
          std::to_string(totals[Verdict::known_to_survive] + totals[Verdict::survived]) + " survived, " +
          std::to_string(totals[Verdict::failed] + totals[Verdict::not_reached]) + " failed\n";
  text += list_of(findings, Verdict::explained, "Explained: the mutant changes no result.");
  text += list_of(findings, Verdict::known_to_survive, "Known to survive:");
  text += list_of(findings, Verdict::survived, "SURVIVED:");
  text += list_of(findings, Verdict::not_reached, "Not reached, though the case without a mutant came there:");
  text += list_of(findings, Verdict::failed, "Neither `ok` nor `wrong_result`:");
  return text;
}

}  // namespace assay::mutants
