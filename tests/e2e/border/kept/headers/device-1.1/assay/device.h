/* assay/device.h as version 1.1 of the border had it, without its comments. This file never changes. */
#ifndef ASSAY_DEVICE_H
#define ASSAY_DEVICE_H
#include <assay/abi.h>
#define ASSAY_DEVICE_ABI_MAJOR 1u
#define ASSAY_DEVICE_ABI_MINOR 1u
#ifdef __cplusplus
extern "C" {
#endif
typedef struct assay_device assay_device;
typedef struct assay_event assay_event;
typedef struct assay_device_info {
  size_t struct_size;
  uint64_t memory_total_bytes;
  uint64_t memory_free_bytes;
  int32_t compute_units;
  int32_t reserved;
  char name[256];
  char libraries[512];
  char bus_address[32];
  char uuid[96];
} assay_device_info;
typedef struct assay_device_api {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  const char* kind;
  const char* build;
  const char* (*error_text)(void)ASSAY_NOEXCEPT;
  assay_status (*count)(int32_t* out) ASSAY_NOEXCEPT;
  assay_status (*open)(int32_t ordinal, assay_device** out) ASSAY_NOEXCEPT;
  void (*close)(assay_device*) ASSAY_NOEXCEPT;
  assay_status (*info)(assay_device*, assay_device_info* out) ASSAY_NOEXCEPT;
  assay_status (*stream_create)(assay_device*, void** out_stream) ASSAY_NOEXCEPT;
  void (*stream_destroy)(assay_device*, void* stream) ASSAY_NOEXCEPT;
  assay_status (*stream_synchronize)(assay_device*, void* stream) ASSAY_NOEXCEPT;
  assay_status (*event_create)(assay_device*, assay_event** out) ASSAY_NOEXCEPT;
  void (*event_destroy)(assay_device*, assay_event*) ASSAY_NOEXCEPT;
  assay_status (*event_record)(assay_device*, assay_event*, void* stream) ASSAY_NOEXCEPT;
  assay_status (*event_synchronize)(assay_device*, assay_event*) ASSAY_NOEXCEPT;
  assay_status (*event_elapsed_ns)(assay_device*, assay_event* begin, assay_event* end, double* out) ASSAY_NOEXCEPT;
  assay_status (*allocate)(assay_device*, size_t bytes, void** out) ASSAY_NOEXCEPT;
  void (*release)(assay_device*, void* address) ASSAY_NOEXCEPT;
  void (*range_push)(assay_device*, const char* name) ASSAY_NOEXCEPT;
  void (*range_pop)(assay_device*) ASSAY_NOEXCEPT;
  const void* (*get_extension)(const char* id)ASSAY_NOEXCEPT;
} assay_device_api;
#define ASSAY_DEVICE_SYMBOL "assay_device_v1"
extern ASSAY_EXPORT const assay_device_api assay_device_v1;
#ifdef __cplusplus
}
#endif
#endif
