// OpenSSH's client as it is called here, and what its complaints mean. Ports, users, keys and jump hosts are those of
// its own configuration; it never asks for anything (BatchMode).
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "common/host_list.hpp"

namespace assay::host::hosts {

// A private folder for the sockets by which the calls of one host share a connection; gone with this object.
class ControlFolder {
 public:
  ControlFolder();  // throws HostError
  ControlFolder(const ControlFolder&) = delete;
  ControlFolder& operator=(const ControlFolder&) = delete;
  ~ControlFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The words of a call. `command` is for the shell of the user there. Where the user's configuration shares connections
// itself (ControlPath), it does so here, too.
std::vector<std::string> ssh_call(const SshHost& host, const ControlFolder& control, const std::string& command);

// The keeper of ranks (rank_keeper.hpp) of this program's own path, as a command of any login shell. Throws HostError
// for a path that shells would read as something else.
std::string keeper_command(const std::filesystem::path& program);
// Prints the SHA-256 of the file there, in the format of sha256sum.
std::string hash_command(const std::filesystem::path& file);

// What an ended call says to the user: the reason and the remedy, without the host's name. `code`: the exit
// status, or minus the signal that ended ssh itself here. `program`: which the call was to start.
std::string reason_of_end(const SshHost& host, int code, const std::string& said, const std::filesystem::path& program);

}  // namespace assay::host::hosts
