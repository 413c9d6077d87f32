#include "wireup/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

constexpr std::string_view hello_name = "assay-wireup";
constexpr std::size_t version_at = 12, role_at = 16, random_at = 17;
static_assert(hello_name.size() == version_at && random_at + 32 == hello_bytes);
static_assert(crypto_auth_hmacsha256_BYTES == sizeof(Proof) && sizeof(Proof) == sizeof(SealKey));

using Digest = std::array<unsigned char, crypto_auth_hmacsha256_BYTES>;

const unsigned char* unsigned_data(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Keys of any length, as RFC 2104 has them.
Digest hmac_sha256(std::string_view key, std::string_view text) {
  Digest digest{};
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, unsigned_data(key), key.size());
  crypto_auth_hmacsha256_update(&state, unsigned_data(text), text.size());
  crypto_auth_hmacsha256_final(&state, digest.data());
  sodium_memzero(&state, sizeof state);
  return digest;
}

// The first block of HKDF-Expand; as many bytes as are needed.
Digest expanded(const Digest& extracted, std::string_view purpose) {
  std::string info(purpose);
  info += '\x01';
  return hmac_sha256({reinterpret_cast<const char*>(extracted.data()), extracted.size()}, info);
}

}  // namespace

Hello new_hello(Role role, std::uint32_t version) {
  make_sodium_ready();
  Hello hello{};
  hello_name.copy(hello.data(), hello_name.size());
  for (std::size_t i = 0; i < 4; ++i) hello[version_at + i] = static_cast<char>((version >> (8 * (3 - i))) & 0xff);
  hello[role_at] = static_cast<char>(role);
  randombytes_buf(hello.data() + random_at, hello.size() - random_at);
  return hello;
}

std::optional<std::uint32_t> version_in(const Hello& hello, Role role) {
  if (std::string_view(hello.data(), hello_name.size()) != hello_name) return std::nullopt;
  if (hello[role_at] != static_cast<char>(role)) return std::nullopt;
  std::uint32_t version = 0;
  for (std::size_t i = 0; i < 4; ++i) version = (version << 8) | static_cast<unsigned char>(hello[version_at + i]);
  return version;
}

Secrets secrets_of(const Hello& client, const Hello& server, std::string_view token) {
  std::string salt(client.data(), client.size());
  salt.append(server.data(), server.size());
  Digest extracted = hmac_sha256(salt, token);
  Secrets secrets{
      expanded(extracted, "assay-wireup proof of the client"), expanded(extracted, "assay-wireup proof of the server"),
      expanded(extracted, "assay-wireup key to the server"), expanded(extracted, "assay-wireup key to the client")};
  sodium_memzero(extracted.data(), extracted.size());
  return secrets;
}

bool is_same_proof(const Proof& a, const Proof& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

std::array<char, Verdict::bytes> bytes_of(const Verdict& verdict) {
  std::array<char, Verdict::bytes> bytes{};
  bytes[0] = static_cast<char>(verdict.code);
  std::memcpy(bytes.data() + 1, verdict.proof.data(), verdict.proof.size());
  return bytes;
}

std::optional<Verdict> verdict_in(const std::array<char, Verdict::bytes>& bytes) {
  Verdict verdict;
  verdict.code = static_cast<Verdict::Code>(bytes[0]);
  if (verdict.code != Verdict::Code::welcome && verdict.code != Verdict::Code::wrong_token) return std::nullopt;
  std::memcpy(verdict.proof.data(), bytes.data() + 1, verdict.proof.size());
  return verdict;
}

}  // namespace assay::host::wireup
