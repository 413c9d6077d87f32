#include "assay/parallel/communication_params.hpp"

#include <cmath>

namespace assay::parallel {

CollectiveSettings::CollectiveSettings(const Case& c)
    : library(c.get<std::string>("comm")), options{.max_channels = c.get<std::int32_t>("max_channels")} {}

CommunicationSettings::CommunicationSettings(const Case& c)
    : CollectiveSettings(c),
      bucket_bytes(static_cast<std::size_t>(std::llround(c.get<double>("bucket_mb") * 0x1p20))) {}

}  // namespace assay::parallel
