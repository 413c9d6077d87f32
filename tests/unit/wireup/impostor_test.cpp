// Whoever plays the server to a true client: gets no message of it, and cannot make it believe anything.
#include <gtest/gtest.h>

#include "helpers.hpp"
#include "man_in_the_middle.hpp"
#include "wireup/rendezvous.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

// Accepts one connection, and does to it what a test wants done.
class Impostor {
 public:
  explicit Impostor(std::function<void(RawClient& victim)> act)
      : thread_([this, act = std::move(act)] {
          pollfd waited{listener_.socket.get(), POLLIN, 0};
          if (poll(&waited, 1, 60'000) <= 0) return;
          RawClient victim{Fd(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC))};
          try {
            act(victim);
            // Closing with bytes unread would take back what was sent.
            victim.read_to_the_end();
          } catch (const std::runtime_error&) {  // the victim has gone, as it should
          }
        }) {}
  ~Impostor() { thread_.join(); }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  std::uint16_t port() const { return listener_.port; }

 private:
  const Listener listener_ = listen_on(Reach::this_machine, 0);
  std::thread thread_;
};

std::string error_at(std::uint16_t port, const std::string& token = random_token()) {
  KeyValueClient::Options once;
  once.connect_timeout = 0ms;
  return error_of([&] { KeyValueClient client({{"127.0.0.1"}, port, token}, once); });
}

TEST(Impostor, WithoutTheTokenIsRefusedAndHearsNothing) {
  std::string heard;
  {
    const Impostor impostor([&](RawClient& victim) {
      victim.read_exactly(hello_bytes);
      victim.send(view_of(new_hello(Role::server)));
      victim.read_exactly(sizeof(Proof));
      victim.send(view_of(bytes_of({Verdict::Code::welcome, Proof{}})));
      heard = victim.read_to_the_end();
    });
    EXPECT_CONTAINS(error_at(impostor.port()),
                    "127.0.0.1:" + std::to_string(impostor.port()) + " does not prove that it knows the token");
  }
  EXPECT_EQ(heard, "") << "the client spoke to a server that it had not verified";
}

TEST(Impostor, ThatSpeaksAnotherProtocolIsNamed) {
  const Impostor impostor(
      [](RawClient& victim) { victim.send("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and more of it\r\n"); });
  EXPECT_CONTAINS(error_at(impostor.port()), "is no key-value service of assay");
}

TEST(Impostor, OfAnotherVersionIsNamed) {
  const Impostor impostor([](RawClient& victim) { victim.send(view_of(new_hello(Role::server, wire_version + 7))); });
  EXPECT_CONTAINS(error_at(impostor.port()), "use the same assay for all ranks");
}

TEST(Impostor, ThatClosesIsNamed) {
  const Impostor impostor([](RawClient& victim) { victim.close(); });
  EXPECT_CONTAINS(error_at(impostor.port()), "closed the connection before it had proven");
}

// What the client says about itself, turned around, proves nothing.
TEST(Impostor, CannotMirrorTheClient) {
  const Impostor impostor([](RawClient& victim) {
    std::string hello = victim.read_exactly(hello_bytes);
    hello[16] = static_cast<char>(Role::server);
    victim.send(hello);
    const std::string proof = victim.read_exactly(sizeof(Proof));
    victim.send(std::string(1, '\0') + proof);
  });
  EXPECT_CONTAINS(error_at(impostor.port()), "does not prove that it knows the token");
}

TEST(Impostor, CannotReplayWhatATrueServerSent) {
  Served served;
  std::string recorded;
  {
    ManInTheMiddle middle(served.server.endpoint().port);
    Endpoint endpoint = served.server.endpoint();
    endpoint.port = middle.port();
    served.store.set("leader/order/1/0", "an order");
    KeyValueClient client(endpoint, {});
    EXPECT_EQ(client.get("leader/order/1/0", patient), "an order");
    recorded = middle.recorded(ManInTheMiddle::to_client);
  }
  EXPECT_EQ(recorded.find("an order"), std::string::npos);
  const Impostor impostor([&](RawClient& victim) { victim.send_what_it_takes(recorded); });
  EXPECT_CONTAINS(error_at(impostor.port(), served.server.endpoint().token), "does not prove that it knows the token");
}

TEST(Impostor, CannotChangeAnAnswer) {
  Served served;
  served.store.set("order", std::string(100, 'x'));
  for (const std::size_t at : {0u, 19u, 20u, 70u}) {
    ManInTheMiddle middle(
        served.server.endpoint().port, [&](ManInTheMiddle::Direction direction, std::size_t offset, std::string bytes) {
          const std::size_t place = hello_bytes + Verdict::bytes + at;
          if (direction == ManInTheMiddle::to_client && offset <= place && place < offset + bytes.size())
            bytes[place - offset] = static_cast<char>(bytes[place - offset] ^ 0x10);
          return bytes;
        });
    Endpoint endpoint = served.server.endpoint();
    endpoint.port = middle.port();
    KeyValueClient client(endpoint, {});
    EXPECT_CONTAINS(error_of([&] { client.get("order", patient); }), "cannot be trusted");
  }
}

LaunchedRank rank_at(std::int32_t rank, std::uint16_t port, const std::string& token) {
  LaunchedRank launched;
  launched.rank = rank;
  launched.size = 2;
  launched.launcher = "assay";
  launched.job_id = "assay-here";
  launched.rendezvous = ExplicitRendezvous{"127.0.0.1", port, token};
  return launched;
}

TEST(Impostor, WhoComesFirstIsOutwaited) {
  const std::string token = random_token();
  std::uint16_t port = 0;
  std::future<std::int64_t> met;
  {
    // A service of another launch, and so with another token.
    Served first;
    port = first.server.endpoint().port;
    met = std::async(std::launch::async,
                     [&, port] { return meet_rank0(rank_at(1, port, token), "", {}, patient)->add("n", 1); });
    while (first.server.strangers().count() == 0) std::this_thread::sleep_for(1ms);
    EXPECT_CONTAINS(error_of([&] { meet_rank0(rank_at(1, port, token), "", {}, brief); }), "wrong token");
  }
  KeyValueStore store;
  const RendezvousPoint point(store, rank_at(0, port, token), "");
  EXPECT_EQ(met.get(), 1);
}

}  // namespace
}  // namespace assay::host::wireup
