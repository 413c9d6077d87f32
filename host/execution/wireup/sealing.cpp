#include "wireup/sealing.hpp"

#include <sodium.h>

namespace assay::host::wireup {
namespace {

static_assert(seal_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(sizeof(SealKey) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

using PartNonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

PartNonce nonce_of(std::uint64_t part) {
  PartNonce nonce{};
  for (std::size_t i = 0; i < sizeof part; ++i) nonce[i] = static_cast<unsigned char>(part >> (8 * i));
  return nonce;
}

unsigned char* as_unsigned(char* data) { return reinterpret_cast<unsigned char*>(data); }
const unsigned char* as_unsigned(const char* data) { return reinterpret_cast<const unsigned char*>(data); }

}  // namespace

std::string Sealer::seal(std::string_view frame) {
  std::string sealed(frame.size() + 2 * seal_bytes, '\0');
  char* out = sealed.data();
  for (const std::string_view part : {frame.substr(0, frame_head_bytes), frame.substr(frame_head_bytes)}) {
    const PartNonce nonce = nonce_of(parts_++);
    crypto_aead_chacha20poly1305_ietf_encrypt(as_unsigned(out), nullptr, as_unsigned(part.data()), part.size(), nullptr,
                                              0, nullptr, nonce.data(), key_.data());
    out += part.size() + seal_bytes;
  }
  return sealed;
}

std::size_t Opener::open_head(const std::array<char, sealed_head_bytes>& sealed) {
  std::array<char, frame_head_bytes> head{};
  open(sealed.data(), sealed.size(), head.data());
  return body_bytes(head);
}

void Opener::open_body(std::string& sealed) {
  open(sealed.data(), sealed.size(), sealed.data());
  sealed.resize(sealed.size() - seal_bytes);
}

void Opener::open(const char* sealed, std::size_t bytes, char* plain) {
  const PartNonce nonce = nonce_of(parts_++);
  if (crypto_aead_chacha20poly1305_ietf_decrypt(as_unsigned(plain), nullptr, nullptr, as_unsigned(sealed), bytes,
                                                nullptr, 0, nonce.data(), key_.data()) != 0)
    throw SealError(
        "what came is not what the other end has sent next: it was changed, repeated, left out or added on the way");
}

}  // namespace assay::host::wireup
