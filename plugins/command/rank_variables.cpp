#include "rank_variables.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace command {
namespace {

// A port that nothing listens on, of both families as far as there are both.
std::uint16_t free_port() {
  const auto failed = [] {
    return assay::Error(ASSAY_INTERNAL, std::string("no free port for MASTER_PORT: ") + std::strerror(errno));
  };
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_v6 = fd >= 0;
  if (!is_v6) fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw failed();
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  v6.sin6_family = AF_INET6, v4.sin_family = AF_INET;
  auto* address = is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = is_v6 ? sizeof v6 : sizeof v4;
  if (bind(fd, address, size) != 0 || getsockname(fd, address, &size) != 0) {
    const auto error = failed();
    close(fd);
    throw error;
  }
  close(fd);
  return ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> rank_variables(const assay::Host& host, std::uint64_t start) {
  const auto* comm = host.extension<assay_comm>(ASSAY_EXT_COMM);
  if (!comm || comm->rank_count == 1) return {};
  const std::string key = "command/master/" + std::to_string(start);
  const auto check = [](assay_status status) {
    if (status != ASSAY_OK) throw assay::Error(status, "");  // the host has the text
  };
  std::string master;
  if (comm->rank == 0) {
    master = std::string(comm->address) + ' ' + std::to_string(free_port());
    check(comm->set(comm, {key.data(), key.size()}, master.data(), master.size()));
  } else {
    std::array<char, 256> text{};
    std::size_t bytes = 0;
    check(comm->get(comm, {key.data(), key.size()}, comm->timeout_ms, text.data(), text.size(), &bytes));
    master.assign(text.data(), std::min(bytes, text.size()));
  }
  const std::size_t blank = master.find(' ');
  return {{"RANK", std::to_string(comm->rank)},
          {"WORLD_SIZE", std::to_string(comm->rank_count)},
          {"LOCAL_RANK", std::to_string(comm->local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(comm->local_rank_count)},
          {"MASTER_ADDR", master.substr(0, blank)},
          {"MASTER_PORT", master.substr(blank + 1)}};
}

}  // namespace command
