#include "wireup/key_value_server.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "helpers.hpp"
#include "raw_client.hpp"

namespace assay::host::wireup {
namespace {

// The service is alive and well after what a test did to it.
void expect_serving(const Served& served) {
  KeyValueClient client(served.server.endpoint(), {});
  client.set("alive", "yes");
  EXPECT_EQ(client.get("alive", patient), "yes");
}

// In its own network, whose loopback has ::1 alone: 0 where a client comes through, 77 where there is none to be
// had.
int serve_on_v6_alone() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0) return 77;
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  if (ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) return 77;
  loopback = {};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_addr.sa_family = AF_INET;  // 0.0.0.0: no address
  if (ioctl(any.get(), SIOCSIFADDR, &loopback) != 0) return 77;
  try {
    KeyValueStore store;
    KeyValueServer server(store, KeyValueServer::Options{.reach = Reach::this_machine});
    if (server.endpoint().addresses != std::vector<std::string>{"::1"}) return 2;
    KeyValueClient client(server.endpoint(), {});
    client.set("a", "b");
    return client.get("a", patient) == "b" && client.local_address() == "::1" ? 0 : 3;
  } catch (const WireupError& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

TEST(KeyValueServer, ALoopbackOfV6Alone) {
  const pid_t child = fork();
  if (child == 0) _exit(serve_on_v6_alone());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespace without IPv4 is to be had";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(KeyValueServer, EndpointOfTheLoopback) {
  const Served served;
  EXPECT_EQ(served.server.endpoint().addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_NE(served.server.endpoint().port, 0);
  EXPECT_EQ(served.server.endpoint().token.size(), 32u);
}

TEST(KeyValueServer, EndpointOfTheNetworkEndsWithTheLoopback) {
  KeyValueServer::Options options;
  options.reach = Reach::network;
  const Served served(options);
  const auto& addresses = served.server.endpoint().addresses;
  EXPECT_EQ(addresses, addresses_of_this_machine());
  EXPECT_NE(std::find(addresses.begin(), addresses.end(), "127.0.0.1"), addresses.end());
  // Each address leads there.
  for (const auto& address : addresses) {
    Endpoint one = served.server.endpoint();
    one.addresses = {address};
    KeyValueClient client(one, {});
    EXPECT_EQ(client.local_address(), address);
  }
}

TEST(KeyValueServer, TakenPortIsNamed) {
  const Served served;
  for (const Reach reach : {Reach::this_machine, Reach::network}) {
    KeyValueServer::Options options;
    options.reach = reach;
    options.port = served.server.endpoint().port;
    const std::string text = error_of([&] { Served second(options); });
    EXPECT_CONTAINS(text, "port " + std::to_string(options.port) + " is taken");
    EXPECT_CONTAINS(text, "choose another port");
  }
}

TEST(KeyValueServer, PortIsFreeAtOnceAfterItsEnd) {
  KeyValueServer::Options options;
  {
    const Served served;
    options.port = served.server.endpoint().port;
    expect_serving(served);
  }
  expect_serving(Served(options));
}

TEST(KeyValueServer, TornMessageDoesNothing) {
  const Served served;
  {
    RawClient raw(served.server.endpoint().port);
    raw.enter(served.server);
    const std::string set = text_frame(Message::Kind::set, {"torn", "value"});
    const std::string sealed = raw.sealed(set);
    raw.send(sealed.substr(0, sealed.size() - 1));
  }
  expect_serving(served);
  EXPECT_EQ(served.store.find("torn"), std::nullopt);
}

TEST(KeyValueServer, RefusesAnOversizeMessage) {
  const Served served;
  RawClient raw(served.server.endpoint().port);
  raw.enter(served.server);
  // A length of 64 MiB and 1, and some of what should follow.
  raw.send_message(std::string("\x04\x00\x00\x01", 4) + std::string(10'000, 'x'));
  const Message answer = raw.read_message();
  EXPECT_EQ(answer.kind, Message::Kind::error);
  EXPECT_CONTAINS(answer.texts.at(0), "67108865 bytes");
  raw.close();
  expect_serving(served);
}

TEST(KeyValueServer, RefusesWhatIsNoRequest) {
  const Served served;
  for (const std::string& frame : {text_frame(Message::Kind::done, {}), text_frame(Message::Kind::set, {"only a key"}),
                                   text_frame(Message::Kind::exchange, {"x", ""}, {std::int64_t{1} << 40, 2, 1}),
                                   std::string("\x00\x00\x00\x01?", 5)}) {
    RawClient raw(served.server.endpoint().port);
    raw.enter(served.server);
    raw.send_message(frame);
    EXPECT_EQ(raw.read_message().kind, Message::Kind::error);
    raw.close();
  }
  expect_serving(served);
}

TEST(KeyValueServer, RefusesASecondRequestBeforeTheFirstAnswer) {
  const Served served;
  RawClient raw(served.server.endpoint().port);
  raw.enter(served.server);
  raw.send_message(text_frame(Message::Kind::get, {"never"}, {60'000, 0, 0}));
  raw.send_message(text_frame(Message::Kind::get, {"never"}, {60'000, 0, 0}));
  EXPECT_CONTAINS(raw.read_message().texts.at(0), "before the answer");
  raw.close();
  expect_serving(served);
}

// Ranks end together after a last exchange, and rank 0 takes the service with it.
TEST(KeyValueServer, AnswersWhatIsDueBeforeItEnds) {
  constexpr int ranks = 8;
  for (int round = 0; round < 20; ++round) {
    auto served = std::make_unique<Served>();
    std::vector<std::future<std::size_t>> others;
    for (int rank = 1; rank < ranks; ++rank)
      others.push_back(std::async(std::launch::async, [rank, endpoint = served->server.endpoint()] {
        KeyValueClient client(endpoint, {});
        return client.exchange("end", rank, ranks, "", patient).size();
      }));
    served->store.exchange("end", 0, ranks, "", patient);
    served.reset();
    for (auto& other : others) EXPECT_EQ(other.get(), static_cast<std::size_t>(ranks));
  }
}

TEST(KeyValueServer, LargeAnswerIsWholeWhenItEnds) {
  auto served = std::make_unique<Served>();
  KeyValueClient client(served->server.endpoint(), {});
  auto value = std::async(std::launch::async, [&] { return client.get("large", patient).size(); });
  await_waits(served->store, 1);
  served->store.set("large", std::string(8 << 20, 'x'));
  served.reset();
  EXPECT_EQ(value.get(), std::size_t{8} << 20);
}

TEST(KeyValueServer, RaisesTheLimitOfOpenFiles) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(before.rlim_cur, 256);
  setrlimit(RLIMIT_NOFILE, &low);
  const Served served;
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

// A worker that inherited a connection would keep it open after its owner ended.
TEST(KeyValueServer, NoDescriptorIsInherited) {
  KeyValueServer::Options options;
  options.reach = Reach::network;
  std::vector<int> before, inherited;
  const auto list = [](std::vector<int>& fds) {
    for (int fd = 3; fd < 1024; ++fd)
      if (const int flags = fcntl(fd, F_GETFD); flags >= 0 && !(flags & FD_CLOEXEC)) fds.push_back(fd);
  };
  list(before);
  Served served(options);
  KeyValueClient client(served.server.endpoint(), served.member(0));
  client.set("a", "1");
  const auto watch = served.store.watch("");
  list(inherited);
  EXPECT_EQ(inherited, before);
}

}  // namespace
}  // namespace assay::host::wireup
