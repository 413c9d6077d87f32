#include "wireup/watch.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

bool readable(const Watch& watch) {
  pollfd waited{watch.fd(), POLLIN, 0};
  return poll(&waited, 1, 0) == 1;
}

TEST(Watch, TellsOfKeysUnderItsPrefixOnceEach) {
  KeyValueStore store;
  const auto watch = store.watch("case/1/");
  EXPECT_FALSE(readable(*watch));
  store.set("case/2/a", "0");
  EXPECT_FALSE(readable(*watch));
  store.set("case/1/a", "1");
  store.set("case/1/b", "1");
  store.set("case/1/a", "2");
  EXPECT_TRUE(readable(*watch));
  const auto changes = watch->take();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].name, "case/1/a");
  EXPECT_EQ(changes[1].name, "case/1/b");
  EXPECT_EQ(store.find("case/1/a"), "2");
  EXPECT_FALSE(readable(*watch));
  EXPECT_TRUE(watch->take().empty());
  store.set("case/1/a", "3");
  EXPECT_EQ(watch->take().size(), 1u);
}

TEST(Watch, TellsOfMembers) {
  KeyValueStore store;
  const auto watch = store.watch("case/1/");
  const auto first = store.join({"case/1/", 0, "n1"});
  const auto second = store.join({"case/1/", 1, "n2"});
  store.join({"case/2/", 0, "n1"});
  store.leave(first);
  store.lose(second, "it crashed");
  const auto changes = watch->take();
  ASSERT_EQ(changes.size(), 4u);
  EXPECT_EQ(changes[0].kind, Change::Kind::joined);
  EXPECT_EQ(changes[0].text, "n1");
  EXPECT_EQ(changes[2].kind, Change::Kind::left);
  EXPECT_EQ(changes[2].rank, 0);
  EXPECT_EQ(changes[3].kind, Change::Kind::lost);
  EXPECT_EQ(changes[3].name, "case/1/");
  EXPECT_EQ(changes[3].rank, 1);
  EXPECT_EQ(changes[3].text, "rank 1 on host n2 is gone: it crashed");
}

TEST(Watch, EndsWithItsHolder) {
  KeyValueStore store;
  auto watch = store.watch("");
  const std::weak_ptr<Watch> weak = watch;
  watch.reset();
  EXPECT_TRUE(weak.expired());
  store.set("a", "1");
  EXPECT_EQ(store.find("a"), "1");
}

TEST(Watch, WakesAPollThroughTheServer) {
  Served served;
  const auto watch = served.store.watch("heartbeat/");
  KeyValueClient client(served.server.endpoint(), {});
  client.set("heartbeat/3", "step 12");
  pollfd waited{watch->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 60'000), 1);
  EXPECT_EQ(watch->take().at(0).name, "heartbeat/3");
}

}  // namespace
}  // namespace assay::host::wireup
