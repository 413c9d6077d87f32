// What parses bytes of others, fed with bytes that nobody meant: mutations of valid messages, and noise. The seed is
// always the same. ASSAY_FUZZ_INPUTS=N sets how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "helpers.hpp"
#include "raw_client.hpp"

namespace assay::host::wireup {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t inputs_by_default = 100'000;
#else
constexpr std::size_t inputs_by_default = 1'000'000;
#endif

std::size_t inputs() {
  const char* wanted = std::getenv("ASSAY_FUZZ_INPUTS");
  return wanted ? std::strtoull(wanted, nullptr, 10) : inputs_by_default;
}

class Mutator {
 public:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_()) % end; }

  std::string noise(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (char& each : text) each = static_cast<char>(random_());
    return text;
  }

  std::string mutated(std::string text) {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      switch (below(6)) {
        case 0: text.insert(at, noise(1 + below(8))); break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.resize(at); break;
        case 3: text += text.substr(at); break;
        // Lengths and counts are where it can go wrong.
        case 4: text.replace(std::min(at, text.size()), 4, std::string(4, below(2) ? '\xff' : '\0')); break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      }
    }
    return text;
  }

 private:
  std::mt19937_64 random_{20240229};
};

std::vector<std::string> valid_bodies() {
  std::vector<std::string> bodies;
  for (const std::string& frame :
       {text_frame(Message::Kind::join, {"case/7/", "node1"}, {3, 0, 0}), text_frame(Message::Kind::leave, {}),
        text_frame(Message::Kind::set, {"key", std::string(200, 'v')}),
        text_frame(Message::Kind::get, {"key"}, {-1, 0, 0}),
        text_frame(Message::Kind::exchange, {"name", ""}, {1, 2, std::int64_t{1} << 62}),
        text_frame(Message::Kind::done, {"a", "b", "", "d"}), text_frame(Message::Kind::error, {"what went wrong"})})
    bodies.push_back(frame.substr(frame_head_bytes));
  return bodies;
}

// Either it is refused, or it is a message: the one that gives the same bytes again.
TEST(Fuzz, Messages) {
  Mutator mutator;
  const std::vector<std::string> bodies = valid_bodies();
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < inputs(); ++i) {
    const std::string body = i % 4 == 0 ? mutator.noise(mutator.below(80)) : mutator.mutated(bodies[i % bodies.size()]);
    try {
      const Message message = parse_body(body);
      ASSERT_EQ(frame_of(message.kind, message.numbers, std::span(message.texts)).substr(frame_head_bytes), body);
      ++accepted;
    } catch (const WireupError&) {
    }
  }
  EXPECT_GT(accepted, inputs() / 100) << "the inputs are too wild to reach the parser's depth";
}

TEST(Fuzz, Handshakes) {
  Mutator mutator;
  const std::string hello(view_of(new_hello(Role::client)));
  for (std::size_t i = 0; i < inputs() / 10; ++i) {
    std::string bytes = i % 2 == 0 ? mutator.noise(hello_bytes) : mutator.mutated(hello);
    bytes.resize(hello_bytes);
    Hello read{};
    bytes.copy(read.data(), read.size());
    const bool begins_as_ours = bytes.compare(0, 12, hello, 0, 12) == 0 && bytes[16] == 'c';
    ASSERT_EQ(version_in(read, Role::client).has_value(), begins_as_ours);
    std::array<char, Verdict::bytes> verdict{};
    bytes.copy(verdict.data(), verdict.size());
    ASSERT_EQ(verdict_in(verdict).has_value(), bytes[0] == 0 || bytes[0] == 1);
  }
}

TEST(Fuzz, SealedParts) {
  Mutator mutator;
  const SealKey key{7};
  for (std::size_t i = 0; i < inputs() / 10; ++i) {
    Opener opener(key);
    std::array<char, sealed_head_bytes> head{};
    mutator.noise(head.size()).copy(head.data(), head.size());
    ASSERT_THROW(opener.open_head(head), SealError);
    std::string body = mutator.noise(seal_bytes + mutator.below(64));
    ASSERT_THROW(opener.open_body(body), SealError);
  }
}

// Strangers' bytes, and those of a rank that has proven itself and lost its mind.
TEST(Fuzz, Service) {
  Mutator mutator;
  const Served served;
  const std::vector<std::string> bodies = valid_bodies();
  const std::string handshake = std::string(view_of(new_hello(Role::client))) + mutator.noise(sizeof(Proof));
  for (std::size_t i = 0; i < inputs() / 1000; ++i) {
    RawClient raw(served.server.endpoint().port);
    if (i % 2 == 0) {
      raw.send_what_it_takes(mutator.mutated(handshake));
    } else {
      raw.enter(served.server);
      const std::string body = mutator.mutated(bodies[i % bodies.size()]);
      std::string frame;
      for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(body.size() >> shift);
      const std::string sealed = raw.sealed(frame + body);
      raw.send_what_it_takes(i % 4 == 1 ? sealed : mutator.mutated(sealed));
    }
  }
  KeyValueClient client(served.server.endpoint(), {});
  client.set("alive", "yes");
  EXPECT_EQ(client.get("alive", patient), "yes");
  EXPECT_GT(served.server.strangers().count(), 0u);
}

TEST(Fuzz, Endpoints) {
  Mutator mutator;
  const std::string endpoint = endpoint_text({{"10.0.0.1", "fd00::2"}, 4711, std::string(32, 's')});
  for (std::size_t i = 0; i < inputs() / 50; ++i) {
    try {
      const Endpoint read = parse_endpoint(mutator.mutated(endpoint));
      ASSERT_FALSE(read.addresses.empty());
      ASSERT_NE(read.port, 0);
    } catch (const WireupError& error) {
      ASSERT_EQ(std::string(error.what()).find("ssss"), std::string::npos) << "a message shows the token";
    }
  }
}

}  // namespace
}  // namespace assay::host::wireup
