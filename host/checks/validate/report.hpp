// The result of each check, and how it is reported: while it is asked, as lines between processes, on a terminal, as
// JSON.
#pragma once
#include <assay/abi.h>

#include <array>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "validate/checks.hpp"

namespace assay::host::validate {

enum class State { not_asked, passed, found };

struct Answer {
  State state = State::not_asked;
  std::string text;                // what was found, or why it was not asked
  assay_status status = ASSAY_OK;  // that the plugin's call has returned, of a finding that is this refusal
};

// The answers to the checks of one subject. Of several findings of one check the first is kept.
class Answers {
 public:
  const Answer& of(Check check) const { return answers_[static_cast<std::size_t>(check)]; }
  void pass(Check check);  // unless something was found
  void find(Check check, std::string text, assay_status status = ASSAY_OK);
  void leave_out(Check check, std::string why);  // unless it was asked
  bool has_findings() const;

 private:
  Answer& at(Check check) { return answers_[static_cast<std::size_t>(check)]; }
  std::array<Answer, check_count> answers_;
};

// How a probe reports what it asks. Everything goes out at once, so that what ends the process is known to have
// happened while the last check was asked.
class Asker {
 public:
  explicit Asker(std::function<void(std::string_view)> send) : send_(std::move(send)) {}
  void ask(Check check) const;              // from here on
  void at(const std::string& place) const;  // what of it, for the words: "n = 5"
  void find(Check check, const std::string& text, assay_status status = ASSAY_OK) const;
  void leave_out(Check check, const std::string& why) const;
  void send_tables(const std::string& line) const;

 private:
  std::function<void(std::string_view)> send_;
};

struct Progress {
  bool has_asked = false;
  Check last = Check::load_survives;  // that was asked
  std::string place;
  std::string tables;  // a line
};
// Enters the complete lines of `text`, what an Asker has sent, into `answers`.
Progress take_in(std::string_view text, Answers& answers);

struct WorkloadReport {
  std::string workload, device;  // "": on none
  Answers answers;               // of levels 2 and 3
};
struct Report {
  std::string file;
  int level = highest_level;
  Answers plugin;  // of level 1
  std::vector<WorkloadReport> workloads;

  std::size_t count(Severity severity) const;  // of findings
};

// Lines of at most `width` columns.
// What it found, and a line for each reason why checks were not asked; each check in a line where `is_whole`.
std::string to_table(const Report& report, bool is_whole = false, std::size_t width = 80);
nlohmann::ordered_json to_json(const Report& report);

}  // namespace assay::host::validate
