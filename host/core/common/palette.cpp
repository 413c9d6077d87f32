#include "common/palette.hpp"

#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace assay::host {
namespace {

constexpr std::array<std::pair<std::string_view, Tone>, 37> tones{{
    {"ok", Tone::good},
    {"valid", Tone::good},
    {"faster", Tone::good},
    {"less", Tone::good},
    {"better", Tone::good},
    {"yes", Tone::good},
    {"unknown", Tone::doubt},
    {"partial", Tone::doubt},
    {"unsupported", Tone::doubt},
    {"outdated", Tone::doubt},
    {"cannot tell", Tone::doubt},
    {"not checked", Tone::doubt},
    {"not compared", Tone::doubt},
    {"not known", Tone::doubt},
    {"warning", Tone::doubt},
    {"unsubmitted", Tone::doubt},
    {"too large", Tone::bad},
    {"refused", Tone::bad},
    {"no", Tone::bad},
    {"crashed", Tone::bad},
    {"failed", Tone::bad},
    {"oom", Tone::bad},
    {"timeout", Tone::bad},
    {"wrong_result", Tone::bad},
    {"wrong", Tone::bad},
    {"contended", Tone::bad},
    {"throttled", Tone::bad},
    {"power_limited", Tone::good},
    {"slower", Tone::bad},
    {"more", Tone::bad},
    {"worse", Tone::bad},
    {"differs", Tone::bad},
    {"error", Tone::bad},
    {"lost", Tone::bad},
    {"quarantined", Tone::bad},
    {"blocked", Tone::bad},
    {"errors", Tone::bad},
}};

}  // namespace

Tone tone_of(std::string_view word) {
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits != std::string_view::npos && digits > 0 && word[digits] == ' ') word.remove_prefix(digits + 1);
  for (const auto& [known, tone] : tones)
    if (word.starts_with(known) && (word.size() == known.size() || word[known.size()] == ' ' ||
                                    word[known.size()] == ':' || word[known.size()] == ','))
      return tone;
  return Tone::plain;
}

Palette Palette::of(int fd) {
  const char *kind = std::getenv("TERM"), *refused = std::getenv("NO_COLOR");
  const bool knows_colour = kind && *kind && std::string_view(kind) != "dumb";
  return Palette(knows_colour && !(refused && *refused) && ::isatty(fd) == 1);
}

// The terminal's own colours, which its user has chosen for the paper that is there.
std::string Palette::paint(std::string_view text, Tone tone) const {
  if (!has_colour_ || tone == Tone::plain || text.empty()) return std::string(text);
  const char* colour = tone == Tone::good ? "\x1b[32m" : tone == Tone::doubt ? "\x1b[33m" : "\x1b[31m";
  return colour + std::string(text) + "\x1b[0m";
}

}  // namespace assay::host
