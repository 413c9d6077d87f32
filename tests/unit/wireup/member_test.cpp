// Members that leave, and members that are lost.
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "helpers.hpp"
#include "raw_client.hpp"
#include "wireup/key_value_store.hpp"

namespace assay::host::wireup {
namespace {

const std::string gone = "rank 1 on host node1 is gone: its connection closed without a goodbye";

// Blocks until the group has lost a member.
void await_loss(Watch& watch) {
  for (;;) {
    pollfd waited{watch.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&waited, 1, 60'000), 1);
    for (const Change& change : watch.take())
      if (change.kind == Change::Kind::lost) return;
  }
}

TEST(Member, LossWakesTheOthersAtOnce) {
  Served served;
  KeyValueClient first(served.server.endpoint(), served.member(0));
  auto second = std::make_unique<KeyValueClient>(served.server.endpoint(), served.member(1));
  KeyValueClient third(served.server.endpoint(), served.member(2));
  auto exchange = error_later([&] { first.exchange("case/7/x", 0, 3, "", 10min); });
  auto get = error_later([&] { third.get("case/7/key", 10min); });
  auto here = error_later([&] { served.store.get("case/7/other", 10min); });
  await_waits(served.store, 3);
  second.reset();
  EXPECT_EQ(exchange.get(), "exchange 'case/7/x': " + gone);
  EXPECT_EQ(get.get(), "'case/7/key' will not come: " + gone);
  EXPECT_EQ(here.get(), "'case/7/other' will not come: " + gone);
  // Who comes later does not wait either, until the group is forgotten.
  EXPECT_EQ(error_of([&] { third.exchange("case/7/y", 2, 3, "", 10min); }), "exchange 'case/7/y': " + gone);
  EXPECT_EQ(error_of([&] { third.get("case/7/z", 10min); }), "'case/7/z' will not come: " + gone);
  served.store.erase_prefix("case/7/");
  EXPECT_EQ(error_of([&] { third.get("case/7/z", brief); }), "nobody set 'case/7/z' within 0.05 s");
}

TEST(Member, LossLeavesOthersAlone) {
  Served served;
  const auto watch = served.store.watch("");
  served.store.set("case/7/there", "yes");
  auto lost = std::make_unique<KeyValueClient>(served.server.endpoint(), served.member(1));
  // The lost rank has come to this exchange; it is not the one that is waited for.
  const auto left_behind = served.store.begin_exchange("case/7/x", 1, 2, "was here", patient, [](WaitOutcome&&) {});
  lost.reset();
  await_loss(*watch);
  served.store.cancel(left_behind);
  EXPECT_EQ(served.store.exchange("case/7/x", 0, 2, "late", patient), (std::vector<std::string>{"late", "was here"}));
  EXPECT_EQ(served.store.get("case/7/there", 10min), "yes");
  EXPECT_EQ(error_of([&] { served.store.get("case/8/a", brief); }), "nobody set 'case/8/a' within 0.05 s");
  EXPECT_EQ(served.store.exchange("case/7/fewer", 0, 1, "", 10min).size(), 1u);
}

TEST(Member, GoodbyeIsNoLoss) {
  Served served;
  const auto watch = served.store.watch("");
  {
    KeyValueClient client(served.server.endpoint(), served.member(1));
    client.leave();
    client.set("case/7/a", "still works");
    client.leave();
  }
  // A loss of another group, later on the same server: had there been one here, it would have come before.
  { KeyValueClient other(served.server.endpoint(), served.member(0, "other/")); }
  for (bool seen = false; !seen;) {
    pollfd waited{watch->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&waited, 1, 60'000), 1);
    for (const Change& change : watch->take()) {
      if (change.kind != Change::Kind::lost) continue;
      EXPECT_EQ(change.name, "other/");
      seen = true;
    }
  }
}

TEST(Member, RankIsGivenOnce) {
  Served served;
  KeyValueClient first(served.server.endpoint(), served.member(1));
  EXPECT_THROW(KeyValueClient(served.server.endpoint(), served.member(1)), MemberRefusedError);
  EXPECT_CONTAINS(error_of([&] { KeyValueClient second(served.server.endpoint(), served.member(1)); }),
                  "rank 1 of 'case/7/' is there already, on host node1");
  first.leave();
  KeyValueClient third(served.server.endpoint(), served.member(1));
}

TEST(Member, LostRankDoesNotComeBackToItsGroup) {
  Served served;
  const auto watch = served.store.watch("");
  { KeyValueClient client(served.server.endpoint(), served.member(1)); }
  await_loss(*watch);
  EXPECT_CONTAINS(error_of([&] { KeyValueClient again(served.server.endpoint(), served.member(1)); }), gone);
  served.store.erase_prefix("case/7/");
  KeyValueClient again(served.server.endpoint(), served.member(1));
}

TEST(Member, SupervisorsWordStays) {
  Served served;
  const auto watch = served.store.watch("");
  auto client = std::make_unique<KeyValueClient>(served.server.endpoint(), served.member(1));
  const std::int32_t ranks[] = {1, 2};
  served.store.lose("case/7/", ranks, "rank 1 crashed: segmentation fault in forward");
  await_loss(*watch);
  client.reset();
  EXPECT_EQ(error_of([&] { served.store.get("case/7/a", 10min); }),
            "'case/7/a' will not come: rank 1 crashed: segmentation fault in forward");
  EXPECT_CONTAINS(error_of([&] { served.store.exchange("case/7/x", 0, 3, "", 10min); }), "segmentation fault");
}

TEST(Member, ForgottenMemberIsNotLost) {
  KeyValueStore store;
  const auto old = store.join({"case/7/", 1, "n1"});
  store.erase_prefix("case/7/");
  store.join({"case/7/", 1, "n1"});
  store.lose(old, "its connection closed late");
  EXPECT_EQ(error_of([&] { store.get("case/7/a", brief); }), "nobody set 'case/7/a' within 0.05 s");
}

TEST(Member, EndOfTheServerLosesNobody) {
  KeyValueStore store;
  const auto watch = store.watch("");
  auto server = std::make_unique<KeyValueServer>(store, KeyValueServer::Options{});
  KeyValueClient::Options options;
  options.member = Member{"case/7/", 1, "n1"};
  KeyValueClient client(server->endpoint(), options);
  auto waiting = error_later([&] { client.get("case/7/a", 10min); });
  await_waits(store, 1);
  server.reset();
  EXPECT_CONTAINS(waiting.get(), "is gone");
  client.leave();
  for (const Change& change : watch->take()) EXPECT_NE(change.kind, Change::Kind::lost) << change.text;
  store.set("case/7/a", "1");
}

// What a killed process does: the kernel closes its connections.
TEST(Member, ConnectionThatIsCutIsALoss) {
  Served served;
  const auto watch = served.store.watch("");
  RawClient raw(served.server.endpoint().port);
  raw.enter(served.server);
  raw.send_message(text_frame(Message::Kind::join, {"case/7/", "node1"}, {1, 0, 0}));
  EXPECT_EQ(raw.read_message().kind, Message::Kind::done);
  raw.send_message(text_frame(Message::Kind::get, {"case/7/never"}, {600'000, 0, 0}));
  raw.close();
  await_loss(*watch);
  EXPECT_EQ(error_of([&] { served.store.get("case/7/a", 10min); }), "'case/7/a' will not come: " + gone);
}

}  // namespace
}  // namespace assay::host::wireup
