#include "batch/slurm_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace assay::host::batch {
namespace {

template <class Call>
void for_each_line(std::string_view text, Call call) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    call(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "0-3,5,7-99:2%16", or "0-3,5,7...%16" of a list that was cut: false when it is no such list. "N/A" is an empty one.
bool read_tasks(std::string_view text, QueuedJob& job) {
  if (text == "N/A" || text.empty()) return true;
  text = text.substr(0, text.find('%'));
  if (text.ends_with("...")) {
    // The last number may be half of one.
    const std::size_t comma = text.rfind(',');
    job.is_cut = true;
    if (comma == std::string_view::npos) return true;
    text = text.substr(0, comma);
  }
  for (std::string_view part : split(text, ',')) {
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
      const auto step = number_in(part.substr(colon + 1));
      if (!step || *step < 1) return false;
      job.task_step = *step;
      part = part.substr(0, colon);
    }
    const std::size_t dash = part.find('-');
    const auto from = number_in(part.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : number_in(part.substr(dash + 1));
    if (!from || !to || *to < *from) return false;
    job.tasks.emplace_back(*from, *to);
  }
  return true;
}

std::string text_or_none(std::string_view text) { return text == "(null)" ? "" : std::string(text); }

}  // namespace

bool QueuedJob::has_task(std::int64_t task) const {
  if (is_cut && (tasks.empty() || task > tasks.back().second)) return true;
  return std::any_of(tasks.begin(), tasks.end(), [&](const auto& range) {
    return task >= range.first && task <= range.second && (task - range.first) % task_step == 0;
  });
}

bool QueuedJob::is_active() const {
  constexpr std::array<std::string_view, 9> over{"CANCELLED", "COMPLETED", "FAILED",        "TIMEOUT", "NODE_FAIL",
                                                 "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY", "REVOKED"};
  // "PREEMPTED" is left to the list of those that come again: where the job is not requeued it leaves the queue at
  // once.
  return std::find(over.begin(), over.end(), state) == over.end();
}

bool QueuedJob::is_pending() const {
  // Between two starts a job is "REQUEUED" for a moment; "CONFIGURING" is one whose nodes are not up yet.
  constexpr std::array<std::string_view, 7> waiting{"PENDING",      "CONFIGURING",  "REQUEUED",     "REQUEUE_FED",
                                                    "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  return std::find(waiting.begin(), waiting.end(), state) != waiting.end();
}

std::vector<QueuedJob> parse_queue(std::string_view output) {
  std::vector<QueuedJob> jobs;
  for_each_line(output, [&](std::string_view line) {
    // The comment comes last, and may have the separator in it.
    const auto fields = split(line, '|');
    if (fields.size() < 7 || !number_in(trimmed(fields[0])) || !number_in(trimmed(fields[1]))) return;
    QueuedJob job;
    job.job = trimmed(fields[0]), job.array = trimmed(fields[1]);
    if (!read_tasks(trimmed(fields[2]), job)) return;
    job.state = trimmed(fields[3]), job.nodes = trimmed(fields[4]), job.reason = trimmed(fields[5]);
    job.comment = text_or_none(trimmed(line.substr(static_cast<std::size_t>(fields[6].data() - line.data()))));
    jobs.push_back(std::move(job));
  });
  return jobs;
}

std::optional<SubmittedJob> parse_submitted(std::string_view output) {
  std::vector<SubmittedJob> found;
  if (output.find("Submitted batch job") != std::string_view::npos) return std::nullopt;  // --parsable did not arrive
  for_each_line(output, [&](std::string_view line) {
    const std::size_t semicolon = line.find(';');
    const std::string_view number = trimmed(line.substr(0, semicolon));
    if (number_in(number))
      found.push_back({std::string(number),
                       semicolon == std::string_view::npos ? "" : std::string(trimmed(line.substr(semicolon + 1)))});
  });
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

std::string text_of(const SubmittedJob& job) {
  return job.cluster.empty() ? job.number : job.number + ";" + job.cluster;
}

std::string parse_end_of_job(std::string_view output) {
  const auto word_after = [&](std::string_view key) -> std::string_view {
    const std::size_t at = output.find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = output.substr(at + key.size());
    return rest.substr(0, rest.find_first_of(" \n"));
  };
  const std::string_view state = word_after(" JobState="), code = word_after(" ExitCode=");
  const std::string_view host = word_after(" BatchHost=");
  if (state.empty()) return "";
  std::string text(state);
  if (!code.empty()) text += fmt::format(", exit code {}", code);
  if (!host.empty() && host != "(null)") text += fmt::format(", on {}", host);
  return text;
}

bool NodeState::is_usable(bool with_reservation) const {
  // A '*' after a state says that the node does not answer, a '$' that it is in maintenance. The other marks ('~', '#',
  // '%', '!', '@', '^', '-', '+') are of nodes that are off, start, stop or restart, and come when they are wanted.
  if (state.ends_with('*') || state.ends_with('$')) return false;
  constexpr std::array<std::string_view, 9> out{"down",     "drain", "fail",  "unknown", "maint",
                                                "reserved", "error", "inval", "future"};
  return std::none_of(out.begin(), out.end(), [&](std::string_view word) {
    return state.starts_with(word) && !(with_reservation && word == "reserved");
  });
}

std::int64_t NodeState::gpus() const {
  std::int64_t sum = 0;
  // "gpu:2", "gpu:h100:8(S:0-1)", several with commas; a list of cores in brackets has commas as well.
  for (std::string_view rest = gres; !rest.empty();) {
    const std::size_t at = rest.find("gpu:");
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at + 4);
    std::string_view word = rest.substr(0, rest.find_first_of(",("));
    if (const std::size_t colon = word.rfind(':'); colon != std::string_view::npos) word.remove_prefix(colon + 1);
    sum += number_in(word).value_or(0);
  }
  return sum;
}

std::vector<NodeState> parse_nodes(std::string_view output) {
  std::vector<NodeState> nodes;
  for_each_line(output, [&](std::string_view line) {
    const auto fields = split(line, '|');
    if (fields.size() != 7 || trimmed(fields[0]).empty()) return;
    NodeState node;
    node.name = trimmed(fields[0]), node.state = trimmed(fields[1]);
    std::string_view cpus = trimmed(fields[2]);
    if (cpus.ends_with('+')) cpus.remove_suffix(1);
    node.cpus = number_in(cpus).value_or(0);
    node.gres = text_or_none(trimmed(fields[3])), node.features = text_or_none(trimmed(fields[4]));
    node.time_limit = trimmed(fields[5]), node.partition = trimmed(fields[6]);
    nodes.push_back(std::move(node));
  });
  return nodes;
}

std::map<std::string, std::string> parse_partition_states(std::string_view output) {
  std::map<std::string, std::string> states;
  for_each_line(output, [&](std::string_view line) {
    const auto fields = split(line, '|');
    if (fields.size() != 2) return;
    std::string_view name = trimmed(fields[0]);
    if (name.ends_with('*')) name.remove_suffix(1);
    if (!name.empty()) states[std::string(name)] = trimmed(fields[1]);
  });
  return states;
}

std::optional<std::string> parse_config_value(std::string_view output, std::string_view name) {
  std::optional<std::string> found;
  for_each_line(output, [&](std::string_view line) {
    const std::size_t equals = line.find('=');
    if (!found && equals != std::string_view::npos && trimmed(line.substr(0, equals)) == name)
      found = std::string(trimmed(line.substr(equals + 1)));
  });
  return found;
}

std::optional<std::int64_t> parse_time_limit_s(std::string_view text) {
  std::int64_t days = 0;
  bool has_days = false;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = number_in(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number, has_days = true;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string_view part : split(text, ':')) {
    const auto number = number_in(part);
    if (!number) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3) return std::nullopt;
  // With days they begin with hours; without, one number is minutes, two are minutes and seconds.
  std::int64_t hours = 0, minutes = 0, seconds = 0;
  if (has_days || parts.size() == 3) {
    hours = parts[0];
    minutes = parts.size() > 1 ? parts[1] : 0;
    seconds = parts.size() > 2 ? parts[2] : 0;
  } else {
    minutes = parts[0];
    seconds = parts.size() > 1 ? parts[1] : 0;
  }
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}

std::string time_limit_text(double seconds) {
  const auto minutes = static_cast<std::int64_t>(std::ceil(std::max(seconds, 1.0) / 60));
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

namespace {

constexpr std::size_t most_nodes = 1'000'000;

// "r[1-2]n[01-02]": the first brackets with what comes before them, times the rest. False when it is no such name.
bool expand_name(std::string_view word, const std::string& before, std::vector<std::string>& nodes) {
  const std::size_t open = word.find('['), close = word.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos) {
    if (close != std::string_view::npos || nodes.size() >= most_nodes) return false;
    nodes.push_back(before + std::string(word));
    return true;
  }
  if (close == std::string_view::npos || word.substr(0, open).find(']') != std::string_view::npos) return false;
  for (const std::string_view part : split(word.substr(open + 1, close - open - 1), ',')) {
    const std::size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const auto from = number_in(first);
    const auto to = dash == std::string_view::npos ? from : number_in(part.substr(dash + 1));
    if (!from || !to || *to < *from || *to - *from > 100000) return false;
    for (std::int64_t n = *from; n <= *to; ++n)
      if (!expand_name(word.substr(close + 1), fmt::format("{}{}{:0{}}", before, word.substr(0, open), n, first.size()),
                       nodes))
        return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_nodes(std::string_view list) {
  std::vector<std::string> nodes;
  while (!list.empty()) {
    // A name goes on to the next comma outside brackets.
    std::size_t end = 0;
    for (int depth = 0; end < list.size() && (depth > 0 || list[end] != ','); ++end)
      depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
    const std::string_view word = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (word.empty() || !expand_name(word, "", nodes)) return std::nullopt;
  }
  return nodes;
}

}  // namespace assay::host::batch
