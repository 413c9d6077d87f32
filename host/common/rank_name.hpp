// How a rank is named in a sentence about it.
#pragma once
#include <cstdint>
#include <string>

namespace assay::host {

// "rank 1 on n2"; "rank 1" where the host goes without saying.
inline std::string rank_name(std::int32_t rank, const std::string& host = "") {
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " on " + host);
}

}  // namespace assay::host
