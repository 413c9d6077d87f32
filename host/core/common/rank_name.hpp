// How a rank is named in a sentence about it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/text_format.hpp"

namespace assay::host {

// "rank 1 on n2"; "rank 1" where the host goes without saying.
inline std::string rank_name(std::int32_t rank, const std::string& host = "") {
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " on " + host);
}

// "rank 3", "ranks 1, 3 and 5 to 9". `ascending`: sorted, without doubles, not empty.
inline std::string ranks_text(std::span<const std::int32_t> ascending) {
  return (ascending.size() == 1 ? "rank " : "ranks ") +
         number_list(std::vector<std::int64_t>(ascending.begin(), ascending.end()));
}

}  // namespace assay::host
