#include "hosts/host_connections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "common/command.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "hosts/rank_keeper.hpp"

namespace assay::host::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::chrono::milliseconds patience_with_connection = 40s;  // ssh itself gives up after 10 s
constexpr std::chrono::milliseconds patience_with_answer = 60s;      // of hashing libraries on a slow file system

// How long a keeper goes on without a sign of life. ASSAY_HOSTS_SILENCE_S: for a network that is cut for longer, and
// for tests.
std::chrono::seconds silence_by_environment() {
  const char* text = std::getenv("ASSAY_HOSTS_SILENCE_S");
  const long long seconds = text ? std::strtoll(text, nullptr, 10) : 0;
  return std::chrono::seconds(seconds > 0 && seconds < 86400 ? seconds : 30);
}

}  // namespace

std::chrono::seconds silence() { return silence_by_environment(); }

HostConnections::HostConnections(std::vector<SshHost> hosts, std::filesystem::path program,
                                 const std::atomic<int>* interrupted)
    : hosts_(std::move(hosts)),
      program_(std::move(program)),
      program_hash_(sha256_of_file("/proc/self/exe")),
      interrupted_(interrupted),
      silence_(silence()) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const SshHost& host : hosts_) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->session = std::make_unique<SshSession>(ssh_call(host, control_, keeper_command(program_)));
  }
  pulse_ = std::thread([this] { keep_alive(); });
}

HostConnections::~HostConnections() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  end_of_pulse_.notify_all();
  pulse_.join();
}

// By a thread: this side may be held up for long by whoever reads what it prints.
void HostConnections::keep_alive() {
  const std::string pulse = Json{{"do", "alive"}, {"silence_s", silence_.count()}}.dump();
  for (std::unique_lock lock(mutex_); !is_over_;
       end_of_pulse_.wait_for(lock, std::chrono::milliseconds(silence_) / 10, [this] { return is_over_; }))
    for (const auto& member : members_) member->session->send(pulse);
}

void HostConnections::send(std::size_t host, const Json& message) { members_[host]->session->send(message.dump()); }

void HostConnections::send_to_all(const Json& message) {
  for (std::size_t i = 0; i < members_.size(); ++i) send(i, message);
}

bool HostConnections::are_all_closed() const {
  return std::none_of(members_.begin(), members_.end(), [](const auto& member) { return member->is_open; });
}

std::optional<HostEvent> HostConnections::next(std::chrono::milliseconds timeout, int also) {
  for (const auto deadline = Clock::now() + timeout;;) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = *members_[i];
      if (!member.is_open) continue;
      for (std::string& line : member.session->take_lines()) {
        if (!member.has_greeted) {  // what a shell prints before it is not for us
          if (!line.starts_with(keeper_greeting)) continue;
          member.has_greeted = true;
          line.erase(0, std::string_view(keeper_greeting).size());
        }
        Json message = Json::parse(line, nullptr, false);
        if (!message.is_discarded()) events_.push_back({i, std::move(message)});
      }
      if (const auto code = member.session->end_code()) {
        member.is_open = false;
        member.reason = reason_of(i, *code);
        events_.push_back({i, nullptr});
      }
    }
    if (!events_.empty()) {
      HostEvent event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    std::vector<SshSession*> open;
    for (const auto& member : members_)
      if (member->is_open) open.push_back(member->session.get());
    // A session whose output is closed is looked at until it has ended.
    wait_for_any(open, also, static_cast<int>(std::min<std::int64_t>(left.count(), 20)));
    if (also >= 0 && interrupted_ && interrupted_->load() > 0 && events_.empty()) return std::nullopt;
  }
}

std::string HostConnections::reason_of(std::size_t host, int code) {
  const Member& member = *members_[host];
  const std::string reason = reason_of_end(hosts_[host], code, member.session->said(), program_);
  if (member.has_greeted || code < 0 || code == 255 || code == 126 || code == 127) return reason;
  // Another assay stands there, which does not know what it was asked for.
  const CommandAnswer there = run_command(ssh_call(hosts_[host], control_, hash_command(program_)), 20s);
  const std::string hash = there.out.substr(0, there.out.find(' '));
  if (!there.is_good() || hash.size() != 64 || hash == program_hash_) return reason;
  return other_file_text(program_, hash, program_hash_, hosts_[host]);
}

std::vector<std::vector<std::string>> HostConnections::problems(const HostCheck& check) {
  std::vector<std::vector<std::string>> problems(hosts_.size());
  std::vector<std::optional<double>> asked_s(hosts_.size());
  std::vector<bool> is_open(hosts_.size(), true), is_checked(hosts_.size(), false);
  std::optional<std::size_t> writer;  // of the shared file: the first host that can be reached
  bool is_written = false;
  const auto give_up = [&](std::size_t i, std::string reason) {
    is_open[i] = false;
    problems[i].push_back(hosts_[i].name + ": " + std::move(reason));
  };
  std::vector<bool> has_greeted(hosts_.size(), false), has_clock(hosts_.size(), false);
  std::vector<std::string> machines(hosts_.size());
  const auto ask = [&](std::size_t i, bool writes) { send(i, question(check, writes)); };
  const auto are_done = [&] {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (is_open[i] && !is_checked[i]) return false;
    return true;
  };
  auto deadline = Clock::now() + patience_with_connection;
  while (!are_done()) {
    if (interrupted_ && interrupted_->load() > 0) throw HostError("interrupted while the hosts were being reached");
    const auto event = next(100ms);
    if (!event) {
      if (Clock::now() < deadline) continue;
      for (std::size_t i = 0; i < hosts_.size(); ++i)
        if (is_open[i] && !is_checked[i])
          give_up(i, has_greeted[i] ? "it does not answer in time; look for a file system that hangs"
                                    : "no answer in time; try by hand: ssh " + hosts_[i].name);
      break;
    }
    const std::size_t i = event->host;
    const Json& message = event->message;
    if (!is_open[i]) continue;
    if (message.is_null()) {
      give_up(i, why_closed(i));
    } else if (message.contains("assay")) {
      has_greeted[i] = true;
      deadline = std::max(deadline, Clock::now() + patience_with_answer);
      if (const std::string there = message.at("program"); there != program_hash_) {
        give_up(i, other_file_text(program_, there, program_hash_, hosts_[i]));
      } else {
        asked_s[i] = seconds_since_1970();
        send(i, {{"do", "time"}});
      }
    } else if (message.contains("time_s")) {
      if (const std::string problem = clock_problem(*asked_s[i], message.at("time_s"), seconds_since_1970(), hosts_[i]);
          !problem.empty())
        problems[i].push_back(problem);
      has_clock[i] = true;
    } else if (message.contains("checked")) {
      is_checked[i] = true;
      is_written = is_written || i == writer;
      machines[i] = machine_in(message);
      for (std::string& problem : problems_in(message, check, hosts_[i], hosts_[writer.value_or(0)]))
        problems[i].push_back(std::move(problem));
    }
    // The first host that is there writes, once all before it are known not to be; then the others read.
    if (!writer || (!is_open[*writer] && !is_written)) {
      writer.reset();
      for (std::size_t k = 0; k < hosts_.size() && !writer; ++k) {
        if (!is_open[k]) continue;
        if (!has_clock[k]) break;
        writer = k;
        ask(k, true);
        asked_s[k].reset();
      }
    }
    if (is_written)
      for (std::size_t k = 0; k < hosts_.size(); ++k)
        if (is_open[k] && has_clock[k] && asked_s[k] && k != *writer) {
          ask(k, false);
          asked_s[k].reset();
        }
  }
  // Ranks or shards of two hosts would measure one another.
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    for (std::size_t k = 0; k < i && !machines[i].empty(); ++k)
      if (machines[k] == machines[i]) {
        const std::string remedy = check.list.empty() ? fmt::format("name it once, with the ranks of both: \"{}:{}\"",
                                                                    hosts_[k].name, hosts_[i].slots + hosts_[k].slots)
                                                      : fmt::format("remove {} from {}", hosts_[i].name, check.list);
        problems[i].push_back(
            fmt::format("{}: it is the same machine as {}; {}", hosts_[i].name, hosts_[k].name, remedy));
        break;
      }
  if (writer && is_open[*writer]) send(*writer, {{"do", "checked"}});
  return problems;
}

void throw_problems(const std::vector<std::vector<std::string>>& problems) {
  std::vector<std::string> lines;
  for (const auto& of_host : problems) lines.insert(lines.end(), of_host.begin(), of_host.end());
  if (!lines.empty()) throw HostError(fmt::format("{}", fmt::join(lines, "\n")));
}

}  // namespace assay::host::hosts
