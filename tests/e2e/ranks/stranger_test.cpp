// A run goes on while somebody who does not belong to it knocks at the port where its ranks meet, and says so at its
// end.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int connected(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Sends it, and reads until the other end closes.
void say(int fd, const std::string& bytes) {
  char buffer[4096];
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0)
    while (recv(fd, buffer, sizeof buffer, 0) > 0) {
    }
  close(fd);
}

// The name of the protocol, its version, and a client's random bytes; then a proof that is none.
std::string guess() {
  return "assay-wireup" + std::string("\0\0\0\2c", 5) + std::string(32, 'r') + std::string(32, 'p');
}

bool is_on_a_command_line(const std::string& text) {
  std::error_code error;
  for (fs::directory_iterator i("/proc", error), end; !error && i != end; i.increment(error)) {
    std::ifstream file(i->path() / "cmdline", std::ios::binary);
    if (contains(std::string(std::istreambuf_iterator<char>(file), {}), text)) return true;
  }
  return false;
}

class Strangers : public RanksSandbox {
 protected:
  bool is_in_a_file(const std::string& text) const {
    for (const auto& entry : fs::recursive_directory_iterator(folder()))
      if (entry.is_regular_file() && contains(text_of(entry.path()), text)) return true;
    return false;
  }
};

TEST_F(Strangers, AreRefusedAndCountedWhileTheRunGoesOn) {
  write_experiment({.plugin = "faulty_rank",
                    .params = "step_ms = 20",
                    .measure = "warmup = 1\nsteps = 20\ntimeout = \"60s\"",
                    .sweep = "elements = [0, 1000, 2000]"});
  HeldPort held;
  const int port = held.number();
  held.release();
  Launch launch(*this, run_arguments(), 2, port);
  launch.start(0);
  std::vector<int> idle;
  ASSERT_TRUE(wait_until([&] {
    const int fd = connected(port);
    if (fd >= 0) idle.push_back(fd);
    return fd >= 0;
  })) << launch.output(0);
  // Before the true rank comes, and with 200 silent ones at once.
  while (idle.size() < 200) idle.push_back(connected(port));
  launch.start(1);
  ASSERT_TRUE(wait_until([&] { return !case_lines().empty(); })) << launch.output(0) << launch.output(1);
  for (int i = 0; i < 20; ++i) {
    say(connected(port), guess());
    say(connected(port), "GET /" + std::string(1 << 20, 'x'));
  }
  EXPECT_FALSE(is_on_a_command_line(Launch::token));
  EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
  for (const int fd : idle) close(fd);
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << launch.output(0);
  for (const json& record : records) {
    EXPECT_EQ(record["status"], "ok") << record.dump(2);
    EXPECT_EQ(record["ranks"], 2) << record.dump(2);
  }
  const std::string said = launch.output(0);
  EXPECT_PRED2(contains, said, "note: At port " + std::to_string(port) + ", where the ranks meet, ");
  EXPECT_PRED2(contains, said, "from 127.0.0.1 (20 with a wrong token, 20 of another protocol, ");
  EXPECT_EQ(said.find("were refused"), said.rfind("were refused")) << "it is said more than once";
  EXPECT_FALSE(is_in_a_file(Launch::token));
}

// Listens at the port before rank 0 does, speaks as it would, and knows no token.
TEST_F(Strangers, WhoPlaysRank0GivesNoOrdersAndIsOutwaited) {
  write_experiment({.plugin = "faulty_rank"});
  std::optional<HeldPort> held(std::in_place);
  const int port = held->number();
  Launch launch(*this, run_arguments(), 2, port);
  launch.start(1);
  const int victim = held->accept_one();
  ASSERT_GE(victim, 0) << launch.output(1);
  char bytes[49];
  EXPECT_EQ(recv(victim, bytes, 49, MSG_WAITALL), 49);
  const std::string hello = "assay-wireup" + std::string("\0\0\0\2s", 5) + std::string(32, 'r');
  EXPECT_EQ(send(victim, hello.data(), hello.size(), MSG_NOSIGNAL), 49);
  EXPECT_EQ(recv(victim, bytes, 32, MSG_WAITALL), 32) << "its proof";
  EXPECT_EQ(send(victim, std::string(33, '\0').data(), 33, MSG_NOSIGNAL), 33) << "welcome, and a proof that is none";
  EXPECT_EQ(recv(victim, bytes, sizeof bytes, MSG_WAITALL), 0) << "it asked for orders";
  close(victim);
  held.reset();
  launch.start(0);
  EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
  EXPECT_EQ(cases().size(), 1u);
}

}  // namespace
}  // namespace assay::test
