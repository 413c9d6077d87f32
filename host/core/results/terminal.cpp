#include "results/terminal.hpp"

#include "common/text_format.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
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

// Lines no longer than the width, those behind the first one being indented.
std::string broken(std::string_view text, std::size_t width) {
  constexpr std::size_t indent = 2, fewest = 20;
  if (display_width(text) <= width) return std::string(text);
  std::string all;
  for (const std::string& line : wrapped(text, std::max(width, indent + fewest) - indent))
    all += (all.empty() ? "" : "\n" + std::string(indent, ' ')) + line;
  return all;
}

// One line a case: a long reason, which stands below the table once more, gives way to the name, and a name of many
// axes to the figures.
void fit_line(std::string& name, std::string& text, std::size_t width) {
  constexpr std::size_t between = 2, least_of_text = 32;
  const std::size_t room = std::max<std::size_t>(width, 40) - 1 - between;
  name = fit_to_width(name, room - std::min({room, display_width(text), least_of_text}));
  text = fit_to_width(text, room - std::min(room, display_width(name)));
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

std::size_t table_width(int fd) { return terminal_width(fd, std::numeric_limits<std::uint32_t>::max()); }

std::string line_on_terminal(std::string_view text, int fd) {
  const std::string line = one_line(text);
  return (::isatty(fd) == 1 ? broken(line, terminal_width(fd)) : line) + "\n";
}

void say_on_stderr(std::string_view text) {
  fmt::print(stderr, "{}", line_on_terminal(fmt::format("assay: {}", text), STDERR_FILENO));
}

std::string lines_on_terminal(std::string_view text, int fd) {
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    all += line_on_terminal(text.substr(begin, end - begin), fd);
    begin = end + 1;
  }
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
  output.palette = Palette::of(fd);
  return Progress(quiet     ? ProgressMode::quiet
                  : redraws ? ProgressMode::terminal
                            : ProgressMode::plain,
                  std::move(output));
}

std::string Progress::case_text() const {
  const std::string gap = label_.empty() ? "" : " ";
  if (number_ == index_ + 1) return fmt::format("case {}/{}{}{}", number_, count_, gap, label_);
  return fmt::format("case {} ({} of {}){}{}", number_, index_ + 1, count_, gap, label_);
}

void Progress::case_started(std::int64_t index, std::int64_t count, std::string label,
                            std::optional<std::int64_t> number) {
  index_ = index;
  number_ = number.value_or(index + 1);
  count_ = count;
  label_ = one_line(label);
  case_start_ = output_.now();
  measured_at_.reset();
  if (mode_ == ProgressMode::plain) print(case_text());
  if (mode_ == ProgressMode::terminal) draw(case_text());
}

void Progress::update(std::string_view stage, std::int64_t step, std::int64_t total_steps, std::string_view phase,
                      std::chrono::nanoseconds elapsed, std::string_view part) {
  if (mode_ == ProgressMode::quiet) return;
  note_stage(stage);
  // Before any text is made.
  if (mode_ == ProgressMode::plain && output_.now() - last_print_ < kLongestSilence) return;
  if (mode_ == ProgressMode::terminal && has_drawn_ && output_.now() - last_draw_ < kLeastTimeBetweenDraws) return;
  std::string line = fmt::format("{} | {}", case_text(), one_line(stage));
  if (!part.empty()) line += fmt::format(" ({})", one_line(part));
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

void Progress::note_stage(std::string_view stage) {
  const bool is_after = stage == "finish" || stage == "verify" || stage == "destroy";
  if (is_after && !measured_at_) measured_at_ = output_.now();
}

std::chrono::nanoseconds Progress::mean_after_measuring() const {
  return cases_after_measuring_ > 0 ? after_measuring_ / cases_after_measuring_ : std::chrono::nanoseconds(0);
}

void Progress::expect(std::vector<std::optional<double>> seconds) { expected_s_ = std::move(seconds); }

// As earlier runs had it, times how much longer or shorter the cases of this run have taken than was expected of them.
std::optional<std::chrono::nanoseconds> Progress::expected(std::int64_t index) const {
  const auto place = static_cast<std::size_t>(index);
  if (place >= expected_s_.size() || !expected_s_[place]) return std::nullopt;
  const double factor = expected_of_finished_s_ > 0 ? time_of_expected_s_ / expected_of_finished_s_ : 1;
  return std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double>(*expected_s_[place] * factor));
}

std::string Progress::eta_text(std::int64_t step, std::int64_t total_steps, std::chrono::nanoseconds elapsed) const {
  using Nanoseconds = std::chrono::nanoseconds;
  const Nanoseconds in_case = output_.now() - case_start_;
  const bool steps_known = step > 0 && total_steps >= step;
  const std::optional<Nanoseconds> this_case = expected(index_);
  if (!steps_known && finished_cases_ == 0 && !this_case) return {};
  // Divided before it is multiplied: nanoseconds times a large number of steps would overflow.
  Nanoseconds of_this = steps_known ? Nanoseconds(elapsed.count() / step * (total_steps - step)) : Nanoseconds(0);
  // Its verification is no step; the cases before it have had theirs.
  if (measured_at_)
    of_this = std::max(Nanoseconds(0), mean_after_measuring() - (output_.now() - *measured_at_));
  else if (steps_known)
    of_this += mean_after_measuring();
  // The steps of a warm-up do not predict those that follow; what is expected does, or the cases before this one.
  const Nanoseconds mean = finished_cases_ > 0 ? finished_time_ / finished_cases_
                                               : std::max(in_case + of_this, this_case.value_or(Nanoseconds(0)));
  if (this_case || finished_cases_ > 0) of_this = std::max(of_this, this_case.value_or(mean) - in_case);
  // Sweeps often grow: where the last case took longer than those before, the others will hardly take less than it.
  const bool grows = finished_cases_ > 1 && last_case_time_ > mean + mean / 4;
  Nanoseconds left = of_this;
  bool is_least = false;
  for (std::int64_t i = index_ + 1; i < count_; ++i) {
    const auto other = expected(i);
    is_least |= !other && grows;
    left += other ? *other : grows ? last_case_time_ : mean;
  }
  return (is_least ? "over " : "") + clock_text(left);
}

void Progress::case_finished(std::string_view status, std::string_view summary) {
  last_case_time_ = output_.now() - case_start_;
  finished_time_ += last_case_time_;
  ++finished_cases_;
  if (measured_at_) after_measuring_ += output_.now() - *measured_at_, ++cases_after_measuring_;
  if (const auto place = static_cast<std::size_t>(index_); place < expected_s_.size() && expected_s_[place]) {
    expected_of_finished_s_ += *expected_s_[place];
    time_of_expected_s_ += std::chrono::duration<double>(last_case_time_).count();
  }
  if (mode_ == ProgressMode::quiet) return;
  const std::string word = one_line(status);
  std::string text = one_line(summary);
  if (!summary.starts_with(status)) text = fmt::format("{}{}{}", word, text.empty() ? "" : ": ", text);
  std::string name = case_text();
  if (mode_ == ProgressMode::terminal) fit_line(name, text, output_.width_columns());
  if (text.starts_with(word)) text.replace(0, word.size(), output_.palette.paint(word));
  print(fmt::format("{}: {}", name, text));
}

void Progress::message(std::string_view text) {
  if (mode_ == ProgressMode::quiet) return;
  const std::string line = one_line(text);
  print(mode_ == ProgressMode::terminal ? broken(line, output_.width_columns()) : line);
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
