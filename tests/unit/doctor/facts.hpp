// A sound machine with a GPU, of which tests change what they are about.
#pragma once
#include "doctor/findings.hpp"

namespace assay::host::doctor {

inline Facts sound_facts() {
  Facts facts;
  Machine& m = facts.machine;
  m.host = "node1";
  m.model = "AMD EPYC 9454";
  m.processors = m.usable = 48;
  m.governors = {{"performance", 48}};
  m.clock = "tsc";
  m.clock_ns = 20;
  m.driver = "580.95.05";
  m.gpus = {{"0000:18:00.0", 16, 16, 0}};
  m.results = "/scratch/results";
  m.results_file_system = "xfs";
  m.results_writable = true;
  m.results_free_mib = 1e6;
  DeviceState cpu;
  cpu.name = m.model, cpu.compute_units = 48;
  DeviceState gpu;
  gpu.name = "NVIDIA H200", gpu.memory_total_mib = 144000, gpu.memory_free_mib = 143000;
  gpu.max_sm_clock_mhz = gpu.application_sm_clock_mhz = 1980;
  gpu.power_limit_w = gpu.default_power_limit_w = 700;
  gpu.foreign_processes = 0;
  facts.devices = {{"cpu", "", {cpu}}, {"cuda", "", {gpu}}};
  facts.communicators = {"gloo", "nccl"};
  facts.plugins = 8;
  return facts;
}

}  // namespace assay::host::doctor
