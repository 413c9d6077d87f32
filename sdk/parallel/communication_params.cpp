#include "assay/parallel/communication_params.hpp"

#include <cmath>

namespace assay::parallel {
namespace {

std::size_t bytes_of(const Case& c, const char* mebibytes) {
  const double size = c.get<double>(mebibytes);
  if (size > 0 && size < least_bucket_mib)
    throw Error(
        ASSAY_INVALID_ARGUMENT,
        std::string(mebibytes) + " is a bucket of less than 1 KiB; expected 0.0009765625 (1/1024) or more, or 0");
  return static_cast<std::size_t>(std::llround(size * 0x1p20));
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
