// Where a key-value service is, and how that is said in text.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::host::wireup {

struct Endpoint {
  std::vector<std::string> addresses;  // numeric or names, to be tried in this order
  std::uint16_t port = 0;
  std::string token;
};

// JSON, one line; contains the token.
std::string endpoint_text(const Endpoint& endpoint);
// Throws WireupError when the text is no endpoint.
Endpoint parse_endpoint(std::string_view text);

// "10.0.0.1:4711", "[fd00::2]:4711"
std::string host_and_port(std::string_view host, std::uint16_t port);
// The reverse. Throws WireupError that names `what` and the text.
std::pair<std::string, std::uint16_t> parse_host_and_port(std::string_view text, std::string_view what);

// Why this machine finds no address for the name: "cannot resolve 'n9': Name or service not known"; "" where it does.
std::string why_unresolved(const std::string& name);

// The numeric addresses of this machine's interfaces that are up, in the system's order, then the loopback's.
// Link-local IPv6 addresses are left out: without this machine's name for the interface they lead nowhere.
std::vector<std::string> addresses_of_this_machine();

// The numeric form; an IPv4 address that came through an IPv6 socket is given as IPv4.
std::string numeric_address(const sockaddr* address);

}  // namespace assay::host::wireup
