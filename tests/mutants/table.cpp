#include "table.hpp"

#include <algorithm>
#include <map>

#include "summaries.hpp"

namespace assay::mutants {
namespace {

const Exception* find(const std::vector<Exception>& list, const Trial& trial) {
  for (const Exception& e : list)
    if (e.is_of(all_mutants()[trial.mutant].name, trial.tried->name())) return &e;
  return nullptr;
}

std::string list_of(const std::vector<Finding>& findings, Verdict verdict, const std::string& title) {
  std::string text;
  for (const Finding& f : findings) {
    if (f.verdict != verdict) continue;
    text += "- `" + std::string(all_mutants()[f.trial->mutant].name) + "` in " + f.trial->tried->name() + ": ";
    if (f.exception) text += f.exception->reason + (verdict == Verdict::explained ? "" : "; ");
    if (verdict != Verdict::explained) text += f.trial->status + "; " + f.trial->said;
    text += "\n";
  }
  return text.empty() ? "" : "\n" + title + "\n\n" + text;
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

std::string table_of(const std::vector<Finding>& findings, const std::vector<TriedCase>& cases) {
  const std::vector<std::string> workloads = workloads_of(cases);
  std::map<std::size_t, std::map<std::string, Counts>> rows;
  std::map<Verdict, int> totals;
  for (const Finding& f : findings) {
    rows[f.trial->mutant][f.trial->tried->workload].add(f.verdict);
    ++totals[f.verdict];
  }
  std::string text = "| mutant | class | what is broken |";
  std::string rule = "| --- | --- | --- |";
  for (const std::string& w : workloads) text += " " + w + " |", rule += " --- |";
  text += "\n" + rule + "\n";
  for (std::size_t i = 0; i < all_mutants().size(); ++i) {
    if (rows[i].empty()) continue;
    const AnyMutant& m = all_mutants()[i];
    text += "| " + std::string(m.name) + " | " + std::string(m.mutant_class) + " | " + std::string(m.what) + " |";
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
