#include "common/process_tree.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace assay::host {
namespace {

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Reads what follows the name, which may hold blanks and brackets: "state ppid pgrp ..."; "" for no such process.
std::string stat_after_name(pid_t pid) {
  std::ifstream in(folder_of(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? "" : text.substr(name_end + 1);
}

pid_t parent_of(pid_t pid) {
  pid_t parent = 0;
  return std::sscanf(stat_after_name(pid).c_str(), " %*c %d", &parent) == 1 ? parent : 0;
}

std::vector<pid_t> children_by_parent(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator i("/proc", error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename();
    pid_t found = 0;
    const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), found);
    if (failure == std::errc() && stop == name.data() + name.size() && parent_of(found) == pid)
      children.push_back(found);
  }
  return children;
}

bool has_lists_of_children() {
  static const bool has = std::ifstream("/proc/thread-self/children").good();
  return has;
}

void add_tree(pid_t root, std::vector<pid_t>& tree) {
  for (const pid_t child : children_of(root)) {
    tree.push_back(child);
    add_tree(child, tree);
  }
}

}  // namespace

std::vector<pid_t> children_of(pid_t pid) {
  if (!has_lists_of_children()) return children_by_parent(pid);
  std::vector<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder_of(pid) + "/task", error), end; !error && i != end;
       i.increment(error)) {
    std::ifstream in(i->path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

bool has_variable(pid_t pid, const std::string& entry) {
  std::ifstream in(folder_of(pid) + "/environ");
  for (std::string found; std::getline(in, found, '\0');)
    if (found == entry) return true;
  return false;
}

std::vector<pid_t> descendants_of(pid_t root, pid_t adopter, const std::string& entry) {
  std::vector<pid_t> found;
  add_tree(root, found);
  if (entry.empty()) return found;
  for (const pid_t child : children_of(adopter)) {
    if (child == root || !has_variable(child, entry)) continue;
    found.push_back(child);
    add_tree(child, found);
  }
  return found;
}

std::uint64_t resident_bytes_of(pid_t pid) {
  std::ifstream in(folder_of(pid) + "/statm");
  std::uint64_t size_pages = 0, resident_pages = 0;
  if (!(in >> size_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t own_peak_resident_bytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu", &kib) == 1) return std::uint64_t{kib} * 1024;
  }
  return 0;
}

std::uint64_t proportional_bytes_of(pid_t pid) {
  std::ifstream in(folder_of(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "Pss: %llu", &kib) == 1) return std::uint64_t{kib} * 1024;
  }
  return 0;
}

double cpu_seconds_of(pid_t pid) {
  std::istringstream in(stat_after_name(pid));
  std::string skipped;
  for (int i = 0; i < 11; ++i) in >> skipped;  // state to cmajflt
  double sum = 0;
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    double ticks = 0;
    if (!(in >> ticks)) return 0;
    sum += ticks;
  }
  return sum / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace assay::host
