/* The border as its first headers had it, ABI 1.0, without their comments: what a plugin and a device backend of that
 * version were compiled against. This file never changes, and includes nothing of the SDK. */
#ifndef ABI_1_0_H
#define ABI_1_0_H
#include <stddef.h>
#include <stdint.h>

#define ASSAY_ABI_MAJOR 1u
#define ASSAY_ABI_MINOR 0u
#define ASSAY_EXPORT __attribute__((visibility("default")))

typedef int32_t assay_status;
#define ASSAY_OK 0
#define ASSAY_INVALID_ARGUMENT 1
#define ASSAY_UNSUPPORTED 2
#define ASSAY_OUT_OF_MEMORY 3
#define ASSAY_DEVICE_ERROR 4
#define ASSAY_WRONG_RESULT 5
#define ASSAY_INTERNAL 6

typedef struct assay_str {
  const char* data;
  size_t size;
} assay_str;

typedef int32_t assay_type;
#define ASSAY_TYPE_BOOL 1
#define ASSAY_TYPE_INT 2
#define ASSAY_TYPE_FLOAT 3
#define ASSAY_TYPE_STRING 4
#define ASSAY_PARAM_HAS_MIN 2u

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
#define ASSAY_NEITHER_IS_BETTER 0
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
} assay_metric;

typedef struct assay_work {
  size_t struct_size;
  uint64_t flops;
  uint64_t bytes;
  uint64_t items;
} assay_work;

typedef struct assay_config assay_config;
typedef struct assay_workload_self assay_workload_self;

typedef struct assay_host {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  void* impl;
  void (*log)(const struct assay_host*, int32_t level, assay_str text);
  void (*set_message)(const struct assay_host*, assay_status, assay_str text);
  assay_status (*get_bool)(const assay_config*, assay_str key, int32_t* out);
  assay_status (*get_int)(const assay_config*, assay_str key, int64_t* out);
  assay_status (*get_float)(const assay_config*, assay_str key, double* out);
  assay_status (*get_string)(const assay_config*, assay_str key, assay_str* out);
  const void* (*get_extension)(const struct assay_host*, const char* id);
} assay_host;

typedef struct assay_case {
  size_t struct_size;
  const assay_config* config;
  uint64_t seed;
  int32_t rank, rank_count;
  const char* device_kind;
} assay_case;

typedef int32_t assay_stage;

typedef struct assay_launch {
  size_t struct_size;
  void* impl;
  void* stream;
  int32_t device;
  assay_stage stage;
  uint64_t iteration;
  void (*phase_begin)(const struct assay_launch*, uint32_t phase);
  void (*phase_end)(const struct assay_launch*, uint32_t phase);
  void (*metric)(const struct assay_launch*, uint32_t metric, double value);
} assay_launch;

typedef int32_t assay_memory_kind;
#define ASSAY_MEMORY_DATA 6

typedef struct assay_memory {
  size_t struct_size;
  void* impl;
  assay_status (*allocate)(const struct assay_memory*, assay_memory_kind, size_t bytes, assay_str label, void** out);
  void (*release)(const struct assay_memory*, void* address);
  void (*report)(const struct assay_memory*, assay_memory_kind, int64_t delta_bytes, assay_str label);
  void (*moment)(const struct assay_memory*, assay_str name);
} assay_memory;
#define ASSAY_EXT_MEMORY "assay.memory/1"

typedef struct assay_device assay_device;
typedef struct assay_event assay_event;
typedef struct assay_device_access {
  size_t struct_size;
  const struct assay_device_api* api;
  assay_device* device;
} assay_device_access;
#define ASSAY_EXT_DEVICE "assay.device/1"

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
  assay_status (*create)(const assay_host*, const assay_case*, assay_workload_self** out);
  void (*destroy)(assay_workload_self*);
  assay_status (*setup)(assay_workload_self*, const assay_launch*);
  assay_status (*run)(assay_workload_self*, const assay_launch*);
  assay_status (*finish)(assay_workload_self*, const assay_launch*);
  assay_status (*verify)(assay_workload_self*, const assay_launch*);
  assay_status (*work)(const assay_workload_self*, assay_work* out);
  const void* (*get_extension)(const assay_workload_self*, const char* id);
} assay_workload;
#define ASSAY_DEVICE_CPU 1u

typedef struct assay_entry {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  uint32_t min_host_minor;
  uint32_t workload_count;
  const char* id;
  const char* version;
  const char* build;
  const assay_workload* const* workloads;
  assay_status (*init)(const assay_host*);
  void (*deinit)(void);
} assay_entry;
extern ASSAY_EXPORT const assay_entry assay_entry_v1;

/* assay/device.h */

#define ASSAY_DEVICE_ABI_MAJOR 1u
#define ASSAY_DEVICE_ABI_MINOR 0u

typedef struct assay_device_info {
  size_t struct_size;
  uint64_t memory_total_bytes;
  uint64_t memory_free_bytes;
  int32_t compute_units;
  int32_t reserved;
  char name[256];
  char libraries[512];
} assay_device_info;

typedef struct assay_device_api {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  const char* kind;
  const char* build;
  const char* (*error_text)(void);
  assay_status (*count)(int32_t* out);
  assay_status (*open)(int32_t ordinal, assay_device** out);
  void (*close)(assay_device*);
  assay_status (*info)(assay_device*, assay_device_info* out);
  assay_status (*stream_create)(assay_device*, void** out_stream);
  void (*stream_destroy)(assay_device*, void* stream);
  assay_status (*stream_synchronize)(assay_device*, void* stream);
  assay_status (*event_create)(assay_device*, assay_event** out);
  void (*event_destroy)(assay_device*, assay_event*);
  assay_status (*event_record)(assay_device*, assay_event*, void* stream);
  assay_status (*event_synchronize)(assay_device*, assay_event*);
  assay_status (*event_elapsed_ns)(assay_device*, assay_event* begin, assay_event* end, double* out);
  assay_status (*allocate)(assay_device*, size_t bytes, void** out);
  void (*release)(assay_device*, void* address);
#ifndef LEAST_DEVICE_TABLE /* the fields below are those that a host can do without */
  void (*range_push)(assay_device*, const char* name);
  void (*range_pop)(assay_device*);
  const void* (*get_extension)(const char* id);
#endif
} assay_device_api;
extern ASSAY_EXPORT const assay_device_api assay_device_v1;

#endif
