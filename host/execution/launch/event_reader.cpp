#include "launch/event_reader.hpp"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "launch/log_tail.hpp"

namespace assay::host::launch {
namespace {

constexpr std::size_t malformed_kept = 20;
constexpr std::size_t shown_bytes = 200;

// The value of the object's "event", without building the rest: a result may hold a million samples.
class EventName : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<std::string> name;

  bool key(string_t& key) override {
    at_event_ = depth_ == 1 && key == "event";
    return true;
  }
  bool string(string_t& value) override {
    if (at_event_) name = value;
    return scalar();
  }
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  // An array at the top is no event; its elements lie at depth 1 but have no keys.
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool scalar() {
    at_event_ = false;
    return true;
  }
  bool open() {
    at_event_ = false;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  bool at_event_ = false;
  int depth_ = 0;
};

std::optional<std::string> event_name(const std::string& line) {
  EventName reader;
  if (!nlohmann::json::sax_parse(line, &reader)) return std::nullopt;
  return reader.name;
}

}  // namespace

void EventReader::take(std::string_view bytes) {
  events_.total_bytes += bytes.size();
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    partial_ += bytes.substr(0, newline);
    if (newline == std::string_view::npos) return;
    take_line(std::exchange(partial_, {}));
    bytes.remove_prefix(newline + 1);
  }
}

void EventReader::take_line(std::string line) {
  if (line.empty()) return;
  const std::optional<std::string> name = event_name(line);
  if (!name) {
    if (events_.malformed.size() < malformed_kept)
      events_.malformed.push_back(printable_utf8(line.substr(0, shown_bytes)));
    return;
  }
  if (on_event_) on_event_(line);
  if (*name == "result")
    events_.result = std::move(line);
  else
    events_.others.push_back(std::move(line));
}

EventReader::State EventReader::read_from(int fd) {
  char buffer[64 * 1024];
  for (int chunk = 0; chunk < 64; ++chunk) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return State::closed;
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? State::open : State::closed;
    }
    take({buffer, static_cast<std::size_t>(n)});
    if (events_.total_bytes > bytes_max_) return State::overflow;
  }
  return State::open;
}

WorkerEvents EventReader::finish() && {
  events_.torn = std::move(partial_);
  return std::move(events_);
}

}  // namespace assay::host::launch
