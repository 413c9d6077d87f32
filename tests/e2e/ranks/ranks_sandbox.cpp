#include "ranks_sandbox.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace assay::test {
namespace {

namespace fs = std::filesystem;

// Shared memory of this project that has a name. Other tests may run beside this one.
bool is_shared_memory_left() {
  std::error_code error;
  for (fs::directory_iterator i("/dev/shm", error), end; !error && i != end; i.increment(error))
    if (contains(i->path().filename().string(), "assay")) return true;
  return false;
}

}  // namespace

void RanksSandbox::TearDown() {
  EXPECT_TRUE(wait_until([] { return !is_shared_memory_left(); })) << "shared memory is left in /dev/shm";
  std::error_code error;
  for (fs::directory_iterator i(folder() / "out", error), end; !error && i != end; i.increment(error))
    EXPECT_FALSE(i->path().filename().string().starts_with('.')) << i->path() << " is left behind";
}

std::map<std::string, std::vector<nlohmann::json>> RanksSandbox::cases_by(const std::string& axis) const {
  std::map<std::string, std::vector<nlohmann::json>> found;
  for (nlohmann::json& record : cases()) found[record["axes"].value(axis, "")].push_back(std::move(record));
  return found;
}

Launch::Launch(const Sandbox& sandbox, std::vector<std::string> arguments, int rank_count, int port)
    : sandbox_(&sandbox), arguments_(std::move(arguments)), rank_count_(rank_count) {
  for (int rank = 0; rank < rank_count; ++rank)
    variables_[rank] = {{"ASSAY_RANK", std::to_string(rank)},
                        {"ASSAY_RANKS", std::to_string(rank_count)},
                        {"ASSAY_RENDEZVOUS", "127.0.0.1:" + std::to_string(port)},
                        {"ASSAY_RENDEZVOUS_TOKEN", token}};
}

void Launch::give_no_token() {
  for (auto& [rank, variables] : variables_) variables.erase("ASSAY_RENDEZVOUS_TOKEN");
}

void Launch::start(int rank) {
  processes_.emplace(rank, sandbox_->start(arguments_, variables_.at(rank), output_name(rank)));
}

void Launch::start_all() {
  for (int rank = 0; rank < rank_count_; ++rank) start(rank);
}

HostExit Launch::wait(int rank) {
  const std::optional<HostExit> exit = processes_.at(rank).wait();
  EXPECT_TRUE(exit.has_value()) << "the process of rank " << rank << " did not end\n" << output(rank);
  return exit.value_or(HostExit{});
}

HeldPort::HeldPort() {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t bytes = sizeof address;
  if (socket_ < 0 || bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(socket_, 1) != 0 || getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    throw std::runtime_error("cannot listen on any port");
  number_ = ntohs(address.sin_port);
}

int HeldPort::accept_one() const {
  pollfd waited{socket_, POLLIN, 0};
  if (poll(&waited, 1, 120'000) != 1) return -1;
  const int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  const timeval limit{60, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

void HeldPort::release() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

nlohmann::json rank_of(const nlohmann::json& record, int rank) {
  for (const nlohmann::json& one : record.value("by_rank", nlohmann::json::array()))
    if (one["rank"] == rank) return one;
  ADD_FAILURE() << "no rank " << rank << " in by_rank of " << record.dump(2);
  return nlohmann::json::object();
}

}  // namespace assay::test
