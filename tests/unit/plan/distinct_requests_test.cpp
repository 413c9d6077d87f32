#include "plan/distinct_requests.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::host::plan {
namespace {

WalkRequest request_of(std::map<std::string, Value> params, std::int32_t ranks = 1) {
  WalkRequest request;
  request.values.params = std::move(params);
  request.ranks = ranks;
  return request;
}

std::size_t kinds_of(const std::vector<WalkRequest>& requests) { return distinct_among(requests).first.size(); }

TEST(DistinctRequests, WhatNoWorkloadSeesMakesNoOtherOne) {
  WalkRequest first = request_of({{"batch", std::int64_t{8}}});
  WalkRequest repeat = first, longer = first, other = request_of({{"batch", std::int64_t{9}}});
  repeat.values.repeat = 2, repeat.values.index = 7;
  longer.values.measure.steps = 500, longer.values.run.threads = 3;
  longer.values.axes = {{"measure.steps", std::int64_t{500}}};
  const DistinctRequests distinct = distinct_among({first, other, repeat, longer, other});
  EXPECT_EQ(distinct.first, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(distinct.kind, (std::vector<std::size_t>{0, 1, 0, 0, 1}));
  EXPECT_TRUE(distinct_among({}).kind.empty());
}

TEST(DistinctRequests, WhatAWorkloadSeesMakesAnotherOne) {
  const WalkRequest base = request_of({{"a", std::string("x")}, {"b", 1.0}});
  std::vector<WalkRequest> all{base, request_of(base.values.params, 2)};
  for (int i = 0; i < 4; ++i) all.push_back(base);
  all[2].values.run.seed += 1;
  all[3].values.measure.prepare = !base.values.measure.prepare;
  all[4].values.measure.timeout += std::chrono::seconds(1);
  all[5].values.run.stall_timeout += std::chrono::seconds(1);
  EXPECT_EQ(kinds_of(all), all.size());
}

TEST(DistinctRequests, ValuesAreToldApartByTypeAndToTheLastBit) {
  EXPECT_EQ(kinds_of({request_of({{"a", std::int64_t{1}}}), request_of({{"a", 1.0}}), request_of({{"a", true}}),
                      request_of({{"a", std::string("1")}}), request_of({{"a", std::nextafter(1.0, 2.0)}}),
                      request_of({{"a", NAN}}), request_of({{"a", -0.0}}), request_of({{"a", 0.0}})}),
            8u);
  // No text looks like the parameter behind it.
  EXPECT_EQ(kinds_of({request_of({{"a", std::string("x\nb 3 1:y")}}),
                      request_of({{"a", std::string("x")}, {"b", std::string("y")}})}),
            2u);
}

}  // namespace
}  // namespace assay::host::plan
