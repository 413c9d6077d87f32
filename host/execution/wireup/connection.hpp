// A client's end of a connection to a KeyValueServer: blocking calls with a deadline, which a StopFlag ends at once.
//
// Until the server has proven that it knows the token, a client reads fixed sizes alone, and gives away nothing but its
// own proof. What follows is sealed: whatever else arrives ends the connection.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "wireup/key_value.hpp"
#include "wireup/message.hpp"
#include "wireup/sealing.hpp"
#include "wireup/stop_flag.hpp"

namespace assay::host::wireup {

// The service answered, and does not want this client; or this client does not want it: another token, another version,
// or no service of assay. Who listens there now will not change; another may listen there later.
class RefusedError : public WireupError {
 public:
  using WireupError::WireupError;
};

// The service does not let this member join: its rank is there already, or lost.
class MemberRefusedError : public RefusedError {
 public:
  using RefusedError::RefusedError;
};

// The service let go of this client before either had proven anything, as it may when strangers crowd its port.
class LetGoError : public WireupError {
 public:
  using WireupError::WireupError;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  // Connects, proves that it knows the token, and has the service prove it. `address` is numeric or a name.
  // `connect_by` is for the connection alone, `answer_by` for the proofs. Throws RefusedError, LetGoError, or another
  // WireupError; all name the address.
  Connection(const std::string& address, std::uint16_t port, std::string_view token, Deadline connect_by,
             Deadline answer_by, const StopFlag& stop);

  // Throw WireupError; the connection is of no use afterwards. `stop` must be alive.
  void send(std::string_view frame, Deadline deadline);
  Message receive(Deadline deadline);

  std::string local_address() const;
  const std::string& peer() const noexcept { return peer_; }  // "10.0.0.1:4711"

 private:
  void connect(const std::string& address, std::uint16_t port, Deadline deadline);
  void prove_each_other(std::string_view token, Deadline deadline);
  void check_version(const Hello& theirs) const;
  void send_bytes(std::string_view bytes, Deadline deadline);
  void read_exactly(char* data, std::size_t bytes, Deadline deadline);
  // Throws when the deadline passes or the flag is raised before one of `events` is there.
  void wait_for(short events, Deadline deadline) const;
  [[noreturn]] void fail(int error) const;

  const StopFlag* stop_;
  std::string peer_;
  Fd socket_;
  std::optional<Sealer> sealer_;  // both from the moment on at which the service has proven itself
  std::optional<Opener> opener_;
};

}  // namespace assay::host::wireup
