// A client's end of a connection to a KeyValueServer: blocking calls with a deadline, which a StopFlag ends at once.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "wireup/key_value.hpp"
#include "wireup/message.hpp"
#include "wireup/stop_flag.hpp"

namespace assay::host::wireup {

// The service answered, and does not want this client: another token, another version. Trying again does not help.
class RefusedError : public WireupError {
 public:
  using WireupError::WireupError;
};

// The service does not let this member join: its rank is there already, or lost.
class MemberRefusedError : public RefusedError {
 public:
  using RefusedError::RefusedError;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  // Connects and shows the token. `address` is numeric or a name. `connect_by` is for the connection alone, `answer_by`
  // for the service's word. Throws RefusedError, or WireupError that names the address.
  Connection(const std::string& address, std::uint16_t port, std::string_view token, Deadline connect_by,
             Deadline answer_by, const StopFlag& stop);

  // Throw WireupError; the connection is of no use afterwards. `stop` must be alive.
  void send(std::string_view frame, Deadline deadline);
  Message receive(Deadline deadline);

  std::string local_address() const;
  const std::string& peer() const noexcept { return peer_; }  // "10.0.0.1:4711"

 private:
  void connect(const std::string& address, std::uint16_t port, Deadline deadline);
  void read_exactly(char* data, std::size_t bytes, Deadline deadline);
  // Throws when the deadline passes or the flag is raised before one of `events` is there.
  void wait_for(short events, Deadline deadline) const;
  [[noreturn]] void fail(int error) const;

  const StopFlag* stop_;
  std::string peer_;
  Fd socket_;
};

}  // namespace assay::host::wireup
