// What a rank's verification has found, and what all ranks make of it: a record names the ranks whose results are
// wrong.
#pragma once
#include <assay/plugin.hpp>

#include <cstdint>
#include <string>

#include "check.hpp"

namespace node_check {

struct Findings {
  std::int64_t checked = 0, wrong = 0;
  std::string first;  // where the first wrong element is, what was found there and what was expected

  void add(const Findings& more);
};

// Every rank calls it, once. Returns what the record says of a right result, or throws assay::Error(WRONG_RESULT): only
// where this rank has found something wrong, so that the record is that of such a rank, with its host. `what`: the
// subject of the text.
std::string verdict_of_ranks(const assay::Host& host, const Launch& launch, const Findings& mine,
                             const std::string& what);

std::string number(double x);

}  // namespace node_check
