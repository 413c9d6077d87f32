// What a KeyValueClient and a KeyValueServer say to each other once they have proven themselves (handshake.hpp); it
// travels sealed (sealing.hpp).
//
// A frame is the length of its body (4 bytes) and the body: kind (1 byte), three numbers (8 bytes each), count of texts
// (4 bytes), and each text as its length (4 bytes) and its bytes. Integers are big-endian.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::wireup {

constexpr std::size_t frame_head_bytes = 4;
constexpr std::size_t body_bytes_max = std::size_t{64} << 20;

struct Message {
  enum class Kind : std::uint8_t {
    join = 1,  // numbers: rank; texts: group, host
    leave,
    set,       // texts: key, value
    get,       // numbers: timeout in ms; texts: key
    add,       // numbers: delta; texts: key
    exchange,  // numbers: rank, count, timeout in ms; texts: name, value
    done,      // numbers: the sum of add; texts: the values of get and exchange
    error      // texts: what went wrong
  };
  using Numbers = std::array<std::int64_t, 3>;

  Kind kind = Kind::error;
  Numbers numbers{};
  std::vector<std::string> texts;
};

// Throws WireupError when the body has more than body_bytes_max.
std::string frame_of(Message::Kind kind, const Message::Numbers& numbers, std::span<const std::string_view> texts);
std::string frame_of(Message::Kind kind, const Message::Numbers& numbers, std::span<const std::string> texts);

std::size_t body_bytes(std::span<const char, frame_head_bytes> head);

// Throws WireupError when the body is not exactly a message.
Message parse_body(std::string_view body);

}  // namespace assay::host::wireup
