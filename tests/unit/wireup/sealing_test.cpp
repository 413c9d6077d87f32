#include "wireup/sealing.hpp"

#include <gtest/gtest.h>

#include "helpers.hpp"
#include "raw_client.hpp"

namespace assay::host::wireup {
namespace {

const SealKey key{1, 2, 3}, other_key{1, 2, 4};

// As a connection opens it. Throws SealError.
Message opened(Opener& opener, std::string_view sealed) {
  std::array<char, sealed_head_bytes> head{};
  sealed.copy(head.data(), head.size());
  opener.open_head(head);
  std::string body(sealed.substr(sealed_head_bytes));
  opener.open_body(body);
  return parse_body(body);
}

std::string set_frame(std::string_view value) { return text_frame(Message::Kind::set, {"key", value}); }

TEST(Sealing, FramesPassInOrder) {
  Sealer sealer(key);
  Opener opener(key);
  for (const std::string value : {"a", "", "c"})
    EXPECT_EQ(opened(opener, sealer.seal(set_frame(value))).texts, (std::vector<std::string>{"key", value}));
}

TEST(Sealing, HidesWhatItHolds) {
  Sealer sealer(key);
  const std::string first = sealer.seal(set_frame("the token of another service")),
                    second = sealer.seal(set_frame("the token of another service"));
  EXPECT_EQ(first.find("token"), std::string::npos);
  EXPECT_NE(first, second);
}

TEST(Sealing, EveryFlippedBitIsNoticed) {
  Sealer sealer(key);
  const std::string sealed = sealer.seal(set_frame("value"));
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string flipped = sealed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    Opener opener(key);
    EXPECT_THROW(opened(opener, flipped), SealError) << bit;
  }
}

TEST(Sealing, LeftOutRepeatedReorderedAndForeignFramesAreNoticed) {
  Sealer sealer(key);
  const std::string first = sealer.seal(set_frame("first")), second = sealer.seal(set_frame("second"));
  {
    Opener opener(key);
    EXPECT_THROW(opened(opener, second), SealError) << "the first was left out, or came later";
  }
  {
    Opener opener(key);
    opened(opener, first);
    EXPECT_THROW(opened(opener, first), SealError) << "it was repeated";
  }
  {
    Opener opener(other_key);
    EXPECT_THROW(opened(opener, first), SealError) << "of another connection, or of the other direction";
  }
  {
    // The head of one frame with the body of another.
    Opener opener(key);
    EXPECT_THROW(opened(opener, first.substr(0, sealed_head_bytes) + second.substr(sealed_head_bytes)), SealError);
  }
}

}  // namespace
}  // namespace assay::host::wireup
