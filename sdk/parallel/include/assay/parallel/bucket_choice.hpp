// The size of the buckets of a training step, chosen by measuring: the best one depends on the model, the wire, and
// what collectives take away from the computation beside them.
#pragma once
#include <assay/comm/measured_choice.hpp>
#include <assay/plugin.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::parallel {

using comm::carries_nothing_out;

// The candidates for this many bytes of gradients: from 25 MiB on, each twice the one before, until one bucket holds
// all.
std::vector<std::size_t> bucket_candidates(std::size_t gradient_bytes);

struct BucketChoice {
  std::size_t bytes = 0;
  std::string text;  // the candidates and their times, for the record
};

// The candidate whose step is fastest on the slowest rank. Every rank calls it with the same candidates, and gets the
// same choice. `step_seconds` sets up a step with buckets of that size, takes some, and returns the time of one; it may
// communicate. A device that carries nothing out has nothing to measure: the first candidate is taken.
BucketChoice choose_bucket_bytes(const Host& host, std::string_view name, const std::vector<std::size_t>& candidates,
                                 const std::function<double(std::size_t)>& step_seconds);

}  // namespace assay::parallel
