/* A plugin of ABI 1.0, compiled against nothing newer: it uses all that a host of that version offered. */
#include <stdlib.h>
#include <string.h>

#include "abi_1_0.h"

struct assay_workload_self {
  const assay_host* host;
  const assay_memory* memory;
  int64_t n;
  double factor;
  int32_t is_checked;
  int is_doubled;
  float* y;
  uint64_t steps;
};

static assay_str text_of(const char* text) {
  assay_str view = {text, strlen(text)};
  return view;
}
static assay_status fail(const assay_host* host, assay_status status, const char* text) {
  host->set_message(host, status, text_of(text));
  return status;
}

static assay_status create(const assay_host* host, const assay_case* c, assay_workload_self** out) {
  assay_workload_self made = {0};
  assay_str how;
  made.host = host;
  made.memory = host->get_extension(host, ASSAY_EXT_MEMORY);
  const assay_device_access* access = host->get_extension(host, ASSAY_EXT_DEVICE);
  if (!made.memory || !access || !access->api || !access->device)
    return fail(host, ASSAY_UNSUPPORTED, "the host offers no memory or no device");
  if (host->get_extension(host, "assay.nothing/1")) return fail(host, ASSAY_INTERNAL, "the host offers nothing");
  if (host->get_int(c->config, text_of("n"), &made.n) || host->get_float(c->config, text_of("factor"), &made.factor) ||
      host->get_bool(c->config, text_of("checked"), &made.is_checked) ||
      host->get_string(c->config, text_of("how"), &how))
    return fail(host, ASSAY_INTERNAL, "a parameter is missing");
  made.is_doubled = how.size == strlen("twice") && memcmp(how.data, "twice", how.size) == 0;
  if (c->rank != 0 || c->rank_count != 1 || strcmp(c->device_kind, "cpu") != 0)
    return fail(host, ASSAY_INTERNAL, "this is another case than the one that was asked for");
  assay_workload_self* self = malloc(sizeof *self);
  if (!self) return fail(host, ASSAY_OUT_OF_MEMORY, "no memory of the host");
  *self = made;
  *out = self;
  return ASSAY_OK;
}

static void destroy(assay_workload_self* self) {
  if (self->y) self->memory->release(self->memory, self->y);
  free(self);
}

static assay_status setup(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  void* address = NULL;
  const size_t bytes = (size_t)self->n * sizeof(float);
  const assay_status status = self->memory->allocate(self->memory, ASSAY_MEMORY_DATA, bytes, text_of("y"), &address);
  if (status != ASSAY_OK) return status;
  self->y = address;
  memset(self->y, 0, bytes);
  self->memory->moment(self->memory, text_of("after_setup"));
  self->host->log(self->host, 1, text_of("a plugin of version 1.0 is set up"));
  return ASSAY_OK;
}

static assay_status run(assay_workload_self* self, const assay_launch* launch) {
  launch->phase_begin(launch, 0);
  for (int64_t i = 0; i < self->n; ++i) self->y[i] += (float)self->factor * (self->is_doubled ? 2.0F : 1.0F);
  launch->phase_end(launch, 0);
  ++self->steps;
  launch->metric(launch, 0, (double)self->steps);
  return ASSAY_OK;
}

static assay_status finish(assay_workload_self* self, const assay_launch* launch) {
  launch->metric(launch, 1, (double)self->y[self->n - 1]);
  return ASSAY_OK;
}

static assay_status verify(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  if (!self->is_checked) return fail(self->host, ASSAY_UNSUPPORTED, "it was asked not to");
  const double expected = (double)self->steps * self->factor * (self->is_doubled ? 2 : 1);
  if ((double)self->y[self->n - 1] != expected)
    return fail(self->host, ASSAY_WRONG_RESULT, "the last element is wrong");
  return fail(self->host, ASSAY_OK, "the last element is the sum of all steps");
}

static assay_status work(const assay_workload_self* self, assay_work* out) {
  out->flops = (uint64_t)self->n;
  out->bytes = 8 * (uint64_t)self->n;
  out->items = (uint64_t)self->n;
  return ASSAY_OK;
}

static const void* get_extension(const assay_workload_self* self, const char* id) {
  (void)self, (void)id;
  return NULL;
}

static const char* const ways[] = {"once", "twice"};
static const assay_param n = {sizeof n, "n", "elements", "length", ASSAY_TYPE_INT, ASSAY_PARAM_HAS_MIN, 64, 0, NULL,
                              1,        0,   NULL,       0};
static const assay_param factor = {
    sizeof factor, "factor", NULL, "what a step adds", ASSAY_TYPE_FLOAT, 0, 0, 0.5, NULL, 0, 0, NULL, 0};
static const assay_param checked = {
    sizeof checked, "checked", NULL, "whether it verifies", ASSAY_TYPE_BOOL, 0, 1, 0, NULL, 0, 0, NULL, 0};
static const assay_param how = {sizeof how, "how", NULL, "how often a step adds", ASSAY_TYPE_STRING, 0, 0, 0, "once", 0,
                                0,          ways,  2};
static const assay_param* const params[] = {&n, &factor, &checked, &how};
static const assay_metric steps_so_far = {sizeof steps_so_far, "steps_so_far",          NULL,
                                          "steps so far",      ASSAY_NEITHER_IS_BETTER, ASSAY_PER_STEP};
static const assay_metric last = {sizeof last,   "last", NULL, "the last element", ASSAY_NEITHER_IS_BETTER,
                                  ASSAY_PER_CASE};
static const assay_metric* const metrics[] = {&steps_so_far, &last};
static const char* const phases[] = {"add"};

static const assay_workload workload = {
    sizeof workload,
    "plugin_1_0",
    "adds, as the first plugins did",
    "elements",
    params,
    metrics,
    phases,
    4,
    2,
    1,
    ASSAY_DEVICE_CPU,
    create,
    destroy,
    setup,
    run,
    finish,
    verify,
    work,
    get_extension,
};
static const assay_workload* const workloads[] = {&workload};

static assay_status init(const assay_host* host) {
  return host->abi_major == ASSAY_ABI_MAJOR ? ASSAY_OK : ASSAY_UNSUPPORTED;
}
static void deinit(void) {}

const assay_entry assay_entry_v1 = {
    sizeof(assay_entry),
    ASSAY_ABI_MAJOR,
    ASSAY_ABI_MINOR,
    0,
    1,
    "org.assay.test.plugin_1_0",
    "1.0.0",
    "C of version 1.0",
    workloads,
    init,
    deinit,
};
