// What must be the same on each host before the first case: the files of the experiment, the folder of results, and the
// clock. Asked by one side and answered by the other (rank_keeper.hpp).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/host_list.hpp"

namespace assay::host::hosts {

struct CheckedFile {
  std::filesystem::path path;  // absolute
  std::string hash;            // SHA-256 here
};
CheckedFile checked_file(const std::filesystem::path& path);  // throws std::system_error
// The libraries of devices and communication beside the program, which its workers open.
std::vector<CheckedFile> libraries_of_program(const std::filesystem::path& program);

struct HostCheck {
  std::vector<CheckedFile> files;
  std::vector<std::filesystem::path> present = {};  // whose content is not compared: files or folders
  std::filesystem::path folder;                     // where the ranks are to work
  std::filesystem::path shared;                     // the folder of results, which all hosts must see
  std::string shared_name, shared_text;             // of a file in it, which the first host writes and the others read
  std::string list = {};  // "[ssh] hosts" of a site: a machine's second name goes; "": slots add up
};

// Of `files`, which are to be the same everywhere, and of this program with its libraries.
HostCheck check_of(const std::vector<std::filesystem::path>& files, const std::filesystem::path& folder,
                   const std::filesystem::path& shared);
std::string random_name();

nlohmann::json question(const HostCheck& check, bool writes_shared_file);
// On the host. Removes nothing: remove_shared_file() does.
nlohmann::json answer(const nlohmann::json& question);
void remove_shared_file(const std::filesystem::path& shared, const std::string& name);

// What to say of a file that another one stands for on the host, by their hashes, with the remedy.
std::string other_file_text(const std::filesystem::path& file, const std::string& hash_there,
                            const std::string& hash_here, const SshHost& host);
// A line for each thing that is wrong, with its remedy; the host's name before it. `first`: which has written the file.
std::vector<std::string> problems_in(const nlohmann::json& answer, const HostCheck& check, const SshHost& host,
                                     const SshHost& first);

// Which machine this is, whatever it is called; "" where it does not know. Containers with names of hosts count as
// machines. ASSAY_HOSTS_MACHINE: for tests that play several on one.
std::string machine_id();
// Which machine has answered; "" where it does not know.
std::string machine_in(const nlohmann::json& answer);

inline constexpr double most_clock_offset_s = 5;
// Nothing when the clock of the host is near enough. `asked_s`, `answered_s`: when this machine did so.
std::string clock_problem(double asked_s, double there_s, double answered_s, const SshHost& host);

}  // namespace assay::host::hosts
