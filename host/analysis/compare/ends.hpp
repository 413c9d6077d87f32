// The ends of an interval of a ratio, one of which may be open: how far it goes there is not known.
#pragma once
#include <optional>
#include <string>

namespace assay::host::compare {

// A missing end is open. Without both there is no interval.
struct Ends {
  std::optional<double> low, high;
};

// Takes an end for an open one that is more than a factor of 1,000 away from the ratio, at 0 or at infinity: so few
// runs do not show where it is.
Ends ends_of(double ratio, const std::optional<double>& low, const std::optional<double>& high);

// "0.9800 .. 1.010", "? .. 1.010" where an end is open, "exact", or "" without an interval.
std::string ends_text(const Ends& ends);

}  // namespace assay::host::compare
