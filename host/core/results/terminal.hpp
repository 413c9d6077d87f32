// How far a run has come, for whoever is watching.
#pragma once
#include "common/palette.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::results {

enum class ProgressMode {
  terminal,  // one line, redrawn in place at most ten times a second; finished cases stay above it
  plain,     // a line when a case starts, one when it ends, and one in 30 s of silence between: logs, pipes
  quiet      // nothing
};

struct ProgressOutput {
  std::function<void(std::string_view)> write;
  std::function<std::size_t()> width_columns;
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
  Palette palette = {};  // of the status of a case that has ended
};

// Not for several threads at once.
class Progress {
 public:
  Progress(ProgressMode mode, ProgressOutput output);
  // `terminal` when the stream is one that can redraw a line, else `plain`. The stream outlives the object.
  static Progress for_stream(std::FILE* stream, bool quiet);

  // How many seconds each case is expected to take, by its place; what is not known is guessed from the cases before.
  void expect(std::vector<std::optional<double>> seconds);
  // Cases count from 0 here and from 1 on the screen. `label` as in case_label(). `number`: the case's own number, by
  // which records and notes name it, where a filter, a resumption or repeats make it another one.
  void case_started(std::int64_t index, std::int64_t count, std::string label,
                    std::optional<std::int64_t> number = std::nullopt);
  // `step` steps of `total_steps` of the stage are done, `elapsed` after the stage began. 0 total: not known. `part`:
  // of the stage, as it reports its parts.
  void update(std::string_view stage, std::int64_t step, std::int64_t total_steps, std::string_view phase,
              std::chrono::nanoseconds elapsed, std::string_view part = {});
  // `summary` as in case_summary(); printed alone when it starts with the status, after the status otherwise.
  void case_finished(std::string_view status, std::string_view summary);
  // A separate whole line: a warning, a note.
  void message(std::string_view text);
  // Erases the line; nothing is drawn until the next case.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string case_text() const;
  std::optional<std::chrono::nanoseconds> expected(std::int64_t index) const;
  void note_stage(std::string_view stage);
  // The time from the last measured step to the end, as the finished cases had it.
  std::chrono::nanoseconds mean_after_measuring() const;
  std::string eta_text(std::int64_t step, std::int64_t total_steps, std::chrono::nanoseconds elapsed) const;
  void draw(const std::string& line);
  void print(const std::string& line);

  ProgressMode mode_;
  ProgressOutput output_;
  std::int64_t index_ = 0, count_ = 0, finished_cases_ = 0;
  std::chrono::nanoseconds finished_time_{0}, last_case_time_{0};
  std::optional<Clock::time_point> measured_at_;  // when the case at hand had its last measured step
  std::chrono::nanoseconds after_measuring_{0};   // of finished cases
  std::int64_t cases_after_measuring_ = 0;
  std::vector<std::optional<double>> expected_s_;               // by case
  double expected_of_finished_s_ = 0, time_of_expected_s_ = 0;  // of finished cases that were expected
  std::string label_;
  std::int64_t number_ = 0;
  Clock::time_point case_start_{}, last_draw_{}, last_print_{};
  bool has_drawn_ = false, line_on_screen_ = false;
};

// "0:42", "12:03", "1:02:03"
std::string clock_text(std::chrono::nanoseconds duration);
// The text as a line on the terminal behind the descriptor, broken between words, what follows the first line being
// indented; in one line where there is no terminal, so that a log can be searched. Control characters become blanks: a
// text may have names of files of others.
std::string line_on_terminal(std::string_view text, int fd);
// The same of each line of the text.
std::string lines_on_terminal(std::string_view text, int fd);
// Prints "assay: TEXT" as a line on standard error, broken where that is a terminal.
void say_on_stderr(std::string_view text);
// The width of the terminal behind the descriptor; `otherwise` when there is none.
std::size_t terminal_width(int fd, std::size_t otherwise = 120);
// For tables, and what stands beside them: as wide as they are where there is no terminal, since a pipe and a file have
// room for all columns.
std::size_t table_width(int fd);

}  // namespace assay::host::results
