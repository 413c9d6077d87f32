// Spells what a session shows on the terminal and as JSON.
#pragma once
#include "ab/session.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay::host::ab {

// How long a session takes at most, as far as that is known before it begins.
std::string limits_text(const SessionPlan& plan);
// "Round 5: step ratio 1.0304 [1.0121, 1.0491] (at most 25 more, 3:20)", or with several cases how many are decided.
std::string pair_line(const Round& round, const SessionPlan& plan);

// Holds what is said at the end, beside the session itself.
struct SessionNames {
  std::vector<std::filesystem::path> folders;  // of both sides
  std::set<std::string> across;
  std::string metric;
  compare::TestOptions test;
  std::string statistic;      // its word on the command line
  bool is_one_thing = false;  // A and B are the same: whatever differs is chance
};

// The command that shows the whole comparison, with the verdicts that the session ended with.
std::string compare_command(const SessionNames& names, double confidence);

std::string result_text(const SessionResult& result, const SessionNames& names);
std::string result_json(const SessionResult& result, const SessionNames& names, int exit_code);

}  // namespace assay::host::ab
