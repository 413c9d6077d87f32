#include "plugin/table_reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <optional>
#include <system_error>
#include <vector>

#include "common/child.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "plugin/entry_check.hpp"
#include "plugin/plugin_library.hpp"

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

// The answer begins with one of these; after a refusal follow its number, a line break and its text.
constexpr char has_tables = '+';
constexpr char is_refused = '-';

PluginTables ask_child(const fs::path& file, std::span<const LibraryCopy> copies, std::chrono::milliseconds deadline) {
  const auto read = [&](const Send& send) {
    std::string answer;
    try {
      answer = fmt::format("{}{}", has_tables, to_line(copy_tables(PluginLibrary::open(file, copies)->entry())));
    } catch (const PluginError& e) {
      answer = fmt::format("{}{}\n{}", is_refused, static_cast<int>(e.why()), e.what());
    } catch (const std::exception& e) {
      answer = fmt::format("{}{}\n{}: {}", is_refused, static_cast<int>(Refusal::other), file.string(), e.what());
    }
    send(answer);
  };
  const ChildEnd end = run_in_child(read, {.deadline = deadline});
  if (end.is_complete && end.text.starts_with(has_tables))
    return tables_from_line(std::string_view(end.text).substr(1));
  if (end.is_complete && end.text.starts_with(is_refused)) {
    const std::size_t text = end.text.find('\n');
    int why = 0;
    std::from_chars(end.text.data() + 1, end.text.data() + text, why);
    throw PluginError(end.text.substr(text + 1), static_cast<Refusal>(why));
  }
  if (end.is_overdue)
    throw PluginError(fmt::format("{}: opening it takes longer than {} s; look for what its constructors wait for",
                                  file.string(), static_cast<double>(deadline.count()) / 1000),
                      Refusal::overdue);
  throw PluginError(
      fmt::format("{}: opening it, or reading its tables, ends the process: {}; rebuild it if the file is "
                  "cut short, or look for what its constructors do",
                  file.string(), end.how()),
      Refusal::ended);
}

// By which a file and this host are known: as long as they stay, so does what is read.
std::string state_of(const struct stat& found) {
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
}

// What was read of one file, remembered. Whatever fails here is no failure: then it is read again.
class Memory {
 public:
  explicit Memory(const fs::path& file) : file_(file) {
    const fs::path folder = table_cache_folder();
    struct stat host {
    }, found{};
    if (folder.empty() || ::stat("/proc/self/exe", &host) != 0 || ::stat(file.c_str(), &found) != 0) return;
    Sha256 name;
    name.add(file.string());
    path_ = folder / (name.hex().substr(0, 32) + ".tables");
    state_ = fmt::format("{} | {} | {}", state_of(found), state_of(host), file.string());
    // A file that has just been written may be written again within the same tick of the file system's clock.
    may_keep_ = found.st_ctim.tv_sec + 2 < std::time(nullptr);
  }

  std::optional<PluginTables> recall() const {
    if (path_.empty()) return std::nullopt;
    try {
      constexpr std::uintmax_t most_bytes = std::uintmax_t{64} << 20;
      if (!fs::is_regular_file(path_) || fs::file_size(path_) > most_bytes) return std::nullopt;
      const std::string text = read_file(path_);
      const std::size_t end = text.find('\n');
      if (end == std::string::npos || text.compare(0, end, state_) != 0) return std::nullopt;
      return tables_from_line(std::string_view(text).substr(end + 1));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  void keep(const PluginTables& tables) const {
    if (path_.empty() || !may_keep_) return;
    try {
      if (!libraries_beside(file_).empty()) return;  // which may change while the plugin's file does not
      if (try_creating_folders(path_.parent_path()) != 0) return;
      make_room();
      write_file_atomically(path_, state_ + '\n' + to_line(tables));
    } catch (const std::exception&) {  // a full disk, a folder that is another's
    }
  }

 private:
  // Nobody asks again about files that are gone: when there are many, all are forgotten.
  void make_room() const {
    constexpr auto most_files = 256;
    const fs::path folder = path_.parent_path();
    if (std::distance(fs::directory_iterator(folder), {}) < most_files) return;
    std::vector<fs::path> known;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".tables") known.push_back(entry.path());
    for (const fs::path& path : known) fs::remove(path);
  }

  fs::path file_, path_;
  std::string state_;
  bool may_keep_ = false;
};

}  // namespace

fs::path table_cache_folder() {
  const auto folder = [](const char* variable) {
    const char* const given = std::getenv(variable);
    return fs::path(given ? given : "");
  };
  if (std::getenv("ASSAY_CACHE_DIR"))
    return folder("ASSAY_CACHE_DIR").empty() ? fs::path() : folder("ASSAY_CACHE_DIR") / "plugins";
  if (!folder("XDG_CACHE_HOME").empty()) return folder("XDG_CACHE_HOME") / "assay" / "plugins";
  return folder("HOME").empty() ? fs::path() : folder("HOME") / ".cache" / "assay" / "plugins";
}

PluginTables read_tables(std::span<const LibraryCopy> copies, std::chrono::milliseconds deadline) {
  return ask_child(copies.front().file(), copies, deadline);
}

PluginTables read_tables(const fs::path& given, std::chrono::milliseconds deadline) {
  std::error_code error;
  const fs::path file = fs::absolute(given, error).lexically_normal();
  const Memory memory(file);
  if (std::optional<PluginTables> known = memory.recall()) return std::move(*known);
  PluginTables tables = ask_child(file, {}, deadline);
  memory.keep(tables);
  return tables;
}

}  // namespace assay::host::plugin
