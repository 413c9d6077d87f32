#include "findings.hpp"

#include <assay/comm/exchange.hpp>
#include <cstdio>

namespace node_check {

void Findings::add(const Findings& more) {
  checked += more.checked, wrong += more.wrong;
  if (first.empty()) first = more.first;
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string verdict_of_ranks(const assay::Host& host, const Launch& launch, const Findings& mine,
                             const std::string& what) {
  struct Counts {
    std::int64_t checked, wrong;
  };
  Counts all{0, 0};
  std::string wrong_ranks;
  std::size_t rank = 0;
  for (const Counts& of_rank : assay::comm::exchange(host, "node_check.verified", Counts{mine.checked, mine.wrong})) {
    all.checked += of_rank.checked, all.wrong += of_rank.wrong;
    if (of_rank.wrong > 0) wrong_ranks += (wrong_ranks.empty() ? "" : ", ") + std::to_string(rank);
    ++rank;
  }
  launch.report(Reports::wrong_elements_metric, all.wrong);
  const std::string checked = std::to_string(all.checked) + " elements on " + std::to_string(rank) + " rank(s)";
  if (mine.wrong > 0)
    throw assay::Error(ASSAY_WRONG_RESULT, what + ": " + std::to_string(all.wrong) + " of " + checked +
                                               " are wrong, on rank(s) " + wrong_ranks + "; here " + mine.first);
  return what + ": " + checked + ", all exact" + (all.wrong > 0 ? " but those of rank(s) " + wrong_ranks : "");
}

}  // namespace node_check
