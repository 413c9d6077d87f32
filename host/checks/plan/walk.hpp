// Walks through the setup and the first step of cases on a device that carries nothing out, in child processes, since
// plugins run there: what the cases take, to the byte, and what their operations cost.
#pragma once
#include <assay/abi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiment/device_description.hpp"
#include "experiment/experiment.hpp"
#include "measure/memory_ledger.hpp"
#include "plugin/schema.hpp"

namespace assay::host::plan {

inline constexpr double mib = 1048576.0;  // bytes

// By assay_operation_kind.
inline constexpr std::array operation_kinds{"products", "attention", "other", "collectives"};
inline constexpr std::size_t product_kind = ASSAY_OPERATION_PRODUCT, attention_kind = ASSAY_OPERATION_ATTENTION,
                             collective_kind = ASSAY_OPERATION_COLLECTIVE;
static_assert(operation_kinds.size() == collective_kind + 1);

struct OperationSum {
  std::int64_t count = 0;
  double flops = 0, bytes = 0;
  double flops_s = 0;  // at the device's peak of each operation's arithmetic
  double least_s = 0;  // the sum over the operations of the larger of what flops and bytes take at the device's peaks
};

enum class WalkState : int {
  walked,
  refused,      // the workload calls its parameters wrong
  unsupported,  // it does not run on such a device, or with so many ranks
  too_large,    // the stand-in has no addresses for so much
  not_known,    // it does not say, and what happens to it on such a device is no answer
};

struct Walk {
  WalkState state = WalkState::not_known;
  std::string reason;              // unless walked
  std::int32_t rank = 0;           // whose figures these are
  bool is_declared = false;        // by assay.plan/1, not by a walk
  bool communicates = false;       // opens a communicator, be it of one rank
  measure::MemoryAmounts peak;     // of setup and a step
  measure::MemoryAmounts at_step;  // held while steps run
  std::int64_t peak_total = 0;
  std::array<OperationSum, operation_kinds.size()> operations;  // of one step
  // What the workload itself states (assay_work); 0: not stated.
  double flops = 0, bytes = 0;
  std::string arithmetic;
};

// A case, as its device has it: with what its choices stand for.
struct WalkRequest {
  experiment::Case values;
  std::int32_t ranks = 1;
};

struct WalkedPlugin {
  std::filesystem::path file;
  plugin::WorkloadSchema schema;
};

// The answers in the order of the requests, each of the rank that takes the most memory among the first and the last
// one. Throws plugin::PluginError where plugin or stand-in cannot be opened, and std::system_error where there can be
// no child.
std::vector<Walk> walk_cases(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                             const std::vector<WalkRequest>& requests);

// What `create` and `work` alone say of each case, which is where a workload checks its parameters: `refused` as above,
// and `walked` where nothing speaks against it. It takes no longer than `patience`: what has not been asked by then, or
// hangs, is `not_known`. Throws as walk_cases().
std::vector<Walk> create_cases(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                               const std::vector<WalkRequest>& requests, std::chrono::milliseconds patience);

// For each request the largest value of the integer parameter `name` with which `fits` says yes, from the request's own
// value on.
struct Largest {
  std::optional<std::int64_t> value;
  bool is_bound = false;  // of the parameter's range
  std::string why_none;   // without a value: the case's own does not fit, or a value on the way is refused
};
using FitsAsked = std::function<bool(const WalkRequest& request, const Walk& walk)>;
std::vector<Largest> largest_that_fit(const WalkedPlugin& plugin, const experiment::DeviceDescription& device,
                                      const std::vector<WalkRequest>& requests, const std::string& name,
                                      const FitsAsked& fits);

}  // namespace assay::host::plan
