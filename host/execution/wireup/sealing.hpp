// Seals the frames of a connection whose two ends have proven themselves: nobody else can read, change, add, repeat,
// reorder or leave out one of them without the other end noticing.
//
// A frame travels as two sealed parts, its head (the length of the body) and its body, so that a length is believed
// only when it comes from the other end. Each part is ChaCha20-Poly1305 (RFC 8439) of a key of this direction alone,
// with the number of the part as nonce; a key serves one connection.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wireup/handshake.hpp"
#include "wireup/key_value.hpp"
#include "wireup/message.hpp"

namespace assay::host::wireup {

constexpr std::size_t seal_bytes = 16;
constexpr std::size_t sealed_head_bytes = frame_head_bytes + seal_bytes;

class SealError : public WireupError {
 public:
  using WireupError::WireupError;
};

class Sealer {
 public:
  explicit Sealer(const SealKey& key) : key_(key) {}
  // The next frame of this direction. `frame` comes from frame_of().
  std::string seal(std::string_view frame);

 private:
  const SealKey key_;
  std::uint64_t parts_ = 0;
};

// Both calls throw SealError when the bytes are not the next part that the other end has sealed; nothing of it is to be
// used then, and the connection is of no use any more.
class Opener {
 public:
  explicit Opener(const SealKey& key) : key_(key) {}
  // The length of the body that follows; it arrives as that many bytes and seal_bytes.
  std::size_t open_head(const std::array<char, sealed_head_bytes>& sealed);
  // Leaves the body alone in `sealed`.
  void open_body(std::string& sealed);

 private:
  void open(const char* sealed, std::size_t bytes, char* plain);

  const SealKey key_;
  std::uint64_t parts_ = 0;
};

}  // namespace assay::host::wireup
