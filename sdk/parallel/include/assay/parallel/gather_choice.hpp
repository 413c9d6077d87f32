// The kind of memory by which parameters are gathered, chosen by timing the gatherings of a step, with products beside
// them where the step has some: copy engines are slower alone than some kinds, and leave the products more of the GPU.
#pragma once
#include <assay/comm/measured_choice.hpp>
#include <assay/comm/memory_kinds.hpp>
#include <assay/compute/backend.hpp>
#include <assay/plugin.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::parallel {

// The gatherings of a step, one after the other.
struct GatherTrial {
  std::vector<std::size_t> bytes;  // that a rank has after each
  bool in_place = false;           // a rank's part lies in what is gathered
  bool graph = false;              // a step is captured
  // Beside each runs a product x [rows, width] by [width, 4 width], this often; 0: nothing runs beside it.
  std::int64_t products = 0;
  std::int64_t rows = 0, width = 0;
  compute::DType dtype = compute::DType::f32;
};

// The same with four at most of equal ones in a row: enough to tell kinds apart, however deep the model is.
std::vector<std::size_t> few_of_each(const std::vector<std::size_t>& bytes);

// What a trial runs on. `open` opens a communicator, collectively; `seconds` reads a clock.
struct TrialGround {
  const Host& host;
  compute::Backend& backend;
  std::function<std::unique_ptr<comm::Communicator>(bool copy_engines)> open;
  std::function<double()> seconds;
};

// The rounds of one kind on this rank. Every rank calls it.
std::array<double, comm::timed_rounds> time_gatherings(const TrialGround& ground, const GatherTrial& trial,
                                                       comm::MemoryKind kind);

// Every rank calls it, once for each `name`, before it has another communicator. Throws as comm::choose_by_time does.
struct GatherChoice {
  comm::MemoryKind kind = comm::MemoryKind::any_memory;
  std::string text;  // for the log
};
GatherChoice choose_gathers(const TrialGround& ground, const std::string& name, const GatherTrial& trial);

}  // namespace assay::parallel
