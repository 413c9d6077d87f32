#include "validate/process_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/process_tree.hpp"

namespace assay::host::validate {
namespace {

namespace fs = std::filesystem;

std::string handler_of(int signal) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) != 0) return "";
  if (action.sa_handler == SIG_DFL) return "default";
  if (action.sa_handler == SIG_IGN) return "ignored";
  return fmt::format("{:#x}", reinterpret_cast<std::size_t>(action.sa_handler));
}

std::vector<std::string> missing_from(const std::vector<std::string>& sorted, const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  std::set_difference(wanted.begin(), wanted.end(), sorted.begin(), sorted.end(), std::back_inserter(missing));
  return missing;
}

std::string name_of_variable(const std::string& entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

ProcessState ProcessState::now() {
  ProcessState state;
  std::error_code error;
  for (fs::directory_iterator i("/proc/self/task", error), end; !error && i != end; i.increment(error)) ++state.threads;
  state.children = children_of(getpid()).size();
  std::vector<fs::path> open;
  for (fs::directory_iterator i("/proc/self/fd", error), end; !error && i != end; i.increment(error))
    open.push_back(i->path());
  for (const fs::path& path : open)  // without that of the folder itself, which is closed by now
    if (const fs::path target = fs::read_symlink(path, error); !error)
      state.descriptors.push_back(fmt::format("{}: {}", path.filename().string(), target.string()));
  std::sort(state.descriptors.begin(), state.descriptors.end());
  for (int signal = 1; signal < NSIG; ++signal) state.handlers.push_back(handler_of(signal));
  for (char** entry = environ; entry && *entry; ++entry) state.environment.emplace_back(*entry);
  std::sort(state.environment.begin(), state.environment.end());
  state.folder = fs::current_path(error).string();
  return state;
}

std::string new_descriptors(const ProcessState& before, const ProcessState& after) {
  return fmt::format("{}", fmt::join(missing_from(before.descriptors, after.descriptors), ", "));
}

std::string changed_handlers(const ProcessState& before, const ProcessState& after) {
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < before.handlers.size(); ++i)
    if (before.handlers[i] != after.handlers[i]) changed.emplace_back(strsignal(static_cast<int>(i) + 1));
  return fmt::format("{}", fmt::join(changed, ", "));
}

std::string changed_environment(const ProcessState& before, const ProcessState& after) {
  std::vector<std::string> names;
  for (const auto& entries :
       {missing_from(before.environment, after.environment), missing_from(after.environment, before.environment)})
    for (const std::string& entry : entries)
      if (std::find(names.begin(), names.end(), name_of_variable(entry)) == names.end())
        names.push_back(name_of_variable(entry));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::size_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace assay::host::validate
