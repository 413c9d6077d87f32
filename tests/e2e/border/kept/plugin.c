/* A plugin in C that uses what its version of the border has. It is compiled against the kept headers of each minor,
 * and against those of today. The build may set NEWER            a plugin of the minor after that of the headers:
 * longer tables, flags that nobody knows yet MIN_HOST_MINOR   the oldest host that it says it can do with; without it
 * any
 *
 * Behind each of its tables stand numbers that are no pointers: a host that reads further than struct_size says shows.
 */
#include <assay/abi.h>
#include <stdlib.h>
#include <string.h>

#define NO_POINTER ((const void*)(uintptr_t)0x5a5a5a5a5a5a5a58u)
#define BEHIND \
  { NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER, NO_POINTER }
/* A table of a type, and what stands behind it. */
#define WITH_MORE(type)    \
  struct {                 \
    type known;            \
    const void* behind[8]; \
  }

#ifdef NEWER
#define MINOR (ASSAY_ABI_MINOR + 1u)
#define SIZE_OF(table) sizeof(table)
#define UNKNOWN_FLAG 0x40000000u
#else
#define MINOR ASSAY_ABI_MINOR
#define SIZE_OF(table) sizeof((table).known)
#define UNKNOWN_FLAG 0u
#endif
#ifndef MIN_HOST_MINOR
#define MIN_HOST_MINOR 0
#endif

struct assay_workload_self {
  const assay_host* host;
  const assay_memory* memory;
  int64_t n;
  double factor;
  int32_t is_checked, is_checked_in_part, prepares;
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
  made.prepares = 1;
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
#if ASSAY_ABI_MINOR >= 2
  if (ASSAY_HAS(c, assay_case, prepare)) made.prepares = c->prepare;
#endif
#if ASSAY_ABI_MINOR >= 3
  if (host->get_bool(c->config, text_of("in_part"), &made.is_checked_in_part))
    return fail(host, ASSAY_INTERNAL, "a parameter is missing");
#endif
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

static assay_status take_memory(assay_workload_self* self) {
  void* address = NULL;
  const size_t bytes = (size_t)self->n * sizeof(float);
  const assay_status status = self->memory->allocate(self->memory, ASSAY_MEMORY_DATA, bytes, text_of("y"), &address);
  if (status != ASSAY_OK) return status;
  self->y = address;
  memset(self->y, 0, bytes);
  self->memory->moment(self->memory, text_of("after_setup"));
  return ASSAY_OK;
}

static assay_status setup(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  self->host->log(self->host, 1, text_of("the plugin is set up"));
  return self->prepares ? take_memory(self) : ASSAY_OK;
}

static assay_status run(assay_workload_self* self, const assay_launch* launch) {
  launch->phase_begin(launch, 0);
  const assay_status status = self->y ? ASSAY_OK : take_memory(self);
  for (int64_t i = 0; status == ASSAY_OK && i < self->n; ++i)
    self->y[i] += (float)self->factor * (self->is_doubled ? 2.0F : 1.0F);
  launch->phase_end(launch, 0);
  ++self->steps;
  launch->metric(launch, 0, (double)self->steps);
  return status;
}

static assay_status finish(assay_workload_self* self, const assay_launch* launch) {
  launch->metric(launch, 1, (double)self->y[self->n - 1]);
#if ASSAY_ABI_MINOR >= 1
  launch->metric(launch, 2, (double)(self->steps % 2));
#endif
  return ASSAY_OK;
}

static assay_status verify(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  if (!self->is_checked) return fail(self->host, ASSAY_UNSUPPORTED, "it was asked not to");
  const double expected = (double)self->steps * self->factor * (self->is_doubled ? 2 : 1);
  if ((double)self->y[self->n - 1] != expected)
    return fail(self->host, ASSAY_WRONG_RESULT, "the last element is wrong");
#if ASSAY_ABI_MINOR >= 3
  if (self->is_checked_in_part)
    return fail(self->host, self->host->abi_minor >= 3 ? ASSAY_VERIFIED_IN_PART : ASSAY_UNSUPPORTED,
                "the last element alone");
#endif
  return fail(self->host, ASSAY_OK, "the last element is the sum of all steps");
}

static assay_status work(const assay_workload_self* self, assay_work* out) {
  out->flops = (uint64_t)self->n;
  out->bytes = 8 * (uint64_t)self->n;
  out->items = (uint64_t)self->n;
#if ASSAY_ABI_MINOR >= 3
  if (ASSAY_HAS(out, assay_work, arithmetic)) out->arithmetic = ASSAY_ARITHMETIC_FP32;
#endif
  return ASSAY_OK;
}

#if ASSAY_ABI_MINOR >= 3
static assay_status measure_peak(assay_workload_self* self, const assay_launch* launch, assay_peak* out) {
  (void)launch;
  out->flops_per_s = 1e15;
  out->bytes_per_s = 1e12;
  return fail(self->host, ASSAY_OK, "made up");
}
static const WITH_MORE(assay_peak_probe) probe = {{SIZE_OF(probe), measure_peak}, BEHIND};
#endif
static const void* get_extension(const assay_workload_self* self, const char* id) {
  (void)self;
#if ASSAY_ABI_MINOR >= 3
  if (strcmp(id, ASSAY_EXT_PEAK) == 0) return &probe;
#endif
  return strcmp(id, "assay.nobody_asks_for_this/1") == 0 ? NO_POINTER : NULL;
}

static const char* const ways[] = {"once", "twice"};
static const WITH_MORE(assay_param) n = {{SIZE_OF(n), "n", "elements", "length", ASSAY_TYPE_INT,
                                          ASSAY_PARAM_HAS_MIN | UNKNOWN_FLAG, 64, 0, NULL, 1, 0, NULL, 0},
                                         BEHIND},
                                    factor = {{SIZE_OF(factor), "factor", NULL, "what a step adds", ASSAY_TYPE_FLOAT, 0,
                                               0, 0.5, NULL, 0, 0, NULL, 0},
                                              BEHIND},
                                    checked = {{SIZE_OF(checked), "checked", NULL, "whether it verifies",
                                                ASSAY_TYPE_BOOL, 0, 1, 0, NULL, 0, 0, NULL, 0},
                                               BEHIND},
                                    how = {{SIZE_OF(how), "how", NULL, "how often a step adds", ASSAY_TYPE_STRING, 0, 0,
                                            0, "once", 0, 0, ways, 2},
                                           BEHIND};
#if ASSAY_ABI_MINOR >= 2
static const char* const sizes[] = {"small", "large"};
static const WITH_MORE(assay_param) size = {
    {SIZE_OF(size), "size", NULL, "a length by its name", ASSAY_TYPE_STRING, 0, 0, 0, "small", 0, 0, sizes, 2}, BEHIND};
static const WITH_MORE(assay_preset) large = {{SIZE_OF(large), "size", "large", NULL, NULL, NULL, "n", 4096, 0, NULL},
                                              BEHIND};
static const assay_preset* const presets[] = {&large.known};
#endif
#if ASSAY_ABI_MINOR >= 3
static const WITH_MORE(assay_param) in_part = {
    {SIZE_OF(in_part), "in_part", NULL, "verifies a part", ASSAY_TYPE_BOOL, 0, 0, 0, NULL, 0, 0, NULL, 0}, BEHIND};
#endif
static const assay_param* const params[] = {
    &n.known,       &factor.known, &checked.known, &how.known,
#if ASSAY_ABI_MINOR >= 2
    &size.known,
#endif
#if ASSAY_ABI_MINOR >= 3
    &in_part.known,
#endif
};

static const WITH_MORE(assay_metric) steps_so_far = {{SIZE_OF(steps_so_far), "steps_so_far", NULL, "steps so far",
                                                      ASSAY_NEITHER_IS_BETTER, ASSAY_PER_STEP},
                                                     BEHIND},
                                     last = {{SIZE_OF(last), "last", NULL, "the last element", ASSAY_NEITHER_IS_BETTER,
                                              ASSAY_PER_CASE},
                                             BEHIND};
#if ASSAY_ABI_MINOR >= 1
static const char* const parities[] = {"even", "odd"};
static const WITH_MORE(assay_metric) parity = {
    {SIZE_OF(parity), "parity", NULL, "of the number of steps", ASSAY_NEITHER_IS_BETTER, ASSAY_PER_CASE, parities, 2},
    BEHIND};
#endif
static const assay_metric* const metrics[] = {
    &steps_so_far.known,
    &last.known,
#if ASSAY_ABI_MINOR >= 1
    &parity.known,
#endif
};
static const char* const phases[] = {"add"};

static const WITH_MORE(assay_workload) workload = {
    {
        SIZE_OF(workload),
        "border_plugin",
        "adds, and uses what its version of the border has",
        "elements",
        params,
        metrics,
        phases,
        sizeof params / sizeof params[0],
        sizeof metrics / sizeof metrics[0],
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
#if ASSAY_ABI_MINOR >= 2
        presets,
        1,
        ASSAY_WORKLOAD_COLD_START | UNKNOWN_FLAG,
#endif
    },
    BEHIND,
};
static const assay_workload* const workloads[] = {&workload.known};

static assay_status init(const assay_host* host) {
  return host->abi_major == ASSAY_ABI_MAJOR ? ASSAY_OK : ASSAY_UNSUPPORTED;
}
static void deinit(void) {}

/* By the symbol's name, as the header declares it without anything behind it. */
typedef WITH_MORE(assay_entry) entry_with_more;
extern ASSAY_EXPORT const entry_with_more entry __asm__("assay_entry_v1");
const entry_with_more entry = {
    {SIZE_OF(entry), ASSAY_ABI_MAJOR, MINOR, MIN_HOST_MINOR, 1, "org.assay.test.border_plugin", "1.0.0", "C", workloads,
     init, deinit},
    BEHIND,
};
