// Serves a KeyValueStore through TCP.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "wireup/endpoint.hpp"
#include "wireup/key_value_store.hpp"
#include "wireup/listener.hpp"

namespace assay::host::wireup {

// One thread of its own for any number of connections. Raises this process's soft limit of open files to the hard one.
//
// A client that does not show the token gets told so and nothing else; what it sends is not looked at. Traffic is not
// encrypted: whoever can read the network can read the token.
class KeyValueServer {
 public:
  struct Options {
    Reach reach = Reach::this_machine;
    std::uint16_t port = 0;                                             // 0: any free one
    std::string token;                                                  // empty: a random one
    std::chrono::milliseconds hello_timeout = std::chrono::seconds(5);  // for a client that connects and says nothing
  };

  // The store must outlive the server. Throws WireupError.
  KeyValueServer(KeyValueStore& store, Options options);
  // Waits up to a second until the answers that were due are out, and closes every connection. Its members leave, and
  // are not lost: it is not they who ended.
  ~KeyValueServer();

  const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  class Service;

  Endpoint endpoint_;
  std::unique_ptr<Service> service_;
};

}  // namespace assay::host::wireup
