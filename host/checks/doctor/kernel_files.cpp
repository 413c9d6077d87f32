#include "doctor/kernel_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "telemetry/text_files.hpp"

namespace assay::host::doctor {
namespace {

namespace fs = std::filesystem;
using telemetry::for_each_line;
using telemetry::read_text;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "\040" of /proc/self/mounts is a blank.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_number(text.substr(i + 1, 3))) {
      plain += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 3)).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

std::string word_in(const fs::path& file) {
  std::string text = read_text(file).value_or("");
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::optional<std::int64_t> number_in_file(const fs::path& file) {
  const std::string text = word_in(file);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(number)
                                                                                   : std::nullopt;
}

std::string chosen_word(std::string_view text) {
  const std::size_t begin = text.find('['), end = text.find(']', begin == std::string_view::npos ? 0 : begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) return "";
  return std::string(text.substr(begin + 1, end - begin - 1));
}

std::optional<double> mib_of(std::string_view meminfo, std::string_view key) {
  std::optional<double> found;
  for_each_line(meminfo, [&](std::string_view line) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') return;
    found = std::strtod(std::string(line.substr(key.size() + 1)).c_str(), nullptr) / 1024.0;
  });
  return found;
}

std::string file_system_of(std::string_view mounts, const fs::path& path) {
  std::string type;
  fs::path deepest;
  for_each_line(mounts, [&](std::string_view line) {
    std::istringstream words{std::string(line)};
    std::string device, place, kind;
    if (!(words >> device >> place >> kind)) return;
    const fs::path mounted = unescaped(place);
    // A later mount on one place covers the earlier one.
    if (!lies_below(path, mounted) || mounted.string().size() < deepest.string().size()) return;
    deepest = mounted;
    type = kind;
  });
  return type;
}

std::map<std::int32_t, ProcessTicks> ticks_of_processes(const fs::path& proc) {
  std::map<std::int32_t, ProcessTicks> found;
  std::error_code error;
  for (fs::directory_iterator it(proc, error), end; !error && it != end; it.increment(error)) {
    const std::string number = it->path().filename();
    if (!is_number(number) || number.size() > 9) continue;
    const std::string text = read_text(it->path() / "stat").value_or("");
    // "PID (name) state ...": the name may have blanks and brackets itself.
    const std::size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) continue;
    std::istringstream words(text.substr(close + 1));
    std::string word;
    constexpr int place_of_flags = 6, before_times = 11;    // from the state on
    constexpr std::uint64_t is_kernel_thread = 0x00200000;  // PF_KTHREAD: the kernel's own, nobody's program
    std::uint64_t flags = 0, user = 0, system = 0;
    for (int i = 0; i < before_times && words >> word; ++i)
      if (i == place_of_flags) flags = std::strtoull(word.c_str(), nullptr, 10);
    if (!(words >> user >> system) || (flags & is_kernel_thread) != 0) continue;
    found[std::stoi(number)] = {text.substr(open + 1, close - open - 1), user + system};
  }
  return found;
}

std::vector<Neighbour> busiest(const std::map<std::int32_t, ProcessTicks>& begin,
                               const std::map<std::int32_t, ProcessTicks>& end, std::int32_t own, double ticks) {
  constexpr std::size_t most = 5;
  constexpr double least = 0.02;  // of a processor: below it is what any machine does
  std::vector<Neighbour> found;
  for (const auto& [pid, process] : end) {
    const auto before = begin.find(pid);
    const std::uint64_t earlier = before == begin.end() ? 0 : before->second.ticks;
    if (pid == own || before == begin.end() || process.ticks <= earlier || ticks <= 0) continue;
    const double share = static_cast<double>(process.ticks - earlier) / ticks;
    if (share >= least) found.push_back({pid, process.name, share});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.processors > b.processors; });
  if (found.size() > most) found.resize(most);
  return found;
}

std::vector<GpuOnBus> gpus_on_bus(const fs::path& sys) {
  std::vector<GpuOnBus> found;
  std::error_code error;
  const auto small = [](const fs::path& file) -> std::optional<int> {
    const auto number = number_in_file(file);
    return number && *number >= 0 && *number < 1000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
  };
  for (fs::directory_iterator it(sys / "bus/pci/devices", error), end; !error && it != end; it.increment(error)) {
    // Display controllers of NVIDIA, without the audio part of the same card.
    if (word_in(it->path() / "vendor") != "0x10de" || !word_in(it->path() / "class").starts_with("0x03")) continue;
    found.push_back({it->path().filename(), small(it->path() / "current_link_width"),
                     small(it->path() / "max_link_width"), small(it->path() / "numa_node")});
  }
  std::sort(found.begin(), found.end(), [](const GpuOnBus& a, const GpuOnBus& b) { return a.address < b.address; });
  return found;
}

}  // namespace assay::host::doctor
