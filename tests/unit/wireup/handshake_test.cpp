#include "wireup/handshake.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

constexpr std::string_view given = "0123456789abcdef0123456789abcdef";

// With random bytes that count up from `first`, as no real one has them.
Hello counted_hello(Role role, char first) {
  Hello hello = new_hello(role);
  std::iota(hello.end() - 32, hello.end(), first);
  return hello;
}

template <typename Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// What an implementation of HKDF-SHA-256 of another language makes of the same hellos and token.
TEST(Handshake, SecretsAreThoseOfTheProtocol) {
  const Secrets secrets = secrets_of(counted_hello(Role::client, 0), counted_hello(Role::server, 32), given);
  EXPECT_EQ(hex(secrets.client_proof), "8a2fdf5b5ab0015c23d43b40143f839b43826b5ba933386b7022389798f75ec6");
  EXPECT_EQ(hex(secrets.server_proof), "4fa47aabd60c606e9557b5a8df16770da6308e9fd9c3507372a6ff9d693cd95f");
  EXPECT_EQ(hex(secrets.to_server), "898ccdc81bad1a3d01d8f3162a96ccaaccf3261d86cf5813c098140e3ca8645d");
  EXPECT_EQ(hex(secrets.to_client), "92a6a476b0133cf1e528ca7f82f7747614e5b5fe8397f7470962eba016557f2f");
}

TEST(Handshake, SecretsNeedEveryPartOfIt) {
  const Hello client = counted_hello(Role::client, 0), server = counted_hello(Role::server, 32);
  std::set<std::string> seen;
  const auto add = [&seen](const Secrets& secrets) {
    for (const auto& each : {secrets.client_proof, secrets.server_proof, secrets.to_server, secrets.to_client})
      EXPECT_TRUE(seen.insert(hex(each)).second);
  };
  add(secrets_of(client, server, given));
  add(secrets_of(client, server, "another token of the same launch"));
  add(secrets_of(client, counted_hello(Role::server, 33), given));
  add(secrets_of(counted_hello(Role::client, 1), server, given));
  add(secrets_of(server, client, given));
  // One that a man in the middle has rewritten to another version, or turned around.
  Hello older = client, turned = client;
  older[15] = 1;
  turned[16] = static_cast<char>(Role::server);
  add(secrets_of(older, server, given));
  add(secrets_of(turned, server, given));
}

TEST(Handshake, HelloTellsVersionAndRole) {
  EXPECT_EQ(version_in(new_hello(Role::client), Role::client), wire_version);
  EXPECT_EQ(version_in(new_hello(Role::server, 0x01020304), Role::server), 0x01020304u);
  EXPECT_EQ(version_in(new_hello(Role::client), Role::server), std::nullopt);
  EXPECT_EQ(version_in(new_hello(Role::server), Role::client), std::nullopt);
  EXPECT_EQ(version_in(Hello{}, Role::client), std::nullopt);
  EXPECT_NE(new_hello(Role::client), new_hello(Role::client));
}

TEST(Handshake, VerdictSurvivesTheWire) {
  const Secrets secrets = secrets_of(counted_hello(Role::client, 0), counted_hello(Role::server, 32), given);
  const auto verdict = verdict_in(bytes_of({Verdict::Code::welcome, secrets.server_proof}));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->code, Verdict::Code::welcome);
  EXPECT_TRUE(is_same_proof(verdict->proof, secrets.server_proof));
  EXPECT_FALSE(is_same_proof(verdict->proof, secrets.client_proof));
  std::array<char, Verdict::bytes> unknown{};
  unknown[0] = 2;
  EXPECT_FALSE(verdict_in(unknown));
}

}  // namespace
}  // namespace assay::host::wireup
