// Hosts that ssh reaches, as experiments, site files and files of hosts name them: "n1", "user@n2:4" with slots.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/usage_error.hpp"

namespace assay::host {

struct SshHost {
  std::string name;        // as ssh takes it: its own configuration knows ports and users
  std::int64_t slots = 1;  // ranks on it
};

inline constexpr std::int64_t most_slots = 4096;
// What a host is written as, for messages.
inline constexpr const char* host_form =
    "a name that ssh takes, one machine and no pattern of several, with \":\" and the ranks on it where they are not "
    "one "
    "(\"n1\", \"user@n2:4\"; ports stand in ~/.ssh/config)";

// Nothing where the text is no such host: one that begins with '-' would be an option of ssh.
std::optional<SshHost> parse_host(std::string_view text);
std::string to_text(const SshHost& host);

// One host a line, as above or as Open MPI writes it ("n1 slots=4"); '#' begins a comment. Throws UsageError that names
// the file and the line, and for a host that stands twice.
std::vector<SshHost> hosts_in_file(const std::filesystem::path& file);
// Throws UsageError that names `where`.
std::vector<SshHost> hosts_in(const std::vector<std::string>& texts, std::string_view where);

// The machines that a setting [cluster] node names: "n1+n2" are two. None of "".
std::vector<std::string> names_of_nodes(std::string_view node);

std::int64_t slots_of(const std::vector<SshHost>& hosts);

}  // namespace assay::host
