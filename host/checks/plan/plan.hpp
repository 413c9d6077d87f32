// What cases will take, before they run: for each case its memory and whether that fits, the least time of a step
// and the one to be expected, and for all of them node-hours and disk.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/device_description.hpp"
#include "plan/calibration.hpp"
#include "plan/walk.hpp"

namespace assay::host::plan {

enum class Fits { yes, no, not_known };

struct PlannedCase {
  WalkRequest request;
  Walk walk;
  Fits fits = Fits::not_known;
  double beside_mib = 0;    // what the process holds of the device beside its account
  double process_mib = 0;   // of the device while steps run, that too; on a CPU of all ranks of the machine
  double peak_mib = 0;      // the most that it holds
  double least_step_s = 0;  // by the stated peaks, of data from the device's memory; 0: not known
  std::string bound;        // what bounds it: "flops", "bytes", "link", "events"
  std::optional<Calibration::Expected> expected;
  std::optional<WhyNoTime> why_no_time;  // where earlier cases of this workload and device give none
  double beyond = 1;                     // of a time that is too far from them to be predicted
  double least_s = 0;                    // of all its steps
  std::optional<double> expected_s;      // of the case, set-up and verification included
  std::optional<Largest> largest;        // with --largest
};

struct CasesPlan {
  experiment::DeviceDescription device;
  std::vector<PlannedCase> cases;
  double node_hours = 0;
  bool node_hours_are_least = false;  // some case has no expected time, and counts by its least one, or not at all
  double disk_mib = 0;
  std::vector<std::string> notes;
};

struct WalkedCases {
  WalkedPlugin plugin;
  experiment::DeviceDescription device;
  std::vector<WalkRequest> cases;
  std::vector<record::CaseRecord> earlier;  // of runs on the same device
  std::string largest;                      // a parameter, or ""
};

// Throws what walk_cases() throws.
CasesPlan plan_cases(WalkedCases request);

// What a process holds of a GPU beside what it asks for, where the device's file does not say it: as on an H200 with
// driver 580, CUDA 13.0 and NCCL 2.28.
inline constexpr double usual_context_mib = 527, usual_kernels_mib = 8, usual_products_mib = 14,
                        usual_communicator_mib = 831;

}  // namespace assay::host::plan
