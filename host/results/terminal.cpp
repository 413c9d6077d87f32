#include "results/terminal.hpp"

#include "common/text_format.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace assay::host::results {
namespace {

constexpr std::chrono::milliseconds kLeastTimeBetweenDraws{100};
constexpr std::chrono::seconds kLongestSilence{30};
constexpr const char* kEraseLine = "\r\x1b[K";

std::string rate_text(std::int64_t step, std::chrono::nanoseconds elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count() / static_cast<double>(step);
  if (seconds >= 1) return fmt::format("{:.2f} s/step", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms/step", seconds * 1e3);
  return fmt::format("{:.1f} us/step", seconds * 1e6);
}

}  // namespace

std::string clock_text(std::chrono::nanoseconds duration) {
  const std::int64_t total_s = std::max<std::int64_t>(0, std::chrono::round<std::chrono::seconds>(duration).count());
  const std::int64_t hours = total_s / 3600, minutes = total_s / 60 % 60, seconds = total_s % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, seconds) : fmt::format("{}:{:02}", minutes, seconds);
}

std::size_t terminal_width(int fd, std::size_t otherwise) {
  struct winsize size {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string line_on_terminal(std::string_view text, int fd) {
  constexpr std::size_t indent = 2, fewest = 20;
  if (::isatty(fd) != 1) return std::string(text) + "\n";
  const std::size_t width = terminal_width(fd);
  if (display_width(text) <= width) return std::string(text) + "\n";
  std::string all;
  for (const std::string& line : wrapped(text, std::max(width, indent + fewest) - indent))
    all += (all.empty() ? "" : std::string(indent, ' ')) + line + "\n";
  return all;
}

Progress::Progress(ProgressMode mode, ProgressOutput output) : mode_(mode), output_(std::move(output)) {}

Progress Progress::for_stream(std::FILE* stream, bool quiet) {
  const int fd = ::fileno(stream);
  const char* kind = std::getenv("TERM");
  const bool redraws = ::isatty(fd) == 1 && kind && std::string_view(kind) != "dumb";
  ProgressOutput output;
  output.write = [stream](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
  };
  output.width_columns = [fd] { return terminal_width(fd, 80); };
  return Progress(quiet     ? ProgressMode::quiet
                  : redraws ? ProgressMode::terminal
                            : ProgressMode::plain,
                  std::move(output));
}

std::string Progress::case_text() const {
  return fmt::format("case {}/{}{}{}", index_ + 1, count_, label_.empty() ? "" : " ", label_);
}

void Progress::case_started(std::int64_t index, std::int64_t count, std::string label) {
  index_ = index;
  count_ = count;
  label_ = one_line(label);
  case_start_ = output_.now();
  if (mode_ == ProgressMode::plain) print(case_text());
  if (mode_ == ProgressMode::terminal) draw(case_text());
}

void Progress::update(std::string_view stage, std::int64_t step, std::int64_t total_steps, std::string_view phase,
                      std::chrono::nanoseconds elapsed) {
  if (mode_ == ProgressMode::quiet) return;
  // Before any text is made.
  if (mode_ == ProgressMode::plain && output_.now() - last_print_ < kLongestSilence) return;
  if (mode_ == ProgressMode::terminal && has_drawn_ && output_.now() - last_draw_ < kLeastTimeBetweenDraws) return;
  std::string line = fmt::format("{} | {}", case_text(), one_line(stage));
  if (total_steps > 0)
    line += fmt::format(" {}/{}", step, total_steps);
  else if (step > 0)
    line += fmt::format(" {}", step);
  if (!phase.empty()) line += fmt::format(" {}", one_line(phase));
  if (step > 0) line += fmt::format(" | {}", rate_text(step, elapsed));
  if (const std::string eta = eta_text(step, total_steps, elapsed); !eta.empty()) line += fmt::format(" | ETA {}", eta);
  if (mode_ == ProgressMode::plain)
    print(fmt::format("{} | {} since the case began", line, clock_text(output_.now() - case_start_)));
  else
    draw(line);
}

std::string Progress::eta_text(std::int64_t step, std::int64_t total_steps, std::chrono::nanoseconds elapsed) const {
  using Nanoseconds = std::chrono::nanoseconds;
  const Nanoseconds in_case = output_.now() - case_start_;
  const bool steps_known = step > 0 && total_steps >= step;
  if (!steps_known && finished_cases_ == 0) return {};
  // Divided before it is multiplied: nanoseconds times a large number of steps would overflow.
  Nanoseconds of_this = steps_known ? Nanoseconds(elapsed.count() / step * (total_steps - step)) : Nanoseconds(0);
  // The steps of a warm-up say nothing of those that follow; the cases before this one do.
  const Nanoseconds mean = finished_cases_ > 0 ? finished_time_ / finished_cases_ : in_case + of_this;
  if (finished_cases_ > 0) of_this = std::max(of_this, mean - in_case);
  const std::int64_t cases_left = std::max<std::int64_t>(0, count_ - index_ - 1);
  return clock_text(of_this + mean * cases_left);
}

void Progress::case_finished(std::string_view status, std::string_view summary) {
  finished_time_ += output_.now() - case_start_;
  ++finished_cases_;
  if (mode_ == ProgressMode::quiet) return;
  std::string text = one_line(summary);
  if (!summary.starts_with(status)) text = fmt::format("{}{}{}", one_line(status), text.empty() ? "" : ": ", text);
  print(fmt::format("{}: {}", case_text(), text));
}

void Progress::message(std::string_view text) {
  if (mode_ != ProgressMode::quiet) print(one_line(text));
}

void Progress::finish() {
  if (line_on_screen_) output_.write(kEraseLine);
  line_on_screen_ = false;
}

void Progress::draw(const std::string& line) {
  const Clock::time_point now = output_.now();
  if (has_drawn_ && now - last_draw_ < kLeastTimeBetweenDraws) return;
  const std::size_t width = output_.width_columns();
  // One column stays free: some terminals break the line as soon as the last one is filled.
  output_.write(kEraseLine + fit_to_width(line, width > 1 ? width - 1 : 1));
  last_draw_ = now;
  has_drawn_ = line_on_screen_ = true;
}

void Progress::print(const std::string& line) {
  output_.write(fmt::format("{}{}\n", line_on_screen_ ? kEraseLine : "", line));
  line_on_screen_ = false;
  last_print_ = output_.now();
}

}  // namespace assay::host::results
