#include "wireup/rendezvous.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "common/fd.hpp"
#include "common/files.hpp"
#include "wireup/private_file.hpp"
#include "wireup/seconds_text.hpp"

namespace assay::host::wireup {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t readable_name_max = 80;
constexpr std::chrono::milliseconds join_pause_min{10}, join_pause_max{250};

// FNV-1a, 64 bits: names need to differ, not to be secret.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

[[noreturn]] void fail(const char* what, const fs::path& file, int error) {
  throw WireupError(
      fmt::format("cannot {} {}: {}; the ranks find each other by it. Choose a results folder that can be "
                  "written to, or set ASSAY_RENDEZVOUS=HOST:PORT",
                  what, file.string(), std::generic_category().message(error)));
}

PrivateText text_of(const fs::path& file) {
  // On a network file system, opening the folder asks the server again whether the file is there; a lookup alone may
  // repeat for half a minute that it is not.
  if (DIR* folder = opendir(file.parent_path().c_str())) closedir(folder);
  return read_private_file(file);
}

KeyValueServer::Options server_options(const LaunchedRank& launched) {
  KeyValueServer::Options options;
  options.reach = Reach::network;
  if (launched.rendezvous) {
    const auto& [host, port, token] = *launched.rendezvous;
    if (host == "localhost" || host.starts_with("127.")) options.reach = Reach::this_machine;
    if (host == "::1") options.reach = Reach::this_machine_v6;
    options.port = port;
    options.token = token;
  }
  return options;
}

bool has_given_token(const LaunchedRank& launched) {
  return launched.rendezvous && !launched.rendezvous->token.empty();
}

std::string looked_where(const LaunchedRank& launched, const fs::path& file) {
  if (!launched.rendezvous) return fmt::format("through {}", file.string());
  const std::string place = host_and_port(launched.rendezvous->host, launched.rendezvous->port);
  return fmt::format("at ASSAY_RENDEZVOUS {}, with {}", place,
                     has_given_token(launched) ? "the token that was given" : "the token in " + file.string());
}

const char* remedy_for(const LaunchedRank& launched) {
  if (!launched.rendezvous)
    return "Does rank 0 run, and do all machines see the same folder? If they do not, set ASSAY_RENDEZVOUS=HOST:PORT "
           "of rank 0's machine, and ASSAY_RENDEZVOUS_TOKEN_FILE";
  if (has_given_token(launched))
    return "Does rank 0 run on that machine, with the same ASSAY_RENDEZVOUS and token, and is the port open?";
  return "Does rank 0 run on that machine, with the same ASSAY_RENDEZVOUS, is the port open, and do all machines see "
         "the same folder? If they do not, set ASSAY_RENDEZVOUS_TOKEN_FILE to a file with the same token on each of "
         "them, made with 'umask 077; openssl rand -hex 16 > FILE'";
}

// The endpoint to try now, or why there is none.
struct Found {
  std::optional<Endpoint> endpoint;
  std::string problem;
};

Found look_for(const LaunchedRank& launched, const fs::path& file) {
  if (has_given_token(launched))
    return {Endpoint{{launched.rendezvous->host}, launched.rendezvous->port, launched.rendezvous->token}, {}};
  const PrivateText read = text_of(file);
  if (!read.text) return {std::nullopt, read.problem};
  try {
    Endpoint endpoint = parse_endpoint(*read.text);
    if (launched.rendezvous) {
      endpoint.addresses = {launched.rendezvous->host};
      endpoint.port = launched.rendezvous->port;
    }
    return {std::move(endpoint), {}};
  } catch (const WireupError& error) {
    return {std::nullopt, fmt::format("{}: {}", file.string(), error.what())};
  }
}

}  // namespace

fs::path rendezvous_file(const fs::path& folder, std::string_view job_id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  std::string name(job_id.substr(0, readable_name_max));
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return !fits(c); }, '_');
  // An id with '_' in it may look like one that was changed: it gets the hash as well.
  if (name != job_id || name.find('_') != std::string::npos) name += fmt::format("-{:016x}", hash_of(job_id));
  return folder / (".rendezvous-" + name);
}

PublishedEndpoint::PublishedEndpoint(fs::path file, const Endpoint& endpoint)
    : file_(std::move(file)), text_(endpoint_text(endpoint) + "\n") {
  std::string temporary = file_.string() + "-XXXXXX";
  Fd fd(mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd) fail("create", temporary, errno);
  std::size_t done = 0;
  while (done < text_.size()) {
    const ssize_t n = write(fd.get(), text_.data() + done, text_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (const std::string problem = why_not_private(fd.get(), file_); !problem.empty()) {
    unlink(temporary.c_str());
    throw WireupError(
        fmt::format("the ranks cannot find each other by a private file: {}. Choose a results folder on "
                    "another file system, or set ASSAY_RENDEZVOUS=HOST:PORT and ASSAY_RENDEZVOUS_TOKEN_FILE",
                    problem));
  }
  if (done < text_.size() || fsync(fd.get()) != 0 || rename(temporary.c_str(), file_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail("write", file_, error);
  }
}

PublishedEndpoint::~PublishedEndpoint() {
  std::error_code ignored;
  if (text_of(file_).text == text_) fs::remove(file_, ignored);
}

std::string PublishedEndpoint::why_unreachable() const {
  const PrivateText found = text_of(file_);
  if (found.text == text_) return {};
  if (found.text) return "Another process of this launch calls itself rank 0, too; give each process another rank";
  std::error_code ignored;
  if (fs::exists(file_, ignored) || ignored)
    return fmt::format("The other ranks may not find it, either: {}", found.problem);
  // A second rank 0 removes its file when its own wait ends, which may be just before this one's.
  return fmt::format("{} was removed meanwhile; perhaps another process of this launch calls itself rank 0, too",
                     file_.string());
}

std::string RendezvousPoint::why_unreachable() const {
  return published_ ? published_->why_unreachable() : std::string();
}

RendezvousPoint::RendezvousPoint(KeyValueStore& store, const LaunchedRank& launched, const fs::path& folder)
    : server_(store, server_options(launched)) {
  if (has_given_token(launched)) return;
  if (const int error = try_creating_folders(folder); error != 0) fail("create the folder", folder, error);
  published_ = std::make_unique<PublishedEndpoint>(rendezvous_file(folder, launched.job_id), server_.endpoint());
}

std::unique_ptr<KeyValueClient> meet_rank0(const LaunchedRank& launched, const fs::path& folder,
                                           KeyValueClient::Options options, KeyValue::Timeout timeout) {
  const fs::path file = rendezvous_file(folder, launched.job_id);
  const auto deadline = Clock::now() + timeout;
  options.connect_timeout = {};
  const auto check_stopped = [&options] {
    if (options.stop && options.stop->raised()) throw WireupError("the search for rank 0 was stopped");
  };
  for (auto pause = join_pause_min;; pause = std::min(2 * pause, join_pause_max)) {
    check_stopped();
    Found found = look_for(launched, file);
    if (found.endpoint) {
      try {
        return std::make_unique<KeyValueClient>(*found.endpoint, options);
      } catch (const MemberRefusedError&) {
        throw;  // this is the right service, and it will not change its mind
      } catch (const WireupError& error) {
        check_stopped();
        found.problem = error.what();
      }
    }
    if (Clock::now() + pause >= deadline) {
      // Comes first, whatever else is missing: on each rank alike.
      if (launched.rendezvous)
        if (std::string why = why_unresolved(launched.rendezvous->host); !why.empty()) found.problem = std::move(why);
      throw WireupError(fmt::format("rank {} of {} ({} {}) looked for rank 0 {} for {}: {}. {}", launched.rank,
                                    launched.size, launched.is_by_hand() ? "by" : "started by", launched.launcher,
                                    looked_where(launched, file), seconds_text(timeout), found.problem,
                                    remedy_for(launched)));
    }
    pollfd stopped{options.stop ? options.stop->fd() : -1, POLLIN, 0};
    poll(&stopped, 1, static_cast<int>(pause.count()));
  }
}

}  // namespace assay::host::wireup
