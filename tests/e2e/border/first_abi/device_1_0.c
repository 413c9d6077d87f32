/* A device backend of ABI 1.0, compiled against nothing newer: the memory and the clock of the machine. With
 * LEAST_DEVICE_TABLE its table ends with the last field that a host cannot do without; TOO_SHORT_BY bytes fewer are
 * said to be there. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi_1_0.h"

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
  if (out->struct_size < sizeof *out) return fail(ASSAY_INVALID_ARGUMENT, "struct_size is too small");
  out->memory_total_bytes = out->memory_free_bytes = (uint64_t)1 << 30;
  out->compute_units = 1;
  strcpy(out->name, "a device of version 1.0");
  strcpy(out->libraries, "none");
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

#ifndef LEAST_DEVICE_TABLE
static const void* get_extension(const char* id) {
  (void)id;
  return NULL;
}
#endif

const assay_device_api assay_device_v1 = {
    sizeof(assay_device_api) - TOO_SHORT_BY,
    ASSAY_DEVICE_ABI_MAJOR,
    ASSAY_DEVICE_ABI_MINOR,
    "cpu",
    "C of version 1.0",
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
#ifndef LEAST_DEVICE_TABLE
    NULL,
    NULL,
    get_extension,
#endif
};
