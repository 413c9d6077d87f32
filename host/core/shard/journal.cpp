#include "shard/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "common/files.hpp"

namespace assay::host::shard {
namespace {

using Json = nlohmann::ordered_json;
using Event = JournalEntry::Event;
constexpr std::array<std::string_view, 4> event_names{"begin", "end", "left", "quarantine"};

std::optional<JournalEntry> entry_from(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("event") || !json.contains("case") || !json["case"].is_number_integer() ||
      !json["event"].is_string())
    return std::nullopt;
  JournalEntry entry;
  const auto name = json["event"].get<std::string>();
  for (std::size_t i = 0; i < event_names.size(); ++i)
    if (event_names[i] == name) {
      entry.event = static_cast<Event>(i);
      entry.case_index = json["case"].get<std::int64_t>();
      if (const auto at = json.find("t"); at != json.end() && at->is_number()) entry.at_s = at->get<double>();
      if (const auto status = json.find("status"); status != json.end() && status->is_string())
        entry.status = status->get<std::string>();
      return entry;
    }
  return std::nullopt;
}

}  // namespace

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {
  fd_ = Fd(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) throw_storage_error("open", file_, errno);
  flush_name(file_);
}

void Journal::append(const JournalEntry& entry) {
  Json json{
      {"t", entry.at_s}, {"case", entry.case_index}, {"event", event_names[static_cast<std::size_t>(entry.event)]}};
  if (!entry.status.empty()) json["status"] = entry.status;
  const std::string line = json.dump() + "\n";
  int error = write_all(fd_.get(), line).error_number;
  if (error == 0 && ::fdatasync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (error != 0) throw_storage_error(fmt::format("append {} bytes to", line.size()), file_, error);
}

std::vector<JournalEntry> read_journal(const std::filesystem::path& file) {
  std::vector<JournalEntry> entries;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return entries;
  const std::string text = read_file(file);
  const std::string_view view = text;
  for (std::size_t begin = 0, end = 0; (end = view.find('\n', begin)) != std::string_view::npos; begin = end + 1)
    if (auto entry = entry_from(view.substr(begin, end - begin))) entries.push_back(std::move(*entry));
  return entries;
}

}  // namespace assay::host::shard
