#include "common/utc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace assay::host {
namespace {

struct Fields {
  int year, month, day, hour, minute, second;
};

Fields split(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  return {static_cast<int>(date.year()),
          static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>(clock.hours().count()),
          static_cast<int>(clock.minutes().count()),
          static_cast<int>(clock.seconds().count())};
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_stamp(WallTime time) {
  const Fields f = split(time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", f.year, f.month, f.day, f.hour, f.minute, f.second);
}

std::string utc_text(WallTime time) {
  const Fields f = split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", f.year, f.month, f.day, f.hour, f.minute, f.second);
}

std::string utc_text_ms(WallTime time) {
  const auto within =
      std::chrono::floor<std::chrono::milliseconds>(time) - std::chrono::floor<std::chrono::seconds>(time);
  std::string text = utc_text(time);
  text.insert(text.size() - 1, fmt::format(".{:03}", within.count()));
  return text;
}

std::optional<WallTime> parse_utc(std::string_view text) {
  // Patterns of equal meaning: a letter takes a digit, anything else stands for itself.
  const std::string_view pattern = text.size() == 16 ? "YYYYMMDDTHHMMSSZ" : "YYYY-MM-DDTHH:MM:SSZ";
  if (text.size() != pattern.size()) return std::nullopt;
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool literal = pattern[i] == 'T' || pattern[i] == 'Z' || pattern[i] == '-' || pattern[i] == ':';
    if (literal && text[i] != pattern[i]) return std::nullopt;
    if (literal) continue;
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    digits += text[i];
  }
  const auto number = [&digits](std::size_t at, std::size_t count) {
    int value = 0;
    std::from_chars(digits.data() + at, digits.data() + at + count, value);
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(4, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(6, 2))));
  const int hour = number(8, 2), minute = number(10, 2), second = number(12, 2);
  // WallTime counts nanoseconds in 64 bits: from 1677 to 2262.
  const int year = static_cast<int>(date.year());
  if (year < 1678 || year > 2261) return std::nullopt;
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

std::optional<WallTime> parse_time_with_zone(std::string_view text) {
  constexpr std::size_t to_the_second = 19;
  if (text.size() <= to_the_second) return std::nullopt;
  std::string plain(text.substr(0, to_the_second));
  if (plain[10] == ' ') plain[10] = 'T';
  const auto time = parse_utc(plain + "Z");
  if (!time) return std::nullopt;
  std::string_view zone = text.substr(to_the_second);
  if (zone.starts_with('.') || zone.starts_with(','))
    zone.remove_prefix(std::min(zone.find_first_not_of("0123456789", 1), zone.size()));
  if (zone == "Z") return time;
  const auto digit = [&zone](std::size_t i) {
    return i < zone.size() && zone[i] >= '0' && zone[i] <= '9' ? zone[i] - '0' : -1;
  };
  // "+02:00" and "+0200"
  const std::size_t minutes = zone.size() == 6 && zone[3] == ':' ? 4 : 3;
  if (zone.size() != minutes + 2 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, minutes, minutes + 1})
    if (digit(i) < 0) return std::nullopt;
  const auto ahead =
      std::chrono::hours(10 * digit(1) + digit(2)) + std::chrono::minutes(10 * digit(minutes) + digit(minutes + 1));
  return zone[0] == '-' ? *time + ahead : *time - ahead;
}

}  // namespace assay::host
