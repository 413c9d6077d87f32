// Files that hold a token: only what this user alone can have written is believed, and only what nobody else can have
// read is still a secret.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace assay::host::wireup {

struct PrivateText {
  std::optional<std::string> text;
  std::string problem;  // why there is none: names the file, and the remedy where it is not simply missing
};

// Follows no link at the file's own name, and takes nothing but an ordinary file of this user with no permission for
// anyone else, of 64 KiB at most.
PrivateText read_private_file(const std::filesystem::path& file);

// Why an open file is not this user's alone; empty when it is. Also for a file just made: some file systems do not keep
// owners or permissions.
std::string why_not_private(int fd, const std::filesystem::path& file);

}  // namespace assay::host::wireup
