// A line that a program writes to ASSAY_FD (docs/command.md).
#pragma once
#include <assay/plugin.hpp>

#include <string>

namespace command {

// What both sides speak, which the program says first.
inline constexpr const char* greeting = "assay 1";

struct Report {
  enum class Kind {
    greeting,
    step,   // may I go on? The step before is over.
    begin,  // of the phase `name`
    end,
    metric,  // `name` of this step is `value`
    result,  // `name` of the case is `value`
    fail,    // the program gives up, for `text`
  };
  Kind kind = Kind::step;
  std::string name = {};
  double value = 0;
  std::string unit = {};
  assay_direction better = ASSAY_NEITHER_IS_BETTER;
  assay_status status = ASSAY_OK;  // of fail
  std::string text = {};
};

// Throws assay::Error that shows what was written and what was expected.
Report report_in(const std::string& line);

// What can be shown of a line in a message: its beginning, without control characters.
std::string shown(const std::string& line);

}  // namespace command
