// The border's layout, frozen: the size of every struct, the place and the type of every field, the value of every
// constant, as released in 1.0, on a machine with 64-bit long and pointers. Plugins in the field were compiled against
// these numbers. A line here never changes; a field appended at a struct's end adds its line, raises that struct's SIZE
// and ASSAY_ABI_MINOR. Types count too: a changed signature keeps the layout and still breaks every plugin.
#include <assay/abi.h>
#include <assay/algorithms.h>
#include <assay/cache.h>
#include <assay/comm.h>
#include <assay/device.h>
#include <assay/memory_account.h>
#include <assay/profiling.h>
#include <assay/telemetry.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "the numbers below are those of LP64");

#define SIZE(bytes, owner)                                                                      \
  static_assert(sizeof(owner) == (bytes), "the size of " #owner " has changed");                \
  static_assert(alignof(owner) == 8, "the alignment of " #owner " has changed");                \
  static_assert(std::is_standard_layout_v<owner> && std::is_trivially_copyable_v<owner>, #owner \
                " is no longer plain "                                                          \
                "C")
#define FIELD(at, owner, field, ...)                                             \
  static_assert(offsetof(owner, field) == (at), #owner "." #field " has moved"); \
  static_assert(std::is_same_v<decltype(owner::field), __VA_ARGS__>, #owner "." #field " has another type")
#define VALUE(constant, number) static_assert((constant) == (number), "the value of " #constant " has changed")

SIZE(16, assay_str);
FIELD(0, assay_str, data, const char*);
FIELD(8, assay_str, size, size_t);

SIZE(96, assay_param);
FIELD(0, assay_param, struct_size, size_t);
FIELD(8, assay_param, name, const char*);
FIELD(16, assay_param, unit, const char*);
FIELD(24, assay_param, help, const char*);
FIELD(32, assay_param, type, assay_type);
FIELD(36, assay_param, flags, uint32_t);
FIELD(40, assay_param, default_int, int64_t);
FIELD(48, assay_param, default_float, double);
FIELD(56, assay_param, default_string, const char*);
FIELD(64, assay_param, min, double);
FIELD(72, assay_param, max, double);
FIELD(80, assay_param, choices, const char* const*);
FIELD(88, assay_param, choice_count, uint64_t);

SIZE(56, assay_metric);
FIELD(0, assay_metric, struct_size, size_t);
FIELD(8, assay_metric, name, const char*);
FIELD(16, assay_metric, unit, const char*);
FIELD(24, assay_metric, help, const char*);
FIELD(32, assay_metric, direction, assay_direction);
FIELD(36, assay_metric, scope, assay_scope);
FIELD(40, assay_metric, words, const char* const*);
FIELD(48, assay_metric, word_count, uint64_t);

SIZE(40, assay_work);
FIELD(0, assay_work, struct_size, size_t);
FIELD(8, assay_work, flops, uint64_t);
FIELD(16, assay_work, bytes, uint64_t);
FIELD(24, assay_work, items, uint64_t);
FIELD(32, assay_work, arithmetic, assay_arithmetic);
FIELD(36, assay_work, reserved, int32_t);

SIZE(80, assay_host);
FIELD(0, assay_host, struct_size, size_t);
FIELD(8, assay_host, abi_major, uint32_t);
FIELD(12, assay_host, abi_minor, uint32_t);
FIELD(16, assay_host, impl, void*);
FIELD(24, assay_host, log, void (*)(const assay_host*, int32_t, assay_str) noexcept);
FIELD(32, assay_host, set_message, void (*)(const assay_host*, assay_status, assay_str) noexcept);
FIELD(40, assay_host, get_bool, assay_status (*)(const assay_config*, assay_str, int32_t*) noexcept);
FIELD(48, assay_host, get_int, assay_status (*)(const assay_config*, assay_str, int64_t*) noexcept);
FIELD(56, assay_host, get_float, assay_status (*)(const assay_config*, assay_str, double*) noexcept);
FIELD(64, assay_host, get_string, assay_status (*)(const assay_config*, assay_str, assay_str*) noexcept);
FIELD(72, assay_host, get_extension, const void* (*)(const assay_host*, const char*) noexcept);

SIZE(48, assay_case);
FIELD(0, assay_case, struct_size, size_t);
FIELD(8, assay_case, config, const assay_config*);
FIELD(16, assay_case, seed, uint64_t);
FIELD(24, assay_case, rank, int32_t);
FIELD(28, assay_case, rank_count, int32_t);
FIELD(32, assay_case, device_kind, const char*);
FIELD(40, assay_case, prepare, int32_t);
FIELD(44, assay_case, reserved, int32_t);

SIZE(64, assay_launch);
FIELD(0, assay_launch, struct_size, size_t);
FIELD(8, assay_launch, impl, void*);
FIELD(16, assay_launch, stream, void*);
FIELD(24, assay_launch, device, int32_t);
FIELD(28, assay_launch, stage, assay_stage);
FIELD(32, assay_launch, iteration, uint64_t);
FIELD(40, assay_launch, phase_begin, void (*)(const assay_launch*, uint32_t) noexcept);
FIELD(48, assay_launch, phase_end, void (*)(const assay_launch*, uint32_t) noexcept);
FIELD(56, assay_launch, metric, void (*)(const assay_launch*, uint32_t, double) noexcept);

SIZE(48, assay_memory);
FIELD(0, assay_memory, struct_size, size_t);
FIELD(8, assay_memory, impl, void*);
FIELD(16, assay_memory, allocate,
      assay_status (*)(const assay_memory*, assay_memory_kind, size_t, assay_str, void**) noexcept);
FIELD(24, assay_memory, release, void (*)(const assay_memory*, void*) noexcept);
FIELD(32, assay_memory, report, void (*)(const assay_memory*, assay_memory_kind, int64_t, assay_str) noexcept);
FIELD(40, assay_memory, moment, void (*)(const assay_memory*, assay_str) noexcept);

SIZE(24, assay_device_access);
FIELD(0, assay_device_access, struct_size, size_t);
FIELD(8, assay_device_access, api, const assay_device_api*);
FIELD(16, assay_device_access, device, assay_device*);

SIZE(40, assay_capture);
FIELD(0, assay_capture, struct_size, size_t);
FIELD(8, assay_capture, impl, void*);
FIELD(16, assay_capture, begin, assay_status (*)(const assay_capture*) noexcept);
FIELD(24, assay_capture, end, assay_status (*)(const assay_capture*) noexcept);
FIELD(32, assay_capture, replayed, void (*)(const assay_capture*) noexcept);

SIZE(24, assay_progress);
FIELD(0, assay_progress, struct_size, size_t);
FIELD(8, assay_progress, impl, void*);
FIELD(16, assay_progress, report, void (*)(const assay_progress*, int64_t, int64_t) noexcept);
SIZE(24, assay_memory_plan);
FIELD(0, assay_memory_plan, struct_size, size_t);
FIELD(8, assay_memory_plan, impl, void*);
FIELD(16, assay_memory_plan, buffer,
      void (*)(const assay_memory_plan*, void*, size_t, size_t, int32_t, int32_t, assay_str) noexcept);

SIZE(24, assay_peak);
FIELD(0, assay_peak, struct_size, size_t);
FIELD(8, assay_peak, flops_per_s, double);
FIELD(16, assay_peak, bytes_per_s, double);
SIZE(16, assay_peak_probe);
FIELD(0, assay_peak_probe, struct_size, size_t);
FIELD(8, assay_peak_probe, measure, assay_status (*)(assay_workload_self*, const assay_launch*, assay_peak*) noexcept);

SIZE(16, assay_silence);
FIELD(0, assay_silence, struct_size, size_t);
FIELD(8, assay_silence, set, assay_status (*)(assay_workload_self*, std::int32_t) noexcept);

SIZE(152, assay_workload);
FIELD(0, assay_workload, struct_size, size_t);
FIELD(8, assay_workload, id, const char*);
FIELD(16, assay_workload, summary, const char*);
FIELD(24, assay_workload, item_unit, const char*);
FIELD(32, assay_workload, params, const assay_param* const*);
FIELD(40, assay_workload, metrics, const assay_metric* const*);
FIELD(48, assay_workload, phases, const char* const*);
FIELD(56, assay_workload, param_count, uint32_t);
FIELD(60, assay_workload, metric_count, uint32_t);
FIELD(64, assay_workload, phase_count, uint32_t);
FIELD(68, assay_workload, device_flags, uint32_t);
FIELD(72, assay_workload, create,
      assay_status (*)(const assay_host*, const assay_case*, assay_workload_self**) noexcept);
FIELD(80, assay_workload, destroy, void (*)(assay_workload_self*) noexcept);
FIELD(88, assay_workload, setup, assay_status (*)(assay_workload_self*, const assay_launch*) noexcept);
FIELD(96, assay_workload, run, assay_status (*)(assay_workload_self*, const assay_launch*) noexcept);
FIELD(104, assay_workload, finish, assay_status (*)(assay_workload_self*, const assay_launch*) noexcept);
FIELD(112, assay_workload, verify, assay_status (*)(assay_workload_self*, const assay_launch*) noexcept);
FIELD(120, assay_workload, work, assay_status (*)(const assay_workload_self*, assay_work*) noexcept);
FIELD(128, assay_workload, get_extension, const void* (*)(const assay_workload_self*, const char*) noexcept);
FIELD(136, assay_workload, presets, const assay_preset* const*);
FIELD(144, assay_workload, preset_count, uint32_t);
FIELD(148, assay_workload, flags, uint32_t);

SIZE(80, assay_preset);
FIELD(0, assay_preset, struct_size, size_t);
FIELD(8, assay_preset, when, const char*);
FIELD(16, assay_preset, choice, const char*);
FIELD(24, assay_preset, also_when, const char*);
FIELD(32, assay_preset, also_choice, const char*);
FIELD(40, assay_preset, device_kind, const char*);
FIELD(48, assay_preset, param, const char*);
FIELD(56, assay_preset, int_value, int64_t);
FIELD(64, assay_preset, float_value, double);
FIELD(72, assay_preset, string_value, const char*);

SIZE(72, assay_entry);
FIELD(0, assay_entry, struct_size, size_t);
FIELD(8, assay_entry, abi_major, uint32_t);
FIELD(12, assay_entry, abi_minor, uint32_t);
FIELD(16, assay_entry, min_host_minor, uint32_t);
FIELD(20, assay_entry, workload_count, uint32_t);
FIELD(24, assay_entry, id, const char*);
FIELD(32, assay_entry, version, const char*);
FIELD(40, assay_entry, build, const char*);
FIELD(48, assay_entry, workloads, const assay_workload* const*);
FIELD(56, assay_entry, init, assay_status (*)(const assay_host*) noexcept);
FIELD(64, assay_entry, deinit, void (*)() noexcept);

SIZE(120, assay_comm);
FIELD(0, assay_comm, struct_size, size_t);
FIELD(8, assay_comm, impl, void*);
FIELD(16, assay_comm, rank, int32_t);
FIELD(20, assay_comm, rank_count, int32_t);
FIELD(24, assay_comm, local_rank, int32_t);
FIELD(28, assay_comm, local_rank_count, int32_t);
FIELD(32, assay_comm, host_name, const char*);
FIELD(40, assay_comm, address, const char*);
FIELD(48, assay_comm, library_folder, const char*);
FIELD(56, assay_comm, timeout_ms, int64_t);
FIELD(64, assay_comm, set, assay_status (*)(const assay_comm*, assay_str, const void*, size_t) noexcept);
FIELD(72, assay_comm, get, assay_status (*)(const assay_comm*, assay_str, int64_t, void*, size_t, size_t*) noexcept);
FIELD(80, assay_comm, add, assay_status (*)(const assay_comm*, assay_str, int64_t, int64_t*) noexcept);
FIELD(88, assay_comm, exchange,
      assay_status (*)(const assay_comm*, assay_str, int64_t, const void*, size_t, void*) noexcept);
FIELD(96, assay_comm, aborted, int32_t (*)(const assay_comm*) noexcept);
FIELD(104, assay_comm, begin_wait, void (*)(const assay_comm*) noexcept);
FIELD(112, assay_comm, end_wait, void (*)(const assay_comm*) noexcept);

SIZE(16, assay_memory_account);
FIELD(0, assay_memory_account, struct_size, size_t);
FIELD(8, assay_memory_account, tell, void (*)(assay_device*, const assay_memory*) noexcept);

SIZE(24, assay_algorithm);
FIELD(0, assay_algorithm, struct_size, size_t);
FIELD(8, assay_algorithm, made_for, const char*);
FIELD(16, assay_algorithm, algorithm, const char*);

SIZE(24, assay_algorithms);
FIELD(0, assay_algorithms, struct_size, size_t);
FIELD(8, assay_algorithms, count, assay_status (*)(assay_device*, uint64_t*) noexcept);
FIELD(16, assay_algorithms, get, assay_status (*)(assay_device*, uint64_t, assay_algorithm*) noexcept);

SIZE(928, assay_device_info);
FIELD(0, assay_device_info, struct_size, size_t);
FIELD(8, assay_device_info, memory_total_bytes, uint64_t);
FIELD(16, assay_device_info, memory_free_bytes, uint64_t);
FIELD(24, assay_device_info, compute_units, int32_t);
FIELD(28, assay_device_info, reserved, int32_t);
FIELD(32, assay_device_info, name, char[256]);
FIELD(288, assay_device_info, libraries, char[512]);
FIELD(800, assay_device_info, bus_address, char[32]);
FIELD(832, assay_device_info, uuid, char[96]);

SIZE(176, assay_device_api);
FIELD(0, assay_device_api, struct_size, size_t);
FIELD(8, assay_device_api, abi_major, uint32_t);
FIELD(12, assay_device_api, abi_minor, uint32_t);
FIELD(16, assay_device_api, kind, const char*);
FIELD(24, assay_device_api, build, const char*);
FIELD(32, assay_device_api, error_text, const char* (*)() noexcept);
FIELD(40, assay_device_api, count, assay_status (*)(int32_t*) noexcept);
FIELD(48, assay_device_api, open, assay_status (*)(int32_t, assay_device**) noexcept);
FIELD(56, assay_device_api, close, void (*)(assay_device*) noexcept);
FIELD(64, assay_device_api, info, assay_status (*)(assay_device*, assay_device_info*) noexcept);
FIELD(72, assay_device_api, stream_create, assay_status (*)(assay_device*, void**) noexcept);
FIELD(80, assay_device_api, stream_destroy, void (*)(assay_device*, void*) noexcept);
FIELD(88, assay_device_api, stream_synchronize, assay_status (*)(assay_device*, void*) noexcept);
FIELD(96, assay_device_api, event_create, assay_status (*)(assay_device*, assay_event**) noexcept);
FIELD(104, assay_device_api, event_destroy, void (*)(assay_device*, assay_event*) noexcept);
FIELD(112, assay_device_api, event_record, assay_status (*)(assay_device*, assay_event*, void*) noexcept);
FIELD(120, assay_device_api, event_synchronize, assay_status (*)(assay_device*, assay_event*) noexcept);
FIELD(128, assay_device_api, event_elapsed_ns,
      assay_status (*)(assay_device*, assay_event*, assay_event*, double*) noexcept);
FIELD(136, assay_device_api, allocate, assay_status (*)(assay_device*, size_t, void**) noexcept);
FIELD(144, assay_device_api, release, void (*)(assay_device*, void*) noexcept);
FIELD(152, assay_device_api, range_push, void (*)(assay_device*, const char*) noexcept);
FIELD(160, assay_device_api, range_pop, void (*)(assay_device*) noexcept);
FIELD(168, assay_device_api, get_extension, const void* (*)(const char*) noexcept);

SIZE(24, assay_profiler);
FIELD(0, assay_profiler, struct_size, size_t);
FIELD(8, assay_profiler, start, assay_status (*)(assay_device*) noexcept);
FIELD(16, assay_profiler, stop, assay_status (*)(assay_device*) noexcept);

SIZE(72, assay_traced_work);
FIELD(0, assay_traced_work, struct_size, size_t);
FIELD(8, assay_traced_work, name, const char*);
FIELD(16, assay_traced_work, start_ns, int64_t);
FIELD(24, assay_traced_work, end_ns, int64_t);
FIELD(32, assay_traced_work, bytes, uint64_t);
FIELD(40, assay_traced_work, grid, uint32_t[3]);
FIELD(52, assay_traced_work, block, uint32_t[3]);
FIELD(64, assay_traced_work, kind, assay_traced_kind);
FIELD(68, assay_traced_work, in_graph, int32_t);

SIZE(16, assay_cache);
FIELD(0, assay_cache, struct_size, size_t);
FIELD(8, assay_cache, flush, assay_status (*)(assay_device*, void*) noexcept);
SIZE(48, assay_kernel_trace);
FIELD(0, assay_kernel_trace, struct_size, size_t);
FIELD(8, assay_kernel_trace, begin, assay_status (*)(assay_device*) noexcept);
FIELD(16, assay_kernel_trace, anchor, assay_status (*)(assay_device*, void*) noexcept);
FIELD(24, assay_kernel_trace, end, assay_status (*)(assay_device*) noexcept);
FIELD(32, assay_kernel_trace, count, assay_status (*)(assay_device*, uint64_t*) noexcept);
FIELD(40, assay_kernel_trace, get, assay_status (*)(assay_device*, uint64_t, assay_traced_work*) noexcept);

SIZE(96, assay_telemetry_sample);
FIELD(0, assay_telemetry_sample, struct_size, size_t);
FIELD(8, assay_telemetry_sample, known, uint64_t);
FIELD(16, assay_telemetry_sample, throttle, uint64_t);
FIELD(24, assay_telemetry_sample, utilisation_percent, double);
FIELD(32, assay_telemetry_sample, utilisation_span_s, double);
FIELD(40, assay_telemetry_sample, sm_clock_mhz, double);
FIELD(48, assay_telemetry_sample, memory_clock_mhz, double);
FIELD(56, assay_telemetry_sample, power_w, double);
FIELD(64, assay_telemetry_sample, temperature_c, double);
FIELD(72, assay_telemetry_sample, energy_j, double);
FIELD(80, assay_telemetry_sample, foreign_processes, uint64_t);
FIELD(88, assay_telemetry_sample, foreign_memory_bytes, uint64_t);

SIZE(128, assay_telemetry_limits);
FIELD(0, assay_telemetry_limits, struct_size, size_t);
FIELD(8, assay_telemetry_limits, known, uint64_t);
FIELD(16, assay_telemetry_limits, max_sm_clock_mhz, double);
FIELD(24, assay_telemetry_limits, max_memory_clock_mhz, double);
FIELD(32, assay_telemetry_limits, application_sm_clock_mhz, double);
FIELD(40, assay_telemetry_limits, application_memory_clock_mhz, double);
FIELD(48, assay_telemetry_limits, power_w, double);
FIELD(56, assay_telemetry_limits, default_power_w, double);
FIELD(64, assay_telemetry_limits, driver, char[64]);

SIZE(48, assay_telemetry);
FIELD(0, assay_telemetry, struct_size, size_t);
FIELD(8, assay_telemetry, open, assay_status (*)(assay_device*, assay_telemetry_reader**) noexcept);
FIELD(16, assay_telemetry, close, void (*)(assay_telemetry_reader*) noexcept);
FIELD(24, assay_telemetry, note, const char* (*)(assay_telemetry_reader*) noexcept);
FIELD(32, assay_telemetry, limits, assay_status (*)(assay_telemetry_reader*, assay_telemetry_limits*) noexcept);
FIELD(40, assay_telemetry, sample,
      assay_status (*)(assay_telemetry_reader*, assay_telemetry_moment, assay_telemetry_sample*) noexcept);

static_assert(std::is_same_v<assay_status, int32_t> && std::is_same_v<assay_type, int32_t> &&
              std::is_same_v<assay_direction, int32_t> && std::is_same_v<assay_scope, int32_t> &&
              std::is_same_v<assay_stage, int32_t> && std::is_same_v<assay_memory_kind, int32_t>);

VALUE(ASSAY_ABI_MAJOR, 1u);
VALUE(ASSAY_ABI_MINOR, 3u);
VALUE(ASSAY_WORKLOAD_COLD_START, 1u);
VALUE(ASSAY_WORKLOAD_RANKS_COOPERATE, 2u);
VALUE(ASSAY_DEVICE_ABI_MAJOR, 1u);
VALUE(ASSAY_DEVICE_ABI_MINOR, 1u);

VALUE(ASSAY_OK, 0);
VALUE(ASSAY_INVALID_ARGUMENT, 1);
VALUE(ASSAY_UNSUPPORTED, 2);
VALUE(ASSAY_OUT_OF_MEMORY, 3);
VALUE(ASSAY_DEVICE_ERROR, 4);
VALUE(ASSAY_WRONG_RESULT, 5);
VALUE(ASSAY_INTERNAL, 6);
VALUE(ASSAY_COMM_ERROR, 7);
VALUE(ASSAY_VERIFIED_IN_PART, 8);

VALUE(ASSAY_TYPE_BOOL, 1);
VALUE(ASSAY_TYPE_INT, 2);
VALUE(ASSAY_TYPE_FLOAT, 3);
VALUE(ASSAY_TYPE_STRING, 4);

VALUE(ASSAY_PARAM_REQUIRED, 1u);
VALUE(ASSAY_PARAM_HAS_MIN, 2u);
VALUE(ASSAY_PARAM_HAS_MAX, 4u);
VALUE(ASSAY_PARAM_INPUT_PATH, 8u);
VALUE(ASSAY_PARAM_OUTPUT_PATH, 16u);

VALUE(ASSAY_LOWER_IS_BETTER, -1);
VALUE(ASSAY_NEITHER_IS_BETTER, 0);
VALUE(ASSAY_HIGHER_IS_BETTER, 1);
VALUE(ASSAY_PER_STEP, 0);
VALUE(ASSAY_PER_CASE, 1);

VALUE(ASSAY_ARITHMETIC_UNSTATED, 0);
VALUE(ASSAY_ARITHMETIC_FP64, 1);
VALUE(ASSAY_ARITHMETIC_FP32, 2);
VALUE(ASSAY_ARITHMETIC_TF32, 3);
VALUE(ASSAY_ARITHMETIC_FP16, 4);
VALUE(ASSAY_ARITHMETIC_BF16, 5);
VALUE(ASSAY_ARITHMETIC_FP8, 6);

VALUE(ASSAY_STAGE_SETUP, 0);
VALUE(ASSAY_STAGE_WARMUP, 1);
VALUE(ASSAY_STAGE_MEASURE, 2);
VALUE(ASSAY_STAGE_FINISH, 3);
VALUE(ASSAY_STAGE_VERIFY, 4);

VALUE(ASSAY_MEMORY_PARAMETERS, 0);
VALUE(ASSAY_MEMORY_GRADIENTS, 1);
VALUE(ASSAY_MEMORY_OPTIMIZER_STATE, 2);
VALUE(ASSAY_MEMORY_ACTIVATIONS, 3);
VALUE(ASSAY_MEMORY_WORKSPACE, 4);
VALUE(ASSAY_MEMORY_COMMUNICATION, 5);
VALUE(ASSAY_MEMORY_DATA, 6);
VALUE(ASSAY_MEMORY_KIND_COUNT, 7);

VALUE(ASSAY_TRACED_KERNEL, 0);
VALUE(ASSAY_TRACED_COPY, 1);
VALUE(ASSAY_TRACED_FILL, 2);
VALUE(ASSAY_TRACED_ANCHOR, 3);

VALUE(ASSAY_TELEMETRY_GPU_UTILISATION, 1u);
VALUE(ASSAY_TELEMETRY_CPU_UTILISATION, 2u);
VALUE(ASSAY_TELEMETRY_SM_CLOCK, 4u);
VALUE(ASSAY_TELEMETRY_MEMORY_CLOCK, 8u);
VALUE(ASSAY_TELEMETRY_POWER, 16u);
VALUE(ASSAY_TELEMETRY_TEMPERATURE, 32u);
VALUE(ASSAY_TELEMETRY_ENERGY, 64u);
VALUE(ASSAY_TELEMETRY_THROTTLE, 128u);
VALUE(ASSAY_TELEMETRY_FOREIGN_PROCESSES, 256u);
VALUE(ASSAY_TELEMETRY_FOREIGN_MEMORY, 512u);
VALUE(ASSAY_THROTTLE_IDLE, 1u);
VALUE(ASSAY_THROTTLE_APPLICATION_CLOCKS, 2u);
VALUE(ASSAY_THROTTLE_POWER_CAP, 4u);
VALUE(ASSAY_THROTTLE_HW_SLOWDOWN, 8u);
VALUE(ASSAY_THROTTLE_SYNC_BOOST, 16u);
VALUE(ASSAY_THROTTLE_THERMAL, 32u);
VALUE(ASSAY_THROTTLE_HW_THERMAL, 64u);
VALUE(ASSAY_THROTTLE_POWER_BRAKE, 128u);
VALUE(ASSAY_THROTTLE_DISPLAY_CLOCKS, 256u);
VALUE(ASSAY_TELEMETRY_BEGIN, 0);
VALUE(ASSAY_TELEMETRY_WITHIN, 1);
VALUE(ASSAY_TELEMETRY_END, 2);
VALUE(ASSAY_LIMIT_MAX_SM_CLOCK, 1u);
VALUE(ASSAY_LIMIT_MAX_MEMORY_CLOCK, 2u);
VALUE(ASSAY_LIMIT_APPLICATION_SM_CLOCK, 4u);
VALUE(ASSAY_LIMIT_APPLICATION_MEMORY_CLOCK, 8u);
VALUE(ASSAY_LIMIT_POWER, 16u);
VALUE(ASSAY_LIMIT_DEFAULT_POWER, 32u);

VALUE(ASSAY_ANY_DEVICE, 0u);
VALUE(ASSAY_DEVICE_CPU, 1u);
VALUE(ASSAY_DEVICE_CUDA, 2u);

// The names that are looked up at run time.
TEST(Layout, SymbolsAndExtensionsKeepTheirNames) {
  EXPECT_STREQ(ASSAY_ENTRY_SYMBOL, "assay_entry_v1");
  EXPECT_STREQ(ASSAY_DEVICE_SYMBOL, "assay_device_v1");
  EXPECT_STREQ(ASSAY_EXT_MEMORY, "assay.memory/1");
  EXPECT_STREQ(ASSAY_EXT_DEVICE, "assay.device/1");
  EXPECT_STREQ(ASSAY_EXT_CAPTURE, "assay.capture/1");
  EXPECT_STREQ(ASSAY_EXT_PROGRESS, "assay.progress/1");
  EXPECT_STREQ(ASSAY_EXT_MEMORY_PLAN, "assay.memory_plan/1");
  EXPECT_STREQ(ASSAY_EXT_PROFILER, "assay.profiler/1");
  EXPECT_STREQ(ASSAY_EXT_KERNEL_TRACE, "assay.kernel_trace/1");
  EXPECT_STREQ(ASSAY_EXT_CACHE, "assay.cache/1");
  EXPECT_STREQ(ASSAY_EXT_ALGORITHMS, "assay.algorithms/1");
  EXPECT_STREQ(ASSAY_EXT_TELEMETRY, "assay.telemetry/1");
}

// A symbol's number is the major version: the two rise together, or a host finds a plugin it does not understand.
TEST(Layout, SymbolsCarryTheMajorVersion) {
  EXPECT_EQ(std::string(ASSAY_ENTRY_SYMBOL), "assay_entry_v" + std::to_string(ASSAY_ABI_MAJOR));
  EXPECT_EQ(std::string(ASSAY_DEVICE_SYMBOL), "assay_device_v" + std::to_string(ASSAY_DEVICE_ABI_MAJOR));
}

// What a struct of another age holds is told by its size alone.
TEST(Layout, HasCountsAFieldOnlyWhenAllOfItIsThere) {
  assay_work work{};
  work.struct_size = sizeof(assay_work);
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, items));
  work.struct_size = offsetof(assay_work, arithmetic) - 1;
  EXPECT_FALSE(ASSAY_HAS(&work, assay_work, items));
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, bytes));
  work.struct_size = offsetof(assay_work, bytes);
  EXPECT_FALSE(ASSAY_HAS(&work, assay_work, bytes));
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, flops));
}
