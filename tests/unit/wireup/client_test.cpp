#include "wireup/key_value_client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "helpers.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

TEST(KeyValueClient, DoesWhatTheStoreDoes) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  client.set("a", std::string_view("\0\xff", 2));
  EXPECT_EQ(client.get("a", patient), std::string("\0\xff", 2));
  EXPECT_EQ(served.store.find("a"), std::string("\0\xff", 2));
  EXPECT_EQ(client.add("n", 40), 40);
  EXPECT_EQ(served.store.add("n", 2), 42);
  EXPECT_EQ(client.exchange("alone", 0, 1, "me", patient), std::vector<std::string>{"me"});
  auto other = std::async(std::launch::async, [&] { return served.store.exchange("x", 0, 2, "host", patient); });
  EXPECT_EQ(client.exchange("x", 1, 2, "", patient), (std::vector<std::string>{"host", ""}));
  other.get();
}

TEST(KeyValueClient, PutsItsPrefixBeforeEveryName) {
  Served served;
  KeyValueClient::Options options;
  options.prefix = "case/7/";
  options.member = Member{"", 3, "n3"};
  KeyValueClient client(served.server.endpoint(), options);
  client.set("a", "1");
  client.add("n", 1);
  EXPECT_EQ(served.store.find("case/7/a"), "1");
  EXPECT_EQ(served.store.add("case/7/n", 1), 2);
  EXPECT_CONTAINS(error_of([&] { client.exchange("x", 0, 2, "", brief); }), "exchange 'case/7/x'");
  EXPECT_CONTAINS(error_of([&] { served.store.join({"case/7/", 3, "n4"}); }), "on host n3");
}

TEST(KeyValueClient, LargeValuesPass) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  std::string value(8 << 20, 'x');
  value[1234567] = 'y';
  client.set("large", value);
  EXPECT_TRUE(client.get("large", patient) == value);
  EXPECT_CONTAINS(error_of([&] { client.set("k", std::string(body_bytes_max, 'x')); }), "too large");
  EXPECT_EQ(client.add("n", 1), 1);
}

TEST(KeyValueClient, WaitingCallsDoNotHoldUpOthers) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  std::vector<std::future<std::string>> waiting;
  for (int i = 0; i < 8; ++i)
    waiting.push_back(std::async(std::launch::async, [&] { return client.get("late", patient); }));
  await_waits(served.store, 8);
  EXPECT_EQ(client.add("n", 1), 1);
  client.set("late", "now");
  for (auto& each : waiting) EXPECT_EQ(each.get(), "now");
}

TEST(KeyValueClient, DeadlinesAreKeptByTheService) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  EXPECT_EQ(error_of([&] { client.get("never", brief); }), "nobody set 'never' within 0.05 s");
  EXPECT_EQ(error_of([&] { client.exchange("x", 1, 3, "", brief); }),
            "exchange 'x': ranks 0 and 2 of 3 did not come within 0.05 s");
  // The client is as good as before.
  client.set("never", "now");
  EXPECT_EQ(client.get("never", brief), "now");
}

TEST(KeyValueClient, NotesAServiceThatIsGone) {
  auto served = std::make_unique<Served>();
  KeyValueClient client(served->server.endpoint(), {});
  client.set("a", "1");
  auto waiting = error_later([&] { client.get("never", 10min); });
  await_waits(served->store, 1);
  served.reset();
  EXPECT_CONTAINS(waiting.get(), "is gone");
  EXPECT_CONTAINS(error_of([&] { client.set("a", "2"); }), "is gone");
  EXPECT_CONTAINS(error_of([&] { client.set("a", "2"); }), "is gone");
}

TEST(KeyValueClient, NotesAServiceThatHangs) {
  // A listener that takes connections, by its backlog, and never answers.
  const Listener mute = listen_on(Reach::this_machine, 0);
  KeyValueClient::Options options;
  options.connect_timeout = brief;
  const std::string text = error_of([&] {
    KeyValueClient client({{"127.0.0.1"}, mute.port, random_token()}, options);
  });
  EXPECT_CONTAINS(text, "127.0.0.1:" + std::to_string(mute.port) + " does not answer in time");
}

TEST(KeyValueClient, TriesAllAddressesAndSaysWhatEachAnswered) {
  Served served;
  Endpoint endpoint = served.server.endpoint();
  endpoint.addresses = {"no.such.host.invalid", "127.0.0.99", "127.0.0.1"};
  KeyValueClient client(endpoint, {});
  EXPECT_EQ(client.local_address(), "127.0.0.1");
  EXPECT_EQ(client.endpoint().addresses.front(), "127.0.0.1");
  EXPECT_EQ(client.endpoint().addresses.size(), 3u);
  client.set("a", "1");
  endpoint.addresses.pop_back();
  KeyValueClient::Options options;
  options.connect_timeout = 0ms;
  const std::string text = error_of([&] { KeyValueClient other(endpoint, options); });
  EXPECT_CONTAINS(text, "cannot resolve 'no.such.host.invalid'");
  EXPECT_CONTAINS(text, "127.0.0.99:" + std::to_string(endpoint.port) + ": Connection refused");
}

TEST(KeyValueClient, WaitsForAServiceThatStartsLater) {
  KeyValueServer::Options options;
  options.token = random_token();
  options.port = listen_on(Reach::this_machine, 0).port;  // free again after this line
  auto connected = std::async(std::launch::async, [&] {
    KeyValueClient client({{"127.0.0.1"}, options.port, options.token}, {});
    return client.add("n", 1);
  });
  let_others_wait();
  Served served(options);
  EXPECT_EQ(connected.get(), 1);
}

TEST(KeyValueClient, StopEndsEveryCall) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  auto get = error_later([&] { client.get("never", 10min); });
  auto exchange = error_later([&] { client.exchange("x", 0, 2, "", 10min); });
  await_waits(served.store, 2);
  client.stop();
  EXPECT_EQ(get.get(), "the key-value client was stopped");
  EXPECT_EQ(exchange.get(), "the key-value client was stopped");
  EXPECT_EQ(error_of([&] { client.add("n", 1); }), "the key-value client was stopped");
}

TEST(KeyValueClient, DestructionEndsCallsOfOtherThreads) {
  Served served;
  auto client = std::make_unique<KeyValueClient>(served.server.endpoint(), KeyValueClient::Options{});
  std::atomic<bool> returned = false;
  auto waiting = std::async(std::launch::async, [&, raw = client.get()] {
    const std::string text = error_of([raw] { raw->get("never", 10min); });
    returned = true;
    return text;
  });
  await_waits(served.store, 1);
  client.reset();
  EXPECT_EQ(waiting.get(), "the key-value client was stopped");
  EXPECT_TRUE(returned);
}

TEST(KeyValueClient, SixtyFourAtOnce) {
  constexpr int ranks = 64;
  Served served;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      KeyValueClient client(served.server.endpoint(), served.member(rank));
      client.set("address/" + std::to_string(rank), "a" + std::to_string(rank));
      const auto all = client.exchange("case/7/all", rank, ranks, std::to_string(rank), patient);
      const int neighbour = (rank + 1) % ranks;
      const bool got = client.get("address/" + std::to_string(neighbour), patient) == "a" + std::to_string(neighbour);
      right += got && all.size() == ranks && all[5] == "5" && all[63] == "63";
      client.exchange("case/7/end", rank, ranks, "", patient);
      client.leave();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, ranks);
}

}  // namespace
}  // namespace assay::host::wireup
