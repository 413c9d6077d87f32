// `assay ab`: two variants in turns.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "compare/statistic_words.hpp"

namespace assay::host::ab {

// One side, as options name it: --a, --a-plugins, --a-assay, --a-env.
struct AbSide {
  std::vector<std::string> settings, plugins, env;
  std::optional<std::string> assay;
};

struct AbRequest {
  std::vector<std::string> experiments;  // one, or that of A and that of B
  AbSide a, b;
  std::vector<std::string> set, filter, plugin_path;  // of both sides
  std::string metric = "step", statistic = compare::word_of(compare::TestOptions().statistic), max_time = "10m";
  double threshold = 2, confidence = 99, run_to_run = 0.1, states = 10;  // percent
  std::int64_t min_runs = 6, max_runs = 30;
  bool min_runs_given = false;
  std::optional<std::string> fail_if, output;
  bool a_a = false, bisect = false, dry_run = false, quiet = false, json = false;
};

// Runs the session. Returns the exit code: docs/ab.md. Throws UsageError.
int run_in_turns(const AbRequest& request);

// Returns what `command` returns. With --bisect among the arguments, an exception is printed and the code is the one
// that ends the bisection: to `git bisect run` the codes 1 and 2 say that the commit is bad.
int ending_bisection(const std::vector<std::string>& arguments, const std::function<int()>& command);

}  // namespace assay::host::ab
