// The keys of a site file, a row for each: its table, what fits there, and where the value goes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "batch/site.hpp"
#include "common/value.hpp"

namespace assay::host::batch {

struct SiteKey {
  std::string section, key;  // "slurm.limits", "attempts"
  std::string expected;
  bool is_list = false;
  std::function<bool(const Value&, Site&)> store;  // one value, or one element of a list; false when it does not fit
};

const std::vector<SiteKey>& site_keys();

// What a host of a site is written as, for messages: experiments say how many ranks run there.
inline constexpr const char* site_host_form =
    "a name that ssh takes, one machine and no pattern of several (\"n1\", \"user@n2\"; ports stand in ~/.ssh/config)";

}  // namespace assay::host::batch
