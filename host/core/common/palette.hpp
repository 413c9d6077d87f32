// Words in colour, for people at a terminal. A colour adds nothing to its word.
#pragma once
#include <string>
#include <string_view>

namespace assay::host {

enum class Tone { plain, good, doubt, bad };

// What a word of a status, a verdict, a severity is worth; also where a mark follows it ("slower [1]"), or a number of
// cases stands before it ("3 failed"). Plain: any other word.
Tone tone_of(std::string_view word);

class Palette {
 public:
  Palette() = default;  // no colour
  explicit Palette(bool has_colour) : has_colour_(has_colour) {}
  // Colour where the descriptor is a terminal that knows it (TERM is set, and not "dumb") and NO_COLOR is not set, or
  // empty (https://no-color.org).
  static Palette of(int fd);

  bool has_colour() const { return has_colour_; }
  std::string paint(std::string_view text, Tone tone) const;
  std::string paint(std::string_view text) const { return paint(text, tone_of(text)); }

 private:
  bool has_colour_ = false;
};

}  // namespace assay::host
