#include "common/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <sstream>

#include "common/files.hpp"

namespace assay::host {
namespace {

std::optional<std::int64_t> slots_in(std::string_view text) {
  std::int64_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1 || slots > most_slots) return std::nullopt;
  return slots;
}

void check_distinct(const std::vector<SshHost>& hosts, std::string_view where) {
  if (hosts.empty()) throw UsageError(fmt::format("{} names no host; expected at least one: {}", where, host_form));
  std::set<std::string> seen;
  for (const SshHost& host : hosts)
    if (!seen.insert(host.name).second)
      throw UsageError(fmt::format("{} names the host '{}' twice; give its ranks in one place: \"{}:2\"", where,
                                   host.name, host.name));
}

}  // namespace

std::optional<SshHost> parse_host(std::string_view text) {
  SshHost host;
  // An address of IPv6 contains colons, and has slots only behind brackets: "[fe80::1]:2".
  const std::size_t colon = text.rfind(':');
  const bool has_brackets = text.find("[") != std::string_view::npos;
  const bool has_slots =
      colon != std::string_view::npos && (has_brackets ? colon > 0 && text[colon - 1] == ']' : text.find(':') == colon);
  std::string_view name = text;
  if (has_slots) {
    const auto slots = slots_in(text.substr(colon + 1));
    if (!slots) return std::nullopt;
    host.slots = *slots, name = text.substr(0, colon);
  }
  // Brackets are around an address with colons alone; "n[1-3]" is a pattern, and ssh knows none.
  const std::size_t open = name.find('[');
  if (open != std::string_view::npos || name.find(']') != std::string_view::npos) {
    const std::string_view address = open == std::string_view::npos ? "" : name.substr(open + 1);
    if (open == std::string_view::npos || (open > 0 && name[open - 1] != '@') || !address.ends_with(']') ||
        address.find(':') == std::string_view::npos || address.find_first_of("[]") != address.size() - 1)
      return std::nullopt;
    host.name = std::string(name.substr(0, open)) + std::string(address.substr(0, address.size() - 1));
  } else {
    host.name = name;
  }
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("._-@:%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (host.name.empty() || host.name.front() == '-' || host.name.front() == '@' || host.name.back() == '@' ||
      !std::all_of(host.name.begin(), host.name.end(), fits))
    return std::nullopt;
  return host;
}

std::string to_text(const SshHost& host) {
  const std::string name = host.name.find(':') == std::string::npos ? host.name : "[" + host.name + "]";
  return host.slots == 1 ? name : fmt::format("{}:{}", name, host.slots);
}

std::vector<SshHost> hosts_in_file(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<SshHost> hosts;
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, slots, more;
    if (!(words >> name)) continue;
    words >> slots >> more;
    auto host = parse_host(name);
    if (host && !slots.empty()) {
      const auto count = slots.starts_with("slots=") ? slots_in(std::string_view(slots).substr(6)) : std::nullopt;
      if (count && host->slots == 1)
        host->slots = *count;
      else
        host.reset();
    }
    if (!host || !more.empty())
      throw UsageError(
          fmt::format("{}:{}: '{}'; expected {}, or \"n1 slots=4\"", file.string(), number, line, host_form));
    hosts.push_back(*host);
  }
  check_distinct(hosts, file.string());
  return hosts;
}

std::vector<SshHost> hosts_in(const std::vector<std::string>& texts, std::string_view where) {
  std::vector<SshHost> hosts;
  for (const std::string& text : texts) {
    const auto host = parse_host(text);
    if (!host) throw UsageError(fmt::format("{} has '{}'; expected {}", where, text, host_form));
    hosts.push_back(*host);
  }
  check_distinct(hosts, where);
  return hosts;
}

std::vector<std::string> names_of_nodes(std::string_view node) {
  std::vector<std::string> names;
  while (!node.empty()) {
    const std::size_t plus = node.find('+');
    names.emplace_back(node.substr(0, plus));
    node = plus == std::string_view::npos ? "" : node.substr(plus + 1);
  }
  return names;
}

std::int64_t slots_of(const std::vector<SshHost>& hosts) {
  std::int64_t slots = 0;
  for (const SshHost& host : hosts) slots += host.slots;
  return slots;
}

}  // namespace assay::host
