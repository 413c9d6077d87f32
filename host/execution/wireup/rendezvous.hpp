// How the processes of a launch find rank 0's key-value service.
//
// Rank 0 takes any free port and writes addresses, port and a random token into a file of a folder that all machines
// see, readable by its user alone. With ASSAY_RENDEZVOUS=HOST:PORT it listens on that port and the others connect to
// it; the file is then for the token alone, and there is none when the user gives a token. torchrun's MASTER_PORT is
// not used: torchrun's own agent listens there.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "wireup/key_value_client.hpp"
#include "wireup/key_value_server.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::wireup {

// ".rendezvous-" and the job id, fit for a file name; different ids give different names.
std::filesystem::path rendezvous_file(const std::filesystem::path& folder, std::string_view job_id);

// A file with an endpoint; gone with this object.
class PublishedEndpoint {
 public:
  // Appears whole, in place of a file that an earlier launch left. Throws WireupError that names the file, also when
  // its file system does not keep it private.
  PublishedEndpoint(std::filesystem::path file, const Endpoint& endpoint);
  PublishedEndpoint(const PublishedEndpoint&) = delete;
  PublishedEndpoint& operator=(const PublishedEndpoint&) = delete;
  // Leaves the file alone when it is not this object's any more.
  ~PublishedEndpoint();

  // Why others cannot find this endpoint by its file: another object has replaced the file, or somebody has removed it.
  // Empty while the file is as it was written.
  std::string why_unreachable() const;

 private:
  const std::filesystem::path file_;
  const std::string text_;
};

// Rank 0's side: serves the store where the others look for it.
class RendezvousPoint {
 public:
  // Creates `folder` when it is needed and missing. The store must outlive this. Throws WireupError.
  RendezvousPoint(KeyValueStore& store, const LaunchedRank& launched, const std::filesystem::path& folder);

  const Endpoint& endpoint() const noexcept { return server_.endpoint(); }
  // Who was refused. Thread-safe.
  const Strangers& strangers() const noexcept { return server_.strangers(); }
  // As PublishedEndpoint has it: mostly another process that takes itself for rank 0, too. Empty without a file.
  std::string why_unreachable() const;

 private:
  KeyValueServer server_;
  std::unique_ptr<PublishedEndpoint> published_;
};

// The other ranks' side. Waits until rank 0's service is there and takes this client; a file that an earlier launch
// left or that is not this user's alone, a port on which nobody listens yet, somebody else who listens there and a
// token that is not (yet) right are looked at again until `timeout`. Then throws WireupError: what was looked for,
// where, and what to do. `options`: connect_timeout is not used; `stop` ends the wait at once, with a WireupError.
std::unique_ptr<KeyValueClient> meet_rank0(const LaunchedRank& launched, const std::filesystem::path& folder,
                                           KeyValueClient::Options options, KeyValue::Timeout timeout);

}  // namespace assay::host::wireup
