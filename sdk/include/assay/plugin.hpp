// assay/plugin.hpp - the C++20 layer over assay/abi.h. Header-only: it is compiled into the plugin, and nothing of it
// crosses the border. A complete plugin:
//
//   struct Axpy {
//     static constexpr auto id = "axpy", summary = "y += a x over one vector", item_unit = "elements";
//     static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 20).at_least(1).help("length"));
//     static constexpr auto add = assay::phase("add");
//     static constexpr auto phases = assay::table(add);
//     explicit Axpy(const assay::Case& c) : n(c.get<std::uint64_t>("n")) {}
//     void setup(const assay::Launch& launch) { ... }
//     void run(const assay::LaunchOf<Axpy>& launch) {
//       const auto phase = launch.phase(add);
//       ...
//     }
//     assay::Work work() const { return {.flops = 2 * n, .bytes = 12 * n, .items = n}; }
//   };
//   ASSAY_PLUGIN("org.example.axpy", "1.0.0", Axpy)
//
// Required: id, summary, a constructor from Case, setup, run. Optional: item_unit, params, phases, metrics, presets,
// device_flags, ranks_cooperate, cold_start, steps_elsewhere, finish, verify (returns std::string: what was checked; or
// assay::Verified, which can state that a part was not), account with open_account and restart, work, peak, silence,
// extension, min_host_minor. Throw to report errors: assay::Error carries its status; std::bad_alloc becomes
// OUT_OF_MEMORY, anything else INTERNAL.
//
// Misuse does not compile: a handle that is in none of the workload's tables, a table that contradicts itself, a member
// with another signature or a misspelt name. The parts below can be read separately.
#pragma once
#include <assay/abi.h>
#include <assay/device.h>
#include <assay/plugin/adapter.hpp>   // ASSAY_PLUGIN, ASSAY_PLUGIN_EX
#include <assay/plugin/case.hpp>      // Host, Case
#include <assay/plugin/choices.hpp>   // choices(), names()
#include <assay/plugin/error.hpp>     // Error
#include <assay/plugin/launch.hpp>    // Launch, LaunchOf
#include <assay/plugin/results.hpp>   // Work, Peak, Account, Verified
#include <assay/plugin/services.hpp>  // DeviceMemory, report_progress(), begin_part(), CaptureMarks, ...
#include <assay/plugin/tables.hpp>    // Param, Phase, Metric, Preset, table()

// The standard headers that plugin sources have always had through this one.
#include <memory>
#include <tuple>
