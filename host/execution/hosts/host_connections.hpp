// The near side of keepers of ranks (rank_keeper.hpp): a connection to each of some hosts.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/host_list.hpp"
#include "hosts/host_check.hpp"
#include "hosts/host_error.hpp"
#include "hosts/ssh.hpp"
#include "hosts/ssh_session.hpp"

namespace assay::host::hosts {

// How long the far side goes on without a sign of life.
std::chrono::seconds silence();

struct HostEvent {
  std::size_t host = 0;    // by its place in the list
  nlohmann::json message;  // null: the connection has ended
};

class HostConnections {
 public:
  // Connects to all at once. `interrupted`: looked at while this waits; a number above 0 stops it with a HostError.
  // Ignores SIGPIPE from here on.
  HostConnections(std::vector<SshHost> hosts, std::filesystem::path program, const std::atomic<int>* interrupted);
  HostConnections(const HostConnections&) = delete;
  HostConnections& operator=(const HostConnections&) = delete;
  ~HostConnections();

  // What keeps each host from being used, a line each, by host: no connection, other files, a clock that is far off, a
  // folder of results that is another one. All hosts are asked before this returns.
  std::vector<std::vector<std::string>> problems(const HostCheck& check);

  // Thread-safe.
  void send(std::size_t host, const nlohmann::json& message);
  void send_to_all(const nlohmann::json& message);
  // The next message, or end, of a host; nothing when there is none within the time, or `also` is readable.
  std::optional<HostEvent> next(std::chrono::milliseconds timeout, int also = -1);
  bool is_open(std::size_t host) const { return members_[host]->is_open; }
  bool are_all_closed() const;
  std::string why_closed(std::size_t host) const { return members_[host]->reason; }
  const std::vector<SshHost>& hosts() const { return hosts_; }

 private:
  struct Member {
    std::unique_ptr<SshSession> session;
    bool is_open = true, has_greeted = false;
    std::string reason;  // of its end
  };
  // What it says about another program at its place, whose hash a second call over the same connection reads.
  std::string reason_of(std::size_t host, int code);
  void keep_alive();

  std::vector<SshHost> hosts_;
  std::filesystem::path program_;
  std::string program_hash_;
  const std::atomic<int>* interrupted_;
  ControlFolder control_;
  std::vector<std::unique_ptr<Member>> members_;
  std::deque<HostEvent> events_;
  std::mutex mutex_;
  std::condition_variable end_of_pulse_;
  bool is_over_ = false;
  std::chrono::seconds silence_;
  std::thread pulse_;
};

// The lines of all hosts as one error, where there are any.
void throw_problems(const std::vector<std::vector<std::string>>& problems);

}  // namespace assay::host::hosts
