#include "wireup/endpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

TEST(Endpoint, SurvivesItsText) {
  const Endpoint endpoint{{"10.0.0.1", "fd00::2"}, 4711, "secret"};
  const Endpoint again = parse_endpoint(endpoint_text(endpoint));
  EXPECT_EQ(again.addresses, endpoint.addresses);
  EXPECT_EQ(again.port, 4711);
  EXPECT_EQ(again.token, "secret");
}

TEST(Endpoint, TornTextIsRefused) {
  const std::string text = endpoint_text({{"10.0.0.1"}, 4711, "secret"});
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_THROW(parse_endpoint(text.substr(0, bytes)), WireupError) << bytes;
  EXPECT_THROW(parse_endpoint(R"({"addresses": [], "port": 1, "token": ""})"), WireupError);
  EXPECT_THROW(parse_endpoint(R"({"addresses": ["a"], "port": "1", "token": ""})"), WireupError);
}

TEST(HostAndPort, BothWays) {
  using Pair = std::pair<std::string, std::uint16_t>;
  EXPECT_EQ(parse_host_and_port("node1:4711", "X"), Pair("node1", 4711));
  EXPECT_EQ(parse_host_and_port("[fd00::2]:1", "X"), Pair("fd00::2", 1));
  EXPECT_EQ(host_and_port("fd00::2", 1), "[fd00::2]:1");
  EXPECT_EQ(host_and_port("10.0.0.1", 65535), "10.0.0.1:65535");
  for (const char* wrong :
       {"", "node1", "node1:", ":4711", "node1:0", "node1:65536", "node1:47x", "fd00::2:1", "[]:1"}) {
    const std::string text = error_of([&] { parse_host_and_port(wrong, "ASSAY_RENDEZVOUS"); });
    EXPECT_CONTAINS(text, "ASSAY_RENDEZVOUS is '" + std::string(wrong) + "'; expected HOST:PORT");
  }
}

TEST(AddressesOfThisMachine, LoopbackComesLast) {
  const auto addresses = addresses_of_this_machine();
  const auto loopback = std::find(addresses.begin(), addresses.end(), "127.0.0.1");
  ASSERT_NE(loopback, addresses.end());
  for (auto each = loopback; each != addresses.end(); ++each)
    EXPECT_TRUE(each->starts_with("127.") || *each == "::1") << *each;
  for (const auto& each : addresses) EXPECT_FALSE(each.starts_with("fe80")) << each;
}

}  // namespace
}  // namespace assay::host::wireup
