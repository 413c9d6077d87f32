// How a client and a server of the key-value service prove to each other that they know the same token, before either
// of them reads a message of the other.
//
//   client -> server   Hello: name, version, role, 32 random bytes
//   server -> client   Hello: the same of the server
//   client -> server   Proof of the client
//   server -> client   Verdict: a code; with `welcome`, the proof of the server
//
// All four have a fixed size. Proofs and keys are HKDF-SHA-256 (RFC 5869) of the token, salted by both hellos: each
// needs the token, belongs to one role, one version and one connection, and reveals nothing of the rest. The client
// proves first, so that who knocks at a port learns nothing made of the token.
//
// The layout of a Hello stays the same in all versions from 2 on, so that two versions can recognise each other.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::host::wireup {

constexpr std::uint32_t wire_version = 2;
constexpr std::size_t hello_bytes = 12 + 4 + 1 + 32;

enum class Role : char { client = 'c', server = 's' };

using Hello = std::array<char, hello_bytes>;
using Proof = std::array<unsigned char, 32>;
using SealKey = std::array<unsigned char, 32>;

struct Verdict {
  static constexpr std::size_t bytes = 1 + 32;
  enum class Code : unsigned char { welcome = 0, wrong_token = 1 };
  Code code = Code::wrong_token;
  Proof proof{};  // of the server; zeros without `welcome`
};

// With random bytes that no other hello has. Throws WireupError when libsodium cannot be used.
Hello new_hello(Role role, std::uint32_t version = wire_version);
// The version that a hello of this role states; nothing if the bytes are no hello.
std::optional<std::uint32_t> version_in(const Hello& hello, Role role);

// What both sides make of the two hellos and the token.
struct Secrets {
  Proof client_proof{}, server_proof{};
  SealKey to_server{}, to_client{};
};
Secrets secrets_of(const Hello& client, const Hello& server, std::string_view token);

// Takes as long wherever the two differ.
bool is_same_proof(const Proof& a, const Proof& b);

std::array<char, Verdict::bytes> bytes_of(const Verdict& verdict);
// Nothing when the code is unknown.
std::optional<Verdict> verdict_in(const std::array<char, Verdict::bytes>& bytes);

}  // namespace assay::host::wireup
