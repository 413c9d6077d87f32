#include "wireup/message.hpp"

#include <fmt/format.h>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {
namespace {

constexpr std::size_t body_bytes_min = 1 + 3 * 8 + 4;

template <typename T>
void put(std::string& out, T value) {
  for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<std::uint8_t>(value >> shift));
}

template <typename Text>
std::string frame(Message::Kind kind, const Message::Numbers& numbers, std::span<const Text> texts) {
  std::size_t bytes = body_bytes_min;
  for (const auto& text : texts) bytes += 4 + text.size();
  if (bytes > body_bytes_max)
    throw WireupError(
        fmt::format("a message of {} bytes is too large for the key-value service, which takes {} MiB; "
                    "send large data through a communicator",
                    bytes, body_bytes_max >> 20));
  std::string out;
  out.reserve(frame_head_bytes + bytes);
  put(out, static_cast<std::uint32_t>(bytes));
  put(out, static_cast<std::uint8_t>(kind));
  for (const std::int64_t number : numbers) put(out, static_cast<std::uint64_t>(number));
  put(out, static_cast<std::uint32_t>(texts.size()));
  for (const auto& text : texts) {
    put(out, static_cast<std::uint32_t>(text.size()));
    out += text;
  }
  return out;
}

class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}

  template <typename T>
  T number() {
    T value = 0;
    for (const char byte : bytes(sizeof(T))) value = static_cast<T>((value << 8) | static_cast<std::uint8_t>(byte));
    return value;
  }
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) throw WireupError("a message ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string frame_of(Message::Kind kind, const Message::Numbers& numbers, std::span<const std::string_view> texts) {
  return frame(kind, numbers, texts);
}

std::string frame_of(Message::Kind kind, const Message::Numbers& numbers, std::span<const std::string> texts) {
  return frame(kind, numbers, texts);
}

std::size_t body_bytes(std::span<const char, frame_head_bytes> head) {
  return BodyReader({head.data(), head.size()}).number<std::uint32_t>();
}

Message parse_body(std::string_view body) {
  BodyReader reader(body);
  Message message;
  const auto kind = reader.number<std::uint8_t>();
  if (kind < static_cast<std::uint8_t>(Message::Kind::join) || kind > static_cast<std::uint8_t>(Message::Kind::error))
    throw WireupError(fmt::format("a message has the unknown kind {}", kind));
  message.kind = static_cast<Message::Kind>(kind);
  for (std::int64_t& number : message.numbers) number = static_cast<std::int64_t>(reader.number<std::uint64_t>());
  const auto count = reader.number<std::uint32_t>();
  // Each text takes 4 bytes at least: a count that lies must not reserve memory.
  if (count > reader.left() / 4) throw WireupError("a message ends too early");
  message.texts.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) message.texts.emplace_back(reader.bytes(reader.number<std::uint32_t>()));
  if (reader.left() > 0) throw WireupError(fmt::format("a message has {} bytes too many", reader.left()));
  return message;
}

}  // namespace assay::host::wireup
