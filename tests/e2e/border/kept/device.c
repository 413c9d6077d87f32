/* A device backend in C, of the minor of the headers that it is compiled against: the memory and the clock of the
 * machine. The build may set
 *   NEWER          a backend of the minor after that of the headers: longer tables
 *   NEWER_MAJOR    one of the next major version
 *   LEAST_TABLE    its table ends with the last field that a host cannot do without, less TOO_SHORT_BY bytes
 *
 * Behind its tables stand numbers that are no pointers, as in plugin.c. */
#define _POSIX_C_SOURCE 200809L
#include <assay/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef NEWER
#include <assay/cache.h>
#endif

#define NO_POINTER ((const void*)(uintptr_t)0x5a5a5a5a5a5a5a58u)
#define BEHIND \
  { NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER }
#define WITH_MORE(type)    \
  struct {                 \
    type known;            \
    const void* behind[8]; \
  }

#ifdef NEWER
#define MINOR (ASSAY_DEVICE_ABI_MINOR + 1u)
#else
#define MINOR ASSAY_DEVICE_ABI_MINOR
#endif

#ifndef TOO_SHORT_BY
#define TOO_SHORT_BY 0
#endif

struct assay_device {
  int32_t ordinal;
};
struct assay_event {
  struct timespec at;
};

static const char* last_error = "";

static const char* error_text(void) { return last_error; }
static assay_status fail(assay_status status, const char* text) {
  last_error = text;
  return status;
}

static assay_status count(int32_t* out) {
  *out = 1;
  return ASSAY_OK;
}
static assay_status open_device(int32_t ordinal, assay_device** out) {
  *out = malloc(sizeof **out);
  if (!*out) return fail(ASSAY_OUT_OF_MEMORY, "no memory for a device");
  (*out)->ordinal = ordinal;
  return ASSAY_OK;
}
static void close_device(assay_device* device) { free(device); }
static assay_status info(assay_device* device, assay_device_info* out) {
  (void)device;
  if (!ASSAY_HAS(out, assay_device_info, libraries)) return fail(ASSAY_INVALID_ARGUMENT, "struct_size is too small");
  out->memory_total_bytes = out->memory_free_bytes = (uint64_t)1 << 30;
  out->compute_units = 1;
  out->reserved = 0;
  snprintf(out->name, sizeof out->name, "a device of version 1.%u", MINOR);
  strcpy(out->libraries, "none");
#if ASSAY_DEVICE_ABI_MINOR >= 1
  if (ASSAY_HAS(out, assay_device_info, bus_address)) strcpy(out->bus_address, "0000:00:01.0");
  if (ASSAY_HAS(out, assay_device_info, uuid)) strcpy(out->uuid, "DEVICE-1");
#endif
  return ASSAY_OK;
}

static assay_status stream_create(assay_device* device, void** out) {
  (void)device;
  *out = NULL;
  return ASSAY_OK;
}
static void stream_destroy(assay_device* device, void* stream) { (void)device, (void)stream; }
static assay_status stream_synchronize(assay_device* device, void* stream) {
  (void)device, (void)stream;
  return ASSAY_OK;
}

static assay_status event_create(assay_device* device, assay_event** out) {
  (void)device;
  *out = calloc(1, sizeof **out);
  return *out ? ASSAY_OK : fail(ASSAY_OUT_OF_MEMORY, "no memory for an event");
}
static void event_destroy(assay_device* device, assay_event* event) {
  (void)device;
  free(event);
}
static assay_status event_record(assay_device* device, assay_event* event, void* stream) {
  (void)device, (void)stream;
  return clock_gettime(CLOCK_MONOTONIC, &event->at) == 0 ? ASSAY_OK : fail(ASSAY_DEVICE_ERROR, "no clock");
}
static assay_status event_synchronize(assay_device* device, assay_event* event) {
  (void)device, (void)event;
  return ASSAY_OK;
}
static assay_status event_elapsed_ns(assay_device* device, assay_event* begin, assay_event* end, double* out) {
  (void)device;
  *out = 1e9 * (double)(end->at.tv_sec - begin->at.tv_sec) + (double)(end->at.tv_nsec - begin->at.tv_nsec);
  return ASSAY_OK;
}

static assay_status allocate(assay_device* device, size_t bytes, void** out) {
  (void)device;
  *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*out) return fail(ASSAY_OUT_OF_MEMORY, "no memory");
  memset(*out, 0, bytes);
  return ASSAY_OK;
}
static void release(assay_device* device, void* address) {
  (void)device;
  free(address);
}

#ifdef NEWER
static assay_status flush(assay_device* device, void* stream) {
  (void)device, (void)stream;
  return ASSAY_OK;
}
static const WITH_MORE(assay_cache) cache = {{sizeof cache, flush}, BEHIND};
#endif
#ifndef LEAST_TABLE
static const void* get_extension(const char* id) {
#ifdef NEWER
  if (strcmp(id, ASSAY_EXT_CACHE) == 0) return &cache;
#endif
  return strcmp(id, "assay.nobody_asks_for_this/1") == 0 ? NO_POINTER : NULL;
}
#endif

typedef WITH_MORE(assay_device_api) api_with_more;
#ifdef NEWER_MAJOR
#define MAJOR (ASSAY_DEVICE_ABI_MAJOR + 1u)
extern ASSAY_EXPORT const api_with_more api __asm__("assay_device_v2");
#else
#define MAJOR ASSAY_DEVICE_ABI_MAJOR
extern ASSAY_EXPORT const api_with_more api __asm__("assay_device_v1");
#endif

#if defined(NEWER)
#define SIZE sizeof(api_with_more)
#elif defined(LEAST_TABLE)
#define SIZE (offsetof(assay_device_api, range_push) - TOO_SHORT_BY)
#else
#define SIZE sizeof(assay_device_api)
#endif

#ifdef LEAST_TABLE /* no function stands where the table does not reach */
#define RANGE_PUSH ((void (*)(assay_device*, const char*))(uintptr_t)0x5a5a5a5a5a5a5a58u)
#define RANGE_POP ((void (*)(assay_device*))(uintptr_t)0x5a5a5a5a5a5a5a58u)
#define GET_EXTENSION ((const void* (*)(const char*))(uintptr_t)0x5a5a5a5a5a5a5a58u)
#else
#define RANGE_PUSH NULL
#define RANGE_POP NULL
#define GET_EXTENSION get_extension
#endif

const api_with_more api = {
    {
        SIZE,
        MAJOR,
        MINOR,
        "cpu",
        "C",
        error_text,
        count,
        open_device,
        close_device,
        info,
        stream_create,
        stream_destroy,
        stream_synchronize,
        event_create,
        event_destroy,
        event_record,
        event_synchronize,
        event_elapsed_ns,
        allocate,
        release,
        RANGE_PUSH,
        RANGE_POP,
        GET_EXTENSION,
    },
    BEHIND,
};
