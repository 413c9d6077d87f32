#include "hosts/host_launch.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "common/exit_code.hpp"
#include "hosts/host_connections.hpp"
#include "launch/signals.hpp"
#include "telemetry/recorded_texts.hpp"

namespace assay::host::hosts {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr auto patience_after_loss = 10s;       // for rank 0, which records what was lost
constexpr auto patience_after_interrupt = 30s;  // for all, to keep finished cases
constexpr auto patience_with_keepers = 15s;     // that were asked to end

class Launch {
 public:
  explicit Launch(const HostLaunch& launch)
      : launch_(launch), connections_(launch.hosts, fs::read_symlink("/proc/self/exe"), interrupts_.count()) {}

  int run() {
    const HostCheck check = check_of(launch_.files, fs::current_path(), launch_.shared_folder);
    try {
      throw_problems(connections_.problems(check));
    } catch (const HostError&) {
      if (interrupts_.count()->load() == 0) throw;
      return exit_interrupted;
    }
    start();
    while (!connections_.are_all_closed()) turn();
    if (interrupts_.count()->load() > 0) return exit_interrupted;
    if (launch_.is_each_alone) {
      std::vector<std::optional<int>> codes;
      for (const Rank& rank : ranks_) codes.push_back(rank.code);
      return exit_code_of_ranks_alone(codes);
    }
    const std::optional<int> code = ranks_.front().code;
    const bool has_code = code && *code != exit_ok && *code != exit_interrupted;
    return has_lost_ && !has_code ? exit_failed : code.value_or(exit_failed);
  }

 private:
  struct Rank {
    std::size_t host = 0;
    bool has_ended = false;
    std::optional<int> code = {};
  };

  void start() {
    const std::string id = random_name();
    const auto size = slots_of(launch_.hosts);
    for (std::size_t i = 0; i < launch_.hosts.size(); ++i) {
      Json ranks = Json::array();
      for (std::int64_t local = 0; local < launch_.hosts[i].slots; ++local) {
        const auto number = static_cast<std::int64_t>(ranks_.size());
        ranks.push_back({{"rank", number},
                         {"environment",
                          {{"ASSAY_HOSTS_RANK", std::to_string(number)},
                           {"ASSAY_HOSTS_RANKS", std::to_string(size)},
                           {"ASSAY_HOSTS_NAME", launch_.hosts[i].name},
                           {"ASSAY_HOSTS_LOCAL_RANK", std::to_string(local)},
                           {"ASSAY_HOSTS_LOCAL_RANKS", std::to_string(launch_.hosts[i].slots)},
                           {"ASSAY_HOSTS_LAUNCH", id}}}});
        ranks_.push_back({i, false});
      }
      connections_.send(i, {{"do", "start"},
                            {"folder", fs::current_path().string()},
                            {"environment", passed_environment()},
                            {"arguments", launch_.arguments},
                            {"remedy", launch_.remedy},
                            {"ranks", std::move(ranks)}});
    }
  }

  void turn() {
    // The descriptor stays readable after the first signal.
    const bool is_heard = heard_ > 0;
    if (const auto event = connections_.next(200ms, is_heard ? -1 : interrupts_.wake_fd())) take(*event);
    const int signals = interrupts_.count()->load();
    if (signals > heard_) {
      if (heard_ == 0 && signals == 1) {
        connections_.send_to_all({{"do", "interrupt"}});
        end_by(Clock::now() + patience_after_interrupt);
      } else {
        end_by(Clock::now());
      }
      heard_ = signals;
    }
    if (end_at_ && Clock::now() >= *end_at_ && !is_told_to_end_) tell_to_end();
    if (is_told_to_end_ && Clock::now() > leave_at_) {
      for (std::size_t i = 0; i < launch_.hosts.size(); ++i)
        if (connections_.is_open(i))
          complain(fmt::format("{} does not answer; what runs there ends by itself as soon as it misses this machine",
                               launch_.hosts[i].name));
      throw HostError("assay left the launch before all hosts had confirmed that their ranks have ended");
    }
  }

  void take(const HostEvent& event) {
    const std::string& host = launch_.hosts[event.host].name;
    const Json& message = event.message;
    if (message.is_null()) {
      const bool is_expected = std::all_of(ranks_.begin(), ranks_.end(),
                                           [&](const Rank& rank) { return rank.host != event.host || rank.has_ended; });
      if (is_expected) return;
      lose(event.host == 0, fmt::format("{} is lost: {}", host, connections_.why_closed(event.host)));
      for (Rank& rank : ranks_)
        if (rank.host == event.host) rank.has_ended = true;
    } else if (message.contains("out")) {
      print(message.at("rank"), message.at("out"), message.at("text"), host);
    } else if (message.contains("problem")) {
      complain(fmt::format("{}: {}", host, message.at("problem").get<std::string>()));
    } else if (message.contains("ended")) {
      take_end(message, host);
    }
    const bool are_all_ended =
        std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.has_ended; });
    if (are_all_ended && !is_told_to_end_) tell_to_end();
  }

  void take_end(const Json& message, const std::string& host) {
    const std::int64_t number = message.at("ended");
    if (number < 0 || number >= std::ssize(ranks_))
      return complain(fmt::format("{}: it reports rank {}, but there are {} ranks", host, number, ranks_.size()));
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    rank.has_ended = true;
    if (message.contains("code")) rank.code = message.at("code").get<int>();
    if (message.contains("signal")) {
      const int signal = message.at("signal");
      const char* name = sigabbrev_np(signal);
      const std::string text = fmt::format("rank {} on {} was ended by SIG{}", number, host, name ? name : "?");
      if (is_told_to_end_)
        return;
      else
        lose(number == 0, text);
    } else if (launch_.is_each_alone) {
      return;
    } else if (number != 0 && rank.code != exit_ok && !ranks_[0].has_ended) {
      // It has said why. Rank 0 may be about to end by itself, and else cannot go on without it.
      end_by(Clock::now() + patience_after_loss);
      has_lost_ = true;
    } else if (number == 0) {
      end_by(Clock::now() + patience_after_loss);  // the others have nobody to follow
    }
  }

  void lose(bool is_first, const std::string& text) {
    if (!is_told_to_end_) complain(text + "; all ranks end");
    // Nobody else says so: rank 0 is gone, or its host is.
    if (!is_told_to_end_ && is_first && !launch_.shared_folder.empty())
      complain(fmt::format("finished cases are kept on {} below {}; {}", launch_.hosts.front().name,
                           launch_.shared_folder.string(), launch_.remedy));
    has_lost_ = true;
    end_by(Clock::now() + (is_first ? 0s : patience_after_loss));
  }

  void end_by(Clock::time_point time) { end_at_ = end_at_ ? std::min(*end_at_, time) : time; }

  void tell_to_end() {
    is_told_to_end_ = true;
    leave_at_ = Clock::now() + patience_with_keepers;
    connections_.send_to_all({{"do", "end"}});
  }

  void print(std::int64_t rank, int number, const std::string& text, const std::string& host) {
    if (rank == 0) {
      FILE* to = number == 1 ? stdout : stderr;
      std::fwrite(text.data(), 1, text.size(), to);
      std::fflush(to);
      return;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      fmt::print(stderr, "{}, rank {}: {}\n", host, rank, rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }

  static void complain(const std::string& text) { fmt::print(stderr, "assay: {}\n", text); }

  const HostLaunch& launch_;
  launch::InterruptHandler interrupts_;
  HostConnections connections_;
  std::vector<Rank> ranks_;
  bool has_lost_ = false, is_told_to_end_ = false;
  int heard_ = 0;  // signals
  std::optional<Clock::time_point> end_at_;
  Clock::time_point leave_at_{};
};

}  // namespace

bool is_passed_on(std::string_view name, std::string_view named) {
  constexpr std::array<std::string_view, 6> places{"PATH",        "LD_LIBRARY_PATH", "PYTHONPATH",
                                                   "VIRTUAL_ENV", "CONDA_PREFIX",    "ASSAY_HOSTS_SILENCE_S"};
  // They describe this machine's place in another launch.
  constexpr std::array<std::string_view, 5> own{"ASSAY_RANK", "ASSAY_LOCAL_RANK", "ASSAY_WORKER", "ASSAY_HOSTS_",
                                                "SLURM_"};
  while (!named.empty()) {
    const std::size_t comma = named.find(',');
    if (named.substr(0, comma) == name) return true;
    named.remove_prefix(comma == std::string_view::npos ? named.size() : comma + 1);
  }
  if (std::find(places.begin(), places.end(), name) != places.end()) return true;
  if (std::any_of(own.begin(), own.end(), [&](std::string_view begin) { return name.starts_with(begin); }))
    return false;
  return name.starts_with("ASSAY_") || telemetry::is_recorded_variable(name);
}

Json passed_environment() {
  Json environment = Json::object();
  const char* named = std::getenv("ASSAY_HOSTS_ENVIRONMENT");
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && is_passed_on(text.substr(0, equals), named ? named : ""))
      environment[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return environment;
}

int exit_code_of_ranks_alone(const std::vector<std::optional<int>>& codes) {
  if (std::find(codes.begin(), codes.end(), exit_unhealthy) != codes.end()) return exit_unhealthy;
  std::optional<int> last;  // of those that have failed
  for (const std::optional<int> code : codes)
    if (code != exit_ok) last = code ? code : last.value_or(exit_failed);
  const std::optional<int> first = codes.empty() ? exit_failed : codes.front();
  const bool has_said = first && *first != exit_ok && *first != exit_interrupted;
  return has_said ? *first : last.value_or(exit_ok);
}

int launch_on_hosts(const HostLaunch& launch) { return Launch(launch).run(); }

}  // namespace assay::host::hosts
