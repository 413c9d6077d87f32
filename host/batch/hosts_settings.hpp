// Settings of hosts that ssh reaches: the table [ssh] of a site file. site.hpp has those that all kinds share.
#pragma once
#include <string>
#include <vector>

namespace assay::host::batch {

struct SiteKind;

// This part stays with a batch: its jobs are there as long as it lives.
struct HostsTarget {
  std::vector<std::string> hosts;  // as the site file has them: "a", "user@b"
};

struct HostsSettings : HostsTarget {
  using Target = HostsTarget;
  static const SiteKind kind;  // hosts_kind.cpp
};

}  // namespace assay::host::batch
