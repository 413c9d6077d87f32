#include "wireup/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {
namespace {

bool is_link_local(const sockaddr* address) {
  sockaddr_in6 v6{};
  if (address->sa_family != AF_INET6) return false;
  std::memcpy(&v6, address, sizeof v6);
  return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

std::uint16_t parse_port(std::string_view digits, std::string_view what, std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0 || port > 65535)
    throw WireupError(fmt::format("{} is '{}'; expected HOST:PORT with a port from 1 to 65535", what, text));
  return static_cast<std::uint16_t>(port);
}

}  // namespace

std::string endpoint_text(const Endpoint& endpoint) {
  return nlohmann::json{{"addresses", endpoint.addresses}, {"port", endpoint.port}, {"token", endpoint.token}}.dump();
}

Endpoint parse_endpoint(std::string_view text) {
  try {
    const auto document = nlohmann::json::parse(text);
    Endpoint endpoint{document.at("addresses").get<std::vector<std::string>>(),
                      document.at("port").get<std::uint16_t>(), document.at("token").get<std::string>()};
    if (endpoint.addresses.empty() || endpoint.port == 0) throw WireupError("an endpoint without address or port");
    return endpoint;
  } catch (const nlohmann::json::exception&) {
    // The parser's own words would show a part of the text, and the token is in it.
    throw WireupError("not an endpoint: it was cut short, or assay has not written it");
  }
}

std::string host_and_port(std::string_view host, std::uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

std::pair<std::string, std::uint16_t> parse_host_and_port(std::string_view text, std::string_view what) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    throw WireupError(fmt::format("{} is '{}'; expected HOST:PORT with a port from 1 to 65535", what, text));
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]") != std::string_view::npos))
    throw WireupError(fmt::format("{} is '{}'; expected HOST:PORT, and brackets around an IPv6 address", what, text));
  return {std::string(host), parse_port(text.substr(colon + 1), what, text)};
}

std::string why_unresolved(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return error == 0 ? "" : fmt::format("cannot resolve '{}': {}", name, gai_strerror(error));
}

std::vector<std::string> addresses_of_this_machine() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw WireupError("cannot list the network interfaces: " + std::generic_category().message(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<std::string> outside, loopback;
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
    if (is_link_local(entry->ifa_addr)) continue;
    (entry->ifa_flags & IFF_LOOPBACK ? loopback : outside).push_back(numeric_address(entry->ifa_addr));
  }
  outside.insert(outside.end(), loopback.begin(), loopback.end());
  return outside;
}

std::string numeric_address(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    else
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace assay::host::wireup
