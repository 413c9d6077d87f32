#include "wireup/message.hpp"

#include <gtest/gtest.h>

#include "helpers.hpp"
#include "raw_client.hpp"

namespace assay::host::wireup {
namespace {

TEST(Message, SurvivesTheWire) {
  const std::string frame =
      text_frame(Message::Kind::exchange, {"name", std::string_view("\0\x80", 2), ""}, {-1, std::int64_t{1} << 62, 3});
  std::array<char, frame_head_bytes> head{};
  frame.copy(head.data(), head.size());
  ASSERT_EQ(body_bytes(head), frame.size() - frame_head_bytes);
  const Message message = parse_body(std::string_view(frame).substr(frame_head_bytes));
  EXPECT_EQ(message.kind, Message::Kind::exchange);
  EXPECT_EQ(message.numbers, (Message::Numbers{-1, std::int64_t{1} << 62, 3}));
  EXPECT_EQ(message.texts, (std::vector<std::string>{"name", std::string("\0\x80", 2), ""}));
}

TEST(Message, EveryTornBodyIsRefused) {
  const std::string frame = text_frame(Message::Kind::set, {"key", "value"});
  const std::string_view body = std::string_view(frame).substr(frame_head_bytes);
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes)
    EXPECT_THROW(parse_body(body.substr(0, bytes)), WireupError) << bytes;
  EXPECT_CONTAINS(error_of([&] { parse_body(std::string(body) + "x"); }), "1 bytes too many");
}

TEST(Message, LyingCountsAndKindsAreRefused) {
  std::string body = text_frame(Message::Kind::set, {"key"}).substr(frame_head_bytes);
  std::string many = body;
  many[25] = '\xff';  // the first byte of the count of texts
  EXPECT_CONTAINS(error_of([&] { parse_body(many); }), "ends too early");
  for (const char kind : {'\0', '\x0a', '\xff'}) {
    body[0] = kind;
    EXPECT_CONTAINS(error_of([&] { parse_body(body); }), "unknown kind");
  }
}

TEST(Message, LargestBody) {
  const std::size_t overhead = text_frame(Message::Kind::set, {"k", ""}).size() - frame_head_bytes;
  const std::string value(body_bytes_max - overhead, 'x');
  EXPECT_EQ(text_frame(Message::Kind::set, {"k", value}).size(), frame_head_bytes + body_bytes_max);
  EXPECT_CONTAINS(error_of([&] { text_frame(Message::Kind::set, {"kk", value}); }), "takes 64 MiB");
}

}  // namespace
}  // namespace assay::host::wireup
