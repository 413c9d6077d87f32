// Serves a KeyValueStore through TCP.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "wireup/endpoint.hpp"
#include "wireup/key_value_store.hpp"
#include "wireup/listener.hpp"
#include "wireup/strangers.hpp"

namespace assay::host::wireup {

// One separate thread for any number of connections. Raises this process's soft limit of open files to the hard one.
//
// A client that does not prove that it knows the token gets this answer and nothing else, and is counted. Of those that
// have not proven anything yet there are at most `unproven_max`, with a fixed size to say (handshake.hpp) and a limited
// time. While a further one waits, the oldest of them that has had `unproven_time` goes: a rank needs a round trip.
// Others wait in the system's queue meanwhile, so that many ranks that come at once all get in.
class KeyValueServer {
 public:
  struct Options {
    Reach reach = Reach::this_machine;
    std::uint16_t port = 0;                                             // 0: any free one
    std::string token;                                                  // empty: a random one
    std::chrono::milliseconds hello_timeout = std::chrono::seconds(5);  // for a client that connects and stays silent
    std::size_t unproven_max = 64;
    std::chrono::milliseconds unproven_time = std::chrono::milliseconds(250);
  };

  // The store must outlive the server. Throws WireupError.
  KeyValueServer(KeyValueStore& store, Options options);
  // Waits up to a second until the answers that were due are out, and closes every connection. Its members leave, and
  // are not lost: it is not they who ended.
  ~KeyValueServer();

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  // Thread-safe.
  const Strangers& strangers() const noexcept { return strangers_; }

 private:
  class Service;

  Endpoint endpoint_;
  Strangers strangers_;
  std::unique_ptr<Service> service_;
};

}  // namespace assay::host::wireup
