#include "wireup/rendezvous.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "common/files.hpp"
#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

LaunchedRank rank_of(std::int32_t rank, std::string job = "slurm-12.0.0") {
  LaunchedRank launched;
  launched.rank = rank;
  launched.size = 2;
  launched.launcher = "Slurm";
  launched.job_id = std::move(job);
  return launched;
}

LaunchedRank with_address(LaunchedRank launched, const std::string& host, std::uint16_t port) {
  launched.rendezvous = ExplicitRendezvous{host, port, "3e9a50c7d2b84f16a0735d8ec94b61f2"};
  return launched;
}

// As this user alone.
void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms(0600));
}

// By ASSAY_RENDEZVOUS without a token.
LaunchedRank without_token(LaunchedRank launched) {
  launched.rendezvous->token.clear();
  return launched;
}

TEST(RendezvousFile, NamesAreSafeAndDiffer) {
  EXPECT_EQ(rendezvous_file("/r", "slurm-12.0.1"), "/r/.rendezvous-slurm-12.0.1");
  std::set<std::filesystem::path> names;
  const std::string large(500, 'x');
  const std::vector<std::string> ids = {"a/b", "a_b", "a b", "../a", "a", large, large + "y", "node1:4711"};
  for (const std::string& id : ids) {
    const auto file = rendezvous_file("/r", id);
    EXPECT_EQ(file.parent_path(), "/r") << id;
    EXPECT_LT(file.filename().string().size(), 200u);
    names.insert(file);
  }
  EXPECT_EQ(names.size(), ids.size());
}

TEST(PublishedEndpoint, IsPrivateAndGoesAway) {
  TemporaryFolder folder;
  const auto file = folder.path() / "endpoint";
  {
    PublishedEndpoint published(file, {{"10.0.0.1"}, 1, "secret"});
    struct stat status {};
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(folder.files(), 1u);
  }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(PublishedEndpoint, ReplacesAStaleFileAndLeavesANewerOneAlone) {
  TemporaryFolder folder;
  const auto file = folder.path() / "endpoint";
  write(file, "left by an earlier launch");
  auto first = std::make_unique<PublishedEndpoint>(file, Endpoint{{"10.0.0.1"}, 1, "a"});
  PublishedEndpoint second(file, {{"10.0.0.1"}, 2, "b"});
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(PublishedEndpoint, SaysWhereItCannotWrite) {
  const std::string text = error_of([] { PublishedEndpoint("/proc/no/such", {{"10.0.0.1"}, 1, "a"}); });
  EXPECT_CONTAINS(text, "/proc/no/such");
  EXPECT_CONTAINS(text, "ASSAY_RENDEZVOUS");
}

TEST(Rendezvous, MeetsThroughAFile) {
  TemporaryFolder folder;
  const auto results = folder.path() / "made" / "here";
  KeyValueStore store;
  auto other = std::async(std::launch::async, [&] {
    const auto client = meet_rank0(rank_of(1), results, {}, patient);
    client->set("from", "rank 1");
    return client->endpoint();
  });
  let_others_wait();
  const RendezvousPoint point(store, rank_of(0), results);
  EXPECT_EQ(store.get("from", patient), "rank 1");
  EXPECT_EQ(other.get().token, point.endpoint().token);
}

std::vector<std::filesystem::path> flushed_folders;

// The run's folder is made below it later: it must be there after a crash of the machine.
TEST(Rendezvous, TheFolderThatItMakesHasItsNameOnTheDisk) {
  TemporaryFolder folder;
  const auto here = std::filesystem::canonical(folder.path());
  flushed_folders.clear();
  set_flush_call([](int fd) {
    flushed_folders.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
    return 0;
  });
  KeyValueStore store;
  { const RendezvousPoint point(store, rank_of(0), here / "made/here"); }
  set_flush_call(nullptr);
  EXPECT_EQ(flushed_folders, (std::vector<std::filesystem::path>{here / "made", here}));
}

TEST(Rendezvous, LeavesNoFile) {
  TemporaryFolder folder;
  KeyValueStore store;
  { const RendezvousPoint point(store, rank_of(0), folder.path()); }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(Rendezvous, ASecondRankZeroIsNoticed) {
  TemporaryFolder folder;
  KeyValueStore store, other;
  const RendezvousPoint point(store, rank_of(0), folder.path());
  EXPECT_EQ(point.why_unreachable(), "");
  {
    const RendezvousPoint rival(other, rank_of(0), folder.path());
    EXPECT_THAT(point.why_unreachable(), StartsWith("Another process of this launch calls itself rank 0, too"));
    EXPECT_EQ(rival.why_unreachable(), "");
  }
  // It may give up first, and is gone then with its file.
  EXPECT_THAT(point.why_unreachable(),
              HasSubstr("removed meanwhile; perhaps another process of this launch calls itself"));
}

TEST(Rendezvous, StaleFilesAreWaitedOut) {
  TemporaryFolder folder;
  KeyValueStore store, strangers;
  const auto file = rendezvous_file(folder.path(), rank_of(0).job_id);
  const KeyValueServer stranger(strangers, {});
  const std::uint16_t closed_port = listen_on(Reach::this_machine, 0).port;
  const std::string stale[] = {"", R"({"addresses": ["127.0.0.1"], "po)",
                               endpoint_text({{"127.0.0.1"}, closed_port, "old"}),
                               endpoint_text({{"127.0.0.1"}, stranger.endpoint().port, "wrong token"})};
  for (const std::string& text : stale) {
    write(file, text);
    auto other = std::async(std::launch::async,
                            [&] { return meet_rank0(rank_of(1), folder.path(), {}, patient)->endpoint().token; });
    let_others_wait();
    const RendezvousPoint point(store, rank_of(0), folder.path());
    EXPECT_EQ(other.get(), point.endpoint().token);
  }
}

TEST(Rendezvous, AFlagEndsTheSearchAtOnce) {
  TemporaryFolder folder;
  // Nobody has published anything; and somebody listens who never answers.
  const Listener silent = listen_on(Reach::this_machine, 0);
  for (const LaunchedRank& rank : {rank_of(1), with_address(rank_of(1), "127.0.0.1", silent.port)})
    for (const bool is_raised_before : {true, false}) {
      KeyValueClient::Options options;
      options.stop = std::make_shared<StopFlag>();
      if (is_raised_before) options.stop->raise();
      auto searched = std::async(std::launch::async, [&] {
        return error_of([&] { meet_rank0(rank, folder.path(), options, std::chrono::hours(10)); });
      });
      options.stop->raise();
      EXPECT_CONTAINS(searched.get(), "the search for rank 0 was stopped");
    }
}

TEST(Rendezvous, SaysWhatItLookedForAndWhere) {
  TemporaryFolder folder;
  const std::string missing = error_of([&] { meet_rank0(rank_of(1), folder.path(), {}, brief); });
  EXPECT_CONTAINS(missing, "rank 1 of 2 (started by Slurm) looked for rank 0 through " + folder.path().string());
  EXPECT_CONTAINS(missing, "there is no such file");
  EXPECT_CONTAINS(missing, "set ASSAY_RENDEZVOUS=HOST:PORT");
  const std::uint16_t port = listen_on(Reach::this_machine, 0).port;
  write(rendezvous_file(folder.path(), rank_of(0).job_id), endpoint_text({{"127.0.0.1"}, port, "old"}));
  EXPECT_CONTAINS(error_of([&] { meet_rank0(rank_of(1), folder.path(), {}, brief); }), "Connection refused");
  const std::string addressed =
      error_of([&] { meet_rank0(with_address(rank_of(1), "127.0.0.1", port), folder.path(), {}, brief); });
  EXPECT_CONTAINS(addressed, "at ASSAY_RENDEZVOUS 127.0.0.1:" + std::to_string(port));
  EXPECT_CONTAINS(addressed, "is the port open?");
  auto nowhere = with_address(rank_of(1), "no such host", port);
  nowhere.rendezvous->token.clear();
  EXPECT_CONTAINS(error_of([&] { meet_rank0(nowhere, folder.path(), {}, brief); }), "cannot resolve 'no such host'");
}

TEST(Rendezvous, MeetsAtAnAddress) {
  TemporaryFolder folder;
  KeyValueStore store;
  const std::uint16_t port = listen_on(Reach::this_machine, 0).port;
  auto other = std::async(std::launch::async, [&] {
    return meet_rank0(with_address(rank_of(1), "localhost", port), folder.path(), {}, patient)->add("n", 1);
  });
  let_others_wait();
  const RendezvousPoint point(store, with_address(rank_of(0), "localhost", port), folder.path());
  EXPECT_EQ(other.get(), 1);
  EXPECT_EQ(folder.files(), 0u);
  EXPECT_EQ(point.endpoint().addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_CONTAINS(error_of([&] { RendezvousPoint second(store, with_address(rank_of(0), "localhost", port), ""); }),
                  "port " + std::to_string(port) + " is taken");
}

TEST(Rendezvous, MeetsAtTheLoopbackOfIpv6Alone) {
  const std::vector<std::string> own = addresses_of_this_machine();
  if (std::find(own.begin(), own.end(), "::1") == own.end()) GTEST_SKIP() << "this machine has no ::1";
  TemporaryFolder folder;
  KeyValueStore store;
  const std::uint16_t port = listen_on(Reach::this_machine_v6, 0).port;
  auto other = std::async(std::launch::async, [&] {
    return meet_rank0(with_address(rank_of(1), "::1", port), folder.path(), {}, patient)->add("n", 1);
  });
  const RendezvousPoint point(store, with_address(rank_of(0), "::1", port), folder.path());
  EXPECT_EQ(other.get(), 1);
  EXPECT_EQ(point.endpoint().addresses, std::vector<std::string>{"::1"}) << "no other machine reaches it";
}

TEST(Rendezvous, MeetsAtAnAddressWithTheTokenOfAFile) {
  TemporaryFolder folder;
  KeyValueStore store;
  const std::uint16_t port = listen_on(Reach::this_machine, 0).port;
  const auto at = [port](std::int32_t rank) { return without_token(with_address(rank_of(rank), "127.0.0.1", port)); };
  // Left by an earlier launch on the same port.
  write(rendezvous_file(folder.path(), rank_of(0).job_id), endpoint_text({{"127.0.0.1"}, port, "old"}));
  auto other =
      std::async(std::launch::async, [&] { return meet_rank0(at(1), folder.path(), {}, patient)->add("n", 1); });
  let_others_wait();
  {
    const RendezvousPoint point(store, at(0), folder.path());
    EXPECT_EQ(other.get(), 1);
    EXPECT_EQ(point.endpoint().port, port);
    EXPECT_EQ(point.endpoint().token.size(), 32u);
  }
  EXPECT_EQ(folder.files(), 0u);
  const std::string text = error_of([&] { meet_rank0(at(1), folder.path(), {}, brief); });
  EXPECT_CONTAINS(text, "with the token in " + folder.path().string());
  EXPECT_CONTAINS(text, "set ASSAY_RENDEZVOUS_TOKEN_FILE to a file with the same token on each of them");
}

TEST(Rendezvous, AFileThatOthersCanReadIsNotBelieved) {
  TemporaryFolder folder;
  KeyValueStore store;
  const KeyValueServer server(store, {});
  const auto file = rendezvous_file(folder.path(), rank_of(0).job_id);
  write(file, endpoint_text(server.endpoint()));
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_CONTAINS(error_of([&] { meet_rank0(rank_of(1), folder.path(), {}, brief); }), "has the permissions 0644");
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(meet_rank0(rank_of(1), folder.path(), {}, patient)->add("n", 1), 1);
}

TEST(Rendezvous, MemberThatMayNotJoinDoesNotTryAgain) {
  TemporaryFolder folder;
  KeyValueStore store;
  const RendezvousPoint point(store, rank_of(0), folder.path());
  KeyValueClient::Options options;
  options.member = Member{"launch/", 1, "n1"};
  const auto first = meet_rank0(rank_of(1), folder.path(), options, patient);
  EXPECT_THROW(meet_rank0(rank_of(1), folder.path(), options, 10min), MemberRefusedError);
}

}  // namespace
}  // namespace assay::host::wireup
