#include "assay/parallel/communication_params.hpp"

#include <cmath>

namespace assay::parallel {
namespace {

std::size_t bytes_of(const Case& c, const char* mebibytes) {
  return static_cast<std::size_t>(std::llround(c.get<double>(mebibytes) * 0x1p20));
}

}  // namespace

CollectiveSettings::CollectiveSettings(const Case& c)
    : library(c.get<std::string>("comm")), options{.max_channels = c.get<std::int32_t>("max_channels")} {}

CommunicationSettings::CommunicationSettings(const Case& c)
    : CollectiveSettings(c), bucket_bytes(bytes_of(c, "bucket_mb")), last_bucket_bytes(bytes_of(c, "last_bucket_mb")) {
  if (bucket_bytes != 0 && last_bucket_bytes > bucket_bytes)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "last_bucket_mb is larger than bucket_mb; buckets shrink towards the end of backward: take at most "
                "bucket_mb, or 0 for buckets that are all as large");
}

}  // namespace assay::parallel
