#include "hosts/host_check.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"

namespace assay::host::hosts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A network file system may show a new file late.
constexpr std::chrono::seconds patience_with_shared_file{5};

std::string text_of_shared_file(const fs::path& file) {
  for (const auto deadline = std::chrono::steady_clock::now() + patience_with_shared_file;;) {
    std::ifstream in(file);
    if (std::string text; std::getline(in, text)) return text;
    if (std::chrono::steady_clock::now() > deadline) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string remedy_by_copying(const fs::path& file, const SshHost& host) {
  return fmt::format("copy it (rsync -a {0} {1}:{0}), or share the folder", file.string(), host.name);
}

}  // namespace

std::string machine_id() {
  if (const char* given = std::getenv("ASSAY_HOSTS_MACHINE")) return given;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  return boot.empty() ? "" : boot + " " + fs::read_symlink("/proc/self/ns/uts", ignored).string();
}

CheckedFile checked_file(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return {absolute, sha256_of_file(absolute)};
}

std::vector<CheckedFile> libraries_of_program(const fs::path& program) {
  std::vector<CheckedFile> files;
  for (const char* folder : {"devices", "comm"}) {
    std::error_code error;
    for (fs::directory_iterator it(program.parent_path().parent_path() / "lib" / "assay" / folder, error), end;
         !error && it != end; it.increment(error))
      if (it->path().extension() == ".so") files.push_back(checked_file(it->path()));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

HostCheck check_of(const std::vector<fs::path>& files, const fs::path& folder, const fs::path& shared) {
  HostCheck check;
  for (const fs::path& file : files) check.files.push_back(checked_file(file));
  for (CheckedFile& file : libraries_of_program(fs::read_symlink("/proc/self/exe")))
    check.files.push_back(std::move(file));
  check.folder = folder, check.shared = fs::absolute(shared).lexically_normal();
  check.shared_name = ".assay-hosts-" + random_name(), check.shared_text = random_name();
  return check;
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

Json question(const HostCheck& check, bool writes_shared_file) {
  Json files = Json::array();
  for (const CheckedFile& file : check.files) files.push_back(file.path.string());
  Json present = Json::array();
  for (const fs::path& each : check.present) present.push_back(each.string());
  return {{"do", "check"},
          {"files", std::move(files)},
          {"present", std::move(present)},
          {"folder", check.folder.string()},
          {"shared", check.shared.string()},
          {"shared_name", check.shared_name},
          {"shared_text", check.shared_text},
          {"write", writes_shared_file}};
}

Json answer(const Json& question) {
  Json files = Json::array();
  for (const std::string path : question.at("files")) {
    try {
      files.push_back({{"hash", sha256_of_file(path)}});
    } catch (const std::system_error& e) {
      files.push_back({{"problem", e.code().message()}});
    }
  }
  Json found{{"files", std::move(files)}, {"folder", ""}, {"shared", ""}, {"seen", ""}, {"machine", machine_id()}};
  Json present = Json::array();
  for (const std::string path : question.at("present")) {
    struct stat status {};
    present.push_back(::stat(path.c_str(), &status) == 0 ? "" : std::strerror(errno));
  }
  found["present"] = std::move(present);
  const std::string folder = question.at("folder");
  // Where a rank that is started there will work.
  if (struct stat status{}; ::stat(folder.c_str(), &status) != 0)
    found["folder"] = std::strerror(errno);
  else if (!S_ISDIR(status.st_mode))
    found["folder"] = std::strerror(ENOTDIR);
  else if (::access(folder.c_str(), X_OK) != 0)
    found["folder"] = std::strerror(errno);
  const fs::path shared = question.at("shared").get<std::string>();
  const fs::path file = shared / question.at("shared_name").get<std::string>();
  if (question.at("write").get<bool>()) {
    try {
      create_folders(shared, "create the results folder");
      write_file_atomically(file, question.at("shared_text").get<std::string>() + "\n", Durable::yes);
    } catch (const StorageError& e) {
      found["shared"] = e.what();
    }
  }
  found["seen"] = text_of_shared_file(file);
  return {{"checked", std::move(found)}};
}

void remove_shared_file(const fs::path& shared, const std::string& name) {
  std::error_code ignored;
  if (!name.empty()) fs::remove(shared / name, ignored);
}

std::string other_file_text(const fs::path& file, const std::string& hash_there, const std::string& hash_here,
                            const SshHost& host) {
  return fmt::format("{} is another file there: SHA-256 {} there, {} here; {}", file.string(), short_hash(hash_there),
                     short_hash(hash_here), remedy_by_copying(file, host));
}

std::vector<std::string> problems_in(const Json& answer, const HostCheck& check, const SshHost& host,
                                     const SshHost& first) {
  std::vector<std::string> problems;
  const Json& found = answer.at("checked");
  const auto add = [&](const std::string& text) { problems.push_back(host.name + ": " + text); };
  for (std::size_t i = 0; i < check.files.size(); ++i) {
    const CheckedFile& file = check.files[i];
    const Json& there = found.at("files").at(i);
    if (there.contains("problem"))
      add(fmt::format("{}: {}; {}", file.path.string(), there.at("problem").get<std::string>(),
                      remedy_by_copying(file.path, host)));
    else if (const std::string hash = there.at("hash"); hash != file.hash)
      add(other_file_text(file.path, hash, file.hash, host));
  }
  for (std::size_t i = 0; i < check.present.size(); ++i)
    if (const std::string problem = found.at("present").at(i); !problem.empty())
      add(fmt::format("{}: {}; {}", check.present[i].string(), problem, remedy_by_copying(check.present[i], host)));
  if (const std::string problem = found.at("folder"); !problem.empty())
    add(fmt::format("the working folder {}: {}; make it there, or share it", check.folder.string(), problem));
  if (const std::string problem = found.at("shared"); !problem.empty())
    add(problem);
  else if (found.at("seen") != check.shared_text)
    add(
        fmt::format("the results folder {} is not the one that {} sees; choose one that all hosts share, with --output "
                    "DIR or [output] dir",
                    check.shared.string(), first.name));
  return problems;
}

std::string machine_in(const Json& answer) { return answer.at("checked").value("machine", ""); }

std::string clock_problem(double asked_s, double there_s, double answered_s, const SshHost& host) {
  const double offset_s = there_s - (asked_s + answered_s) / 2, uncertainty_s = (answered_s - asked_s) / 2;
  if (std::abs(offset_s) - uncertainty_s <= most_clock_offset_s) return "";
  return fmt::format(
      "{}: its clock is {:.0f} s {} this machine's, so times in records would not fit; let both follow NTP "
      "(systemd-timesyncd or chrony; `timedatectl` shows it)",
      host.name, std::abs(offset_s), offset_s > 0 ? "ahead of" : "behind");
}

}  // namespace assay::host::hosts
