/* assay/abi.h as version 1.4 of the border had it, without its comments. This file never changes. */
#ifndef ASSAY_ABI_H
#define ASSAY_ABI_H
#include <stddef.h>
#include <stdint.h>
#define ASSAY_ABI_MAJOR 1u
#define ASSAY_ABI_MINOR 4u
#if defined(_WIN32)
#define ASSAY_EXPORT __declspec(dllexport)
#else
#define ASSAY_EXPORT __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define ASSAY_NOEXCEPT noexcept
extern "C" {
#else
#define ASSAY_NOEXCEPT
#endif
#define ASSAY_HAS(p, type, field) ((p)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))
typedef int32_t assay_status;
#define ASSAY_OK 0
#define ASSAY_INVALID_ARGUMENT 1
#define ASSAY_UNSUPPORTED 2
#define ASSAY_OUT_OF_MEMORY 3
#define ASSAY_DEVICE_ERROR 4
#define ASSAY_WRONG_RESULT 5
#define ASSAY_INTERNAL 6
#define ASSAY_COMM_ERROR 7
#define ASSAY_VERIFIED_IN_PART 8
typedef struct assay_str {
  const char* data;
  size_t size;
} assay_str;
typedef int32_t assay_type;
#define ASSAY_TYPE_BOOL 1
#define ASSAY_TYPE_INT 2
#define ASSAY_TYPE_FLOAT 3
#define ASSAY_TYPE_STRING 4
#define ASSAY_PARAM_REQUIRED 1u
#define ASSAY_PARAM_HAS_MIN 2u
#define ASSAY_PARAM_HAS_MAX 4u
#define ASSAY_PARAM_INPUT_PATH 8u
#define ASSAY_PARAM_OUTPUT_PATH 16u
#define ASSAY_PARAM_WORDS 32u
typedef struct assay_param {
  size_t struct_size;
  const char* name;
  const char* unit;
  const char* help;
  assay_type type;
  uint32_t flags;
  int64_t default_int;
  double default_float;
  const char* default_string;
  double min, max;
  const char* const* choices;
  uint64_t choice_count;
} assay_param;
typedef int32_t assay_direction;
#define ASSAY_LOWER_IS_BETTER (-1)
#define ASSAY_NEITHER_IS_BETTER 0
#define ASSAY_HIGHER_IS_BETTER 1
typedef int32_t assay_scope;
#define ASSAY_PER_STEP 0
#define ASSAY_PER_CASE 1
typedef struct assay_metric {
  size_t struct_size;
  const char* name;
  const char* unit;
  const char* help;
  assay_direction direction;
  assay_scope scope;
  const char* const* words;
  uint64_t word_count;
} assay_metric;
typedef struct assay_preset {
  size_t struct_size;
  const char* when;
  const char* choice;
  const char* also_when;
  const char* also_choice;
  const char* device_kind;
  const char* param;
  int64_t int_value;
  double float_value;
  const char* string_value;
} assay_preset;
typedef int32_t assay_arithmetic;
#define ASSAY_ARITHMETIC_UNSTATED 0
#define ASSAY_ARITHMETIC_FP64 1
#define ASSAY_ARITHMETIC_FP32 2
#define ASSAY_ARITHMETIC_TF32 3
#define ASSAY_ARITHMETIC_FP16 4
#define ASSAY_ARITHMETIC_BF16 5
#define ASSAY_ARITHMETIC_FP8 6
typedef struct assay_work {
  size_t struct_size;
  uint64_t flops;
  uint64_t bytes;
  uint64_t items;
  assay_arithmetic arithmetic;
  int32_t reserved;
} assay_work;
typedef struct assay_config assay_config;
typedef struct assay_workload_self assay_workload_self;
typedef struct assay_host {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  void* impl;
  void (*log)(const struct assay_host*, int32_t level, assay_str text) ASSAY_NOEXCEPT;
  void (*set_message)(const struct assay_host*, assay_status, assay_str text) ASSAY_NOEXCEPT;
  assay_status (*get_bool)(const assay_config*, assay_str key, int32_t* out) ASSAY_NOEXCEPT;
  assay_status (*get_int)(const assay_config*, assay_str key, int64_t* out) ASSAY_NOEXCEPT;
  assay_status (*get_float)(const assay_config*, assay_str key, double* out) ASSAY_NOEXCEPT;
  assay_status (*get_string)(const assay_config*, assay_str key, assay_str* out) ASSAY_NOEXCEPT;
  const void* (*get_extension)(const struct assay_host*, const char* id)ASSAY_NOEXCEPT;
} assay_host;
typedef struct assay_case {
  size_t struct_size;
  const assay_config* config;
  uint64_t seed;
  int32_t rank, rank_count;
  const char* device_kind;
  int32_t prepare;
  int32_t reserved;
} assay_case;
typedef int32_t assay_stage;
#define ASSAY_STAGE_SETUP 0
#define ASSAY_STAGE_WARMUP 1
#define ASSAY_STAGE_MEASURE 2
#define ASSAY_STAGE_FINISH 3
#define ASSAY_STAGE_VERIFY 4
typedef struct assay_launch {
  size_t struct_size;
  void* impl;
  void* stream;
  int32_t device;
  assay_stage stage;
  uint64_t iteration;
  void (*phase_begin)(const struct assay_launch*, uint32_t phase) ASSAY_NOEXCEPT;
  void (*phase_end)(const struct assay_launch*, uint32_t phase) ASSAY_NOEXCEPT;
  void (*metric)(const struct assay_launch*, uint32_t metric, double value) ASSAY_NOEXCEPT;
} assay_launch;
typedef int32_t assay_memory_kind;
#define ASSAY_MEMORY_PARAMETERS 0
#define ASSAY_MEMORY_GRADIENTS 1
#define ASSAY_MEMORY_OPTIMIZER_STATE 2
#define ASSAY_MEMORY_ACTIVATIONS 3
#define ASSAY_MEMORY_WORKSPACE 4
#define ASSAY_MEMORY_COMMUNICATION 5
#define ASSAY_MEMORY_DATA 6
#define ASSAY_MEMORY_KIND_COUNT 7
typedef struct assay_memory {
  size_t struct_size;
  void* impl;
  assay_status (*allocate)(const struct assay_memory*, assay_memory_kind, size_t bytes, assay_str label,
                           void** out) ASSAY_NOEXCEPT;
  void (*release)(const struct assay_memory*, void* address) ASSAY_NOEXCEPT;
  void (*report)(const struct assay_memory*, assay_memory_kind, int64_t delta_bytes, assay_str label) ASSAY_NOEXCEPT;
  void (*moment)(const struct assay_memory*, assay_str name) ASSAY_NOEXCEPT;
} assay_memory;
#define ASSAY_EXT_MEMORY "assay.memory/1"
struct assay_device;
struct assay_device_api;
typedef struct assay_device_access {
  size_t struct_size;
  const struct assay_device_api* api;
  struct assay_device* device;
} assay_device_access;
#define ASSAY_EXT_DEVICE "assay.device/1"
typedef struct assay_memory_plan {
  size_t struct_size;
  void* impl;
  void (*buffer)(const struct assay_memory_plan*, void* arena, size_t offset, size_t bytes, int32_t first_moment,
                 int32_t last_moment, assay_str name) ASSAY_NOEXCEPT;
} assay_memory_plan;
#define ASSAY_EXT_MEMORY_PLAN "assay.memory_plan/1"
typedef struct assay_progress {
  size_t struct_size;
  void* impl;
  void (*report)(const struct assay_progress*, int64_t done, int64_t total) ASSAY_NOEXCEPT;
} assay_progress;
#define ASSAY_EXT_PROGRESS "assay.progress/1"
typedef struct assay_capture {
  size_t struct_size;
  void* impl;
  assay_status (*begin)(const struct assay_capture*) ASSAY_NOEXCEPT;
  assay_status (*end)(const struct assay_capture*) ASSAY_NOEXCEPT;
  void (*replayed)(const struct assay_capture*) ASSAY_NOEXCEPT;
} assay_capture;
#define ASSAY_EXT_CAPTURE "assay.capture/1"
typedef struct assay_peak {
  size_t struct_size;
  double flops_per_s;
  double bytes_per_s;
} assay_peak;
typedef struct assay_peak_probe {
  size_t struct_size;
  assay_status (*measure)(assay_workload_self*, const assay_launch*, assay_peak* out) ASSAY_NOEXCEPT;
} assay_peak_probe;
#define ASSAY_EXT_PEAK "assay.peak/1"
typedef struct assay_silence {
  size_t struct_size;
  assay_status (*set)(assay_workload_self*, int32_t silent) ASSAY_NOEXCEPT;
} assay_silence;
#define ASSAY_EXT_SILENCE "assay.silence/1"
typedef int32_t assay_operation_kind;
#define ASSAY_OPERATION_PRODUCT 0
#define ASSAY_OPERATION_ATTENTION 1
#define ASSAY_OPERATION_OTHER 2
#define ASSAY_OPERATION_COLLECTIVE 3
typedef struct assay_planned_operation {
  size_t struct_size;
  const char* name;
  assay_operation_kind kind;
  assay_arithmetic arithmetic;
  uint64_t flops;
  uint64_t bytes;
} assay_planned_operation;
typedef struct assay_plan {
  size_t struct_size;
  void* impl;
  void (*memory)(const struct assay_plan*, assay_memory_kind, int64_t delta_bytes) ASSAY_NOEXCEPT;
  void (*operation)(const struct assay_plan*, const assay_planned_operation*) ASSAY_NOEXCEPT;
} assay_plan;
typedef struct assay_planner {
  size_t struct_size;
  assay_status (*plan)(const assay_workload_self*, const assay_plan*) ASSAY_NOEXCEPT;
} assay_planner;
#define ASSAY_EXT_PLAN "assay.plan/1"
typedef struct assay_names {
  size_t struct_size;
  void* impl;
  assay_status (*param)(const struct assay_names*, const assay_config*, uint64_t place, assay_str* out) ASSAY_NOEXCEPT;
  assay_status (*phase)(const struct assay_names*, assay_str name, uint32_t* out) ASSAY_NOEXCEPT;
  assay_status (*metric)(const struct assay_names*, const assay_metric* row, uint32_t* out) ASSAY_NOEXCEPT;
} assay_names;
#define ASSAY_EXT_NAMES "assay.names/1"
typedef struct assay_workload {
  size_t struct_size;
  const char* id;
  const char* summary;
  const char* item_unit;
  const assay_param* const* params;
  const assay_metric* const* metrics;
  const char* const* phases;
  uint32_t param_count, metric_count, phase_count;
  uint32_t device_flags;
  assay_status (*create)(const assay_host*, const assay_case*, assay_workload_self** out) ASSAY_NOEXCEPT;
  void (*destroy)(assay_workload_self*) ASSAY_NOEXCEPT;
  assay_status (*setup)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  assay_status (*run)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  assay_status (*finish)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  assay_status (*verify)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  assay_status (*work)(const assay_workload_self*, assay_work* out) ASSAY_NOEXCEPT;
  const void* (*get_extension)(const assay_workload_self*, const char* id)ASSAY_NOEXCEPT;
  const assay_preset* const* presets;
  uint32_t preset_count;
  uint32_t flags;
} assay_workload;
#define ASSAY_WORKLOAD_COLD_START 1u
#define ASSAY_WORKLOAD_RANKS_COOPERATE 2u
#define ASSAY_WORKLOAD_OPEN 4u
#define ASSAY_ANY_DEVICE 0u
#define ASSAY_DEVICE_CPU 1u
#define ASSAY_DEVICE_CUDA 2u
typedef struct assay_entry {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t min_host_minor;
  uint32_t workload_count;
  const char* id;
  const char* version;
  const char* build;
  const assay_workload* const* workloads;
  assay_status (*init)(const assay_host*) ASSAY_NOEXCEPT;
  void (*deinit)(void) ASSAY_NOEXCEPT;
} assay_entry;
#define ASSAY_ENTRY_SYMBOL "assay_entry_v1"
extern ASSAY_EXPORT const assay_entry assay_entry_v1;
#ifdef __cplusplus
}
#endif
#endif
