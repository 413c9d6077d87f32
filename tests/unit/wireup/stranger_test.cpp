// Whoever is no rank of this launch and speaks to its service: gets nothing, costs little, keeps nobody out, is
// counted.
#include <gtest/gtest.h>

#include <fstream>

#include "helpers.hpp"
#include "man_in_the_middle.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

void expect_in(const Served& served) {
  KeyValueClient client(served.server.endpoint(), {});
  client.set("alive", "yes");
  EXPECT_EQ(client.get("alive", patient), "yes");
}

// Connections that were closed are counted a moment later than their ends notice.
void expect_counted(const Served& served, std::uint64_t count, const std::string& part) {
  while (served.server.strangers().count() < count) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(served.server.strangers().count(), count);
  EXPECT_CONTAINS(served.server.strangers().text(), part);
}

KeyValueServer::Options hasty() {
  KeyValueServer::Options options;
  options.hello_timeout = brief;
  return options;
}

TEST(Stranger, WithAWrongTokenIsToldSo) {
  const Served served;
  Endpoint other = served.server.endpoint();
  other.token = random_token();
  EXPECT_THROW(KeyValueClient(other, {}), RefusedError);
  EXPECT_CONTAINS(error_of([&] { KeyValueClient client(other, {}); }), "wrong token");
  RawClient raw(served.server.endpoint().port);
  EXPECT_EQ(raw.enter("a guess"), Verdict::Code::wrong_token);
  EXPECT_EQ(raw.read_to_the_end(), "");
  expect_in(served);
  expect_counted(served, 3, "3 connections were refused: 3 from 127.0.0.1 (3 with a wrong token)");
}

TEST(Stranger, OfAnotherVersionHearsOurs) {
  const Served served;
  RawClient raw(served.server.endpoint().port);
  raw.send(view_of(new_hello(Role::client, wire_version + 1)));
  const std::string answer = raw.read_to_the_end();
  ASSERT_EQ(answer.size(), hello_bytes);
  Hello hello{};
  answer.copy(hello.data(), hello.size());
  EXPECT_EQ(version_in(hello, Role::server), wire_version);
  expect_counted(served, 1, "of another version of assay");
}

TEST(Stranger, WithoutATokenGetsNothing) {
  const Served served;
  const std::string old_hello = text_frame(static_cast<Message::Kind>(1), {"assay-wireup", "job assay"}, {1, 0, 0});
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: a.machine.of.somebody.else\r\n\r\n"), std::string(64, '\xff'),
        std::string(1000, '\0'), old_hello, text_frame(Message::Kind::set, {"k", std::string(100, 'v')}),
        std::string(view_of(new_hello(Role::server)))}) {
    RawClient raw(served.server.endpoint().port);
    raw.send_what_it_takes(bytes);
    EXPECT_EQ(raw.read_to_the_end(), "");
  }
  EXPECT_EQ(served.store.find("k"), std::nullopt);
  expect_in(served);
  expect_counted(served, 6, "6 of another protocol");
}

TEST(Stranger, ThatSaysNothingIsDropped) {
  const Served served(hasty());
  RawClient silent(served.server.endpoint().port), slow(served.server.endpoint().port),
      half(served.server.endpoint().port);
  slow.send(view_of(new_hello(Role::client)).substr(0, 10));
  half.send(view_of(new_hello(Role::client)));
  EXPECT_EQ(silent.read_to_the_end(), "");
  EXPECT_EQ(slow.read_to_the_end(), "");
  EXPECT_EQ(half.read_to_the_end().size(), hello_bytes);
  expect_counted(served, 3, "3 silent for too long");
  // One that has proven itself may be silent.
  KeyValueClient client(served.server.endpoint(), {});
  std::this_thread::sleep_for(3 * brief);
  client.set("a", "1");
  EXPECT_EQ(served.store.find("a"), "1");
}

// What a true client sent once is of no use to anyone else, nor to itself.
TEST(Stranger, CannotReplayWhatATrueClientSent) {
  Served served;
  std::string recorded;
  {
    ManInTheMiddle middle(served.server.endpoint().port);
    Endpoint endpoint = served.server.endpoint();
    endpoint.port = middle.port();
    KeyValueClient client(endpoint, {});
    EXPECT_EQ(client.add("counted", 1), 1);
    recorded = middle.recorded(ManInTheMiddle::to_server);
  }
  ASSERT_GT(recorded.size(), hello_bytes + sizeof(Proof));
  EXPECT_EQ(recorded.find(served.server.endpoint().token), std::string::npos);
  RawClient raw(served.server.endpoint().port);
  raw.send_what_it_takes(recorded);
  EXPECT_LE(raw.read_to_the_end().size(), hello_bytes + Verdict::bytes);
  EXPECT_EQ(served.store.add("counted", 0), 1);
  expect_counted(served, 1, "1 with a wrong token");
}

std::size_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  status >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// ASSAY_FLOOD_MIB=1024 sends a GiB.
TEST(Stranger, ThatSendsWithoutEndIsCutOff) {
  const Served served;
  const char* wanted = std::getenv("ASSAY_FLOOD_MIB");
  const std::size_t all = (wanted ? std::strtoull(wanted, nullptr, 10) : 64) << 20;
  const std::string part(1 << 20, '\xee');
  const std::size_t before = resident_bytes();
  for (const bool begins_well : {false, true}) {
    // Again and again from the beginning, until as much was sent as was meant to be.
    std::size_t sent = 0, connections = 0;
    while (sent < all && connections < 2000) {
      RawClient raw(served.server.endpoint().port);
      if (begins_well) raw.send(view_of(new_hello(Role::client)));
      std::size_t taken = 0, last = 0;
      do taken += last = raw.send_what_it_takes(part);
      while (last == part.size() && taken < all);
      EXPECT_LT(taken, std::size_t{32} << 20) << "it was not cut off: more went than the kernel holds";
      EXPECT_LE(raw.read_to_the_end().size(), hello_bytes + Verdict::bytes);
      sent += taken;
      ++connections;
    }
    RecordProperty(begins_well ? "sent_after_a_hello" : "sent", std::to_string(sent));
  }
  // What is taken of it is 49 and 32 bytes; the rest stays in the kernel, and goes with the connection.
  EXPECT_LT(resident_bytes(), before + (std::size_t{48} << 20));
  expect_in(served);
}

TEST(Stranger, InCrowdsKeepsNoRankOut) {
  KeyValueServer::Options options;
  options.hello_timeout = 10min;
  options.unproven_time = brief;
  const Served served(options);
  std::vector<RawClient> idle;
  for (int i = 0; i < 200; ++i) idle.emplace_back(served.server.endpoint().port);
  expect_in(served);
  EXPECT_GE(served.server.strangers().count(), 200 - options.unproven_max);
  EXPECT_CONTAINS(served.server.strangers().text(), "silent while too many others waited");
}

TEST(Stranger, ManyRanksAtOnceAreNoCrowd) {
  KeyValueServer::Options options;
  options.unproven_max = 2;
  options.unproven_time = patient;
  const Served served(options);
  std::vector<std::future<std::int64_t>> ranks;
  for (int rank = 0; rank < 32; ++rank)
    ranks.push_back(std::async(std::launch::async, [endpoint = served.server.endpoint()] {
      KeyValueClient client(endpoint, {});
      return client.add("here", 1);
    }));
  for (auto& rank : ranks) rank.get();
  EXPECT_EQ(served.server.strangers().count(), 0u) << served.server.strangers().text();
}

TEST(Stranger, WhoBreaksIntoAConnectionEndsItAndIsCounted) {
  for (const int what : {0, 1, 2}) {
    Served served;
    const auto watch = served.store.watch("");
    RawClient rank(served.server.endpoint().port);
    rank.enter(served.server);
    rank.send_message(text_frame(Message::Kind::join, {"case/7/", "node1"}, {1, 0, 0}));
    EXPECT_EQ(rank.read_message().kind, Message::Kind::done);
    std::string first = rank.sealed(text_frame(Message::Kind::set, {"a", "1"}));
    const std::string second = rank.sealed(text_frame(Message::Kind::set, {"a", "2"}));
    if (what == 0) first.back() = static_cast<char>(first.back() ^ 1);
    rank.send_what_it_takes(what == 0 ? first : what == 1 ? second : first + first);
    // In the last case the first message is answered before the second is looked at.
    EXPECT_NE(rank.read_to_the_end(), "(nothing)");
    EXPECT_EQ(served.store.find("a"), what == 2 ? std::optional<std::string>("1") : std::nullopt);
    expect_counted(served, 1, "with messages changed or added on the way");
    EXPECT_CONTAINS(error_of([&] { served.store.get("case/7/never", patient); }), "rank 1 on host node1 is gone");
  }
}

TEST(Leader, ItsKeysAreReadAndNotWrittenByOthers) {
  Served served;
  KeyValueClient client(served.server.endpoint(), {});
  served.store.set("leader/order/1/0", "true");
  EXPECT_EQ(client.get("leader/order/1/0", patient), "true");
  const std::string refusal = "is the leader's";
  EXPECT_CONTAINS(error_of([&] { client.set("leader/order/1/0", "false"); }), refusal);
  EXPECT_CONTAINS(error_of([&] { client.set("leader/order/1/1", "false"); }), refusal);
  EXPECT_CONTAINS(error_of([&] { client.add("leader/n", 1); }), refusal);
  EXPECT_CONTAINS(error_of([&] { client.exchange("leader/x", 0, 1, "", brief); }), refusal);
  // The loss of a member would end every wait below its group.
  for (const std::string group : {"", "lead", "leader/", "leader/order/"})
    EXPECT_CONTAINS(error_of([&] { KeyValueClient member(served.server.endpoint(), served.member(0, group)); }),
                    refusal);
  EXPECT_EQ(served.store.find("leader/order/1/0"), "true");
  EXPECT_EQ(served.store.find("leader/order/1/1"), std::nullopt);
  client.set("leaders", "are others");
}

TEST(Strangers, AreToldInOneLineHoweverMany) {
  Strangers strangers;
  EXPECT_EQ(strangers.text(), "");
  strangers.note("10.0.0.1", Refusal::silent);
  EXPECT_EQ(strangers.text(), "1 connection was refused: 1 from 10.0.0.1 (1 silent for too long)");
  for (int i = 0; i < 1000; ++i) strangers.note("10.0.1." + std::to_string(i), Refusal::gone);
  for (int i = 0; i < 9; ++i) strangers.note("10.0.0.2", i < 3 ? Refusal::gone : Refusal::wrong_token);
  EXPECT_EQ(strangers.count(), 1010u);
  EXPECT_CONTAINS(strangers.text(), "1010 connections were refused");
  EXPECT_CONTAINS(strangers.text(), "from other addresses (");
  EXPECT_LT(strangers.text().size(), 600u);
}

}  // namespace
}  // namespace assay::host::wireup
