#include "assay/parallel/bucket_choice.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/workload/text.hpp>

namespace assay::parallel {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t smallest = 25 * mebibyte;

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes / mebibyte) + " MiB"; }

}  // namespace

std::vector<std::size_t> bucket_candidates(std::size_t gradient_bytes) {
  std::vector<std::size_t> candidates{smallest};
  while (candidates.back() < gradient_bytes) candidates.push_back(2 * candidates.back());
  return candidates;
}

BucketChoice choose_bucket_bytes(const Host& host, std::string_view name, const std::vector<std::size_t>& candidates,
                                 const std::function<double(std::size_t)>& step_seconds) {
  if (candidates.size() == 1 || carries_nothing_out(host))
    return {candidates.front(), "buckets of " + mebibytes(candidates.front())};
  BucketChoice choice;
  double least = 0;
  std::string tried;
  for (const std::size_t bytes : candidates) {
    const std::vector<double> of_ranks =
        comm::exchange(host, std::string(name) + "." + std::to_string(bytes), step_seconds(bytes));
    const double slowest = *std::max_element(of_ranks.begin(), of_ranks.end());
    tried += (tried.empty() ? "" : ", ") + mebibytes(bytes) + " " + workload::number(1e3 * slowest) + " ms";
    if (choice.bytes != 0 && slowest >= least) continue;
    least = slowest;
    choice.bytes = bytes;
  }
  choice.text = "buckets of " + mebibytes(choice.bytes) + ", the fastest step of those tried: " + tried;
  return choice;
}

}  // namespace assay::parallel
