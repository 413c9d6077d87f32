/* my_plugin: y += a x over one vector, in C11 over assay/abi.h alone. What assay/plugin.hpp does for C++ is done here
 * by hand: the tables at the end, a status and its text in place of exceptions. */
#include <assay/abi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { marked_steps = 64 };

struct assay_workload_self {
  const assay_host* host;
  const assay_memory* memory; /* takes device memory, and accounts for it by kind */
  int64_t n;
  double a;
  float *x, *y;
  uint64_t steps;                 /* since setup, or the last restart */
  double marks[2 * marked_steps]; /* of each of the first: the last element, and its magnitude */
};

static assay_str text(const char* characters) { return (assay_str){characters, strlen(characters)}; }

/* Hands the reason to the host, and the status to the caller. */
static assay_status fail(const assay_host* host, assay_status status, const char* reason) {
  host->set_message(host, status, text(reason));
  return status;
}

/* Another value for each place nearby: a loop that mixes places up is found. */
static float value_of_x(int64_t i) { return (float)(1 + i % 1009); }

static assay_status create(const assay_host* host, const assay_case* c, assay_workload_self** out) {
  const assay_memory* memory = host->get_extension(host, ASSAY_EXT_MEMORY);
  if (!memory) return fail(host, ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_MEMORY);
  assay_workload_self* self = calloc(1, sizeof *self);
  if (!self) return fail(host, ASSAY_OUT_OF_MEMORY, "no memory for the workload's object");
  self->host = host;
  self->memory = memory;
  assay_status status = host->get_int(c->config, text("n"), &self->n);
  if (status == ASSAY_OK) status = host->get_float(c->config, text("a"), &self->a);
  if (status != ASSAY_OK) {
    free(self);
    return fail(host, status, "a parameter that is read is not in the table, or of another type there");
  }
  *out = self;
  return ASSAY_OK;
}

/* In any state: after a setup that failed, too. */
static void destroy(assay_workload_self* self) {
  if (self->x) self->memory->release(self->memory, self->x);
  if (self->y) self->memory->release(self->memory, self->y);
  free(self);
}

static void begin(assay_workload_self* self) {
  for (int64_t i = 0; i < self->n; ++i) self->y[i] = 0;
  self->steps = 0;
}

/* Once, before the warm-up: takes memory and fills it. */
static assay_status setup(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  const size_t bytes = (size_t)self->n * sizeof(float);
  void *x = NULL, *y = NULL;
  assay_status status = self->memory->allocate(self->memory, ASSAY_MEMORY_DATA, bytes, text("x"), &x);
  self->x = x;
  if (status == ASSAY_OK) status = self->memory->allocate(self->memory, ASSAY_MEMORY_DATA, bytes, text("y"), &y);
  self->y = y;
  if (status != ASSAY_OK) return status; /* the host has the text */
  for (int64_t i = 0; i < self->n; ++i) self->x[i] = value_of_x(i);
  begin(self);
  return ASSAY_OK;
}

static void step(assay_workload_self* self) {
  const float a = (float)self->a;
  const float* x = self->x;
  float* y = self->y;
  for (int64_t i = 0; i < self->n; ++i) y[i] += a * x[i];
  /* Behind the loop, and of its last element: what returns before counts for nothing. */
  if (self->steps < marked_steps) {
    double* const mark = &self->marks[2 * self->steps];
    mark[0] = (double)y[self->n - 1], mark[1] = fabs((double)y[self->n - 1]);
  }
  ++self->steps;
}

/* One step, which is timed: it takes no memory and logs nothing. */
static assay_status run(assay_workload_self* self, const assay_launch* launch) {
  launch->phase_begin(launch, 0);
  step(self);
  launch->phase_end(launch, 0);
  return ASSAY_OK;
}

/* The account of the steps, after the last measured one: how many there were, and what the first of them have left. The
 * host compares the number with the steps that it has timed, restarts, and wants the same marks of the same steps
 * again. */
static assay_status read_account(assay_workload_self* self, const assay_launch* launch, assay_step_account* out) {
  (void)launch;
  out->steps = self->steps;
  out->marks_per_step = 1;
  out->mark_count = self->steps < marked_steps ? self->steps : marked_steps;
  if (out->mark_count > out->mark_capacity) out->mark_count = out->mark_capacity;
  memcpy(out->marks, self->marks, (size_t)out->mark_count * 2 * sizeof(double));
  out->tolerance = 0; /* to the bit */
  return ASSAY_OK;
}
static assay_status restart(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  begin(self);
  return ASSAY_OK;
}
static const assay_account account = {.struct_size = sizeof(assay_account), .read = read_account, .restart = restart};

static const void* extension(const assay_workload_self* self, const char* id) {
  (void)self;
  return id && strcmp(id, ASSAY_EXT_ACCOUNT) == 0 ? &account : NULL;
}

/* After that: two more from a known y. What is wrong has no times. */
static assay_status verify(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  for (int64_t i = 0; i < self->n; ++i) self->y[i] = 1;
  step(self), step(self);
  for (int64_t i = 0; i < self->n; ++i) {
    const double expected = 1 + 2 * (double)(float)self->a * (double)value_of_x(i);
    const double found = (double)self->y[i];
    if (!(fabs(found - expected) <= 1e-6 * (2 * fabs(expected) + 1))) { /* a NaN is wrong, too */
      char reason[128];
      snprintf(reason, sizeof reason, "y[%lld] is %g, expected %g", (long long)i, found, expected);
      return fail(self->host, ASSAY_WRONG_RESULT, reason);
    }
  }
  self->host->set_message(self->host, ASSAY_OK, text("two steps add 2 a x[i] to every y[i]"));
  return ASSAY_OK;
}

/* Of one step: a multiply and an add for each element; reads x, reads y, writes y, of 4 bytes each. */
static assay_status work(const assay_workload_self* self, assay_work* out) {
  const uint64_t count = (uint64_t)self->n;
  if (ASSAY_HAS(out, assay_work, items)) out->flops = 2 * count, out->bytes = 12 * count, out->items = count;
  if (ASSAY_HAS(out, assay_work, arithmetic)) out->arithmetic = ASSAY_ARITHMETIC_FP32;
  return ASSAY_OK;
}

/* What the workload declares: constant data, which the host reads without running anything of the plugin's. */
static const assay_param parameter_n = {.struct_size = sizeof(assay_param),
                                        .name = "n",
                                        .unit = "elements",
                                        .help = "length of the vectors",
                                        .type = ASSAY_TYPE_INT,
                                        .flags = ASSAY_PARAM_HAS_MIN | ASSAY_PARAM_HAS_MAX,
                                        .default_int = 1 << 20,
                                        .default_string = "",
                                        .min = 1,
                                        .max = 1 << 28};
static const assay_param parameter_a = {.struct_size = sizeof(assay_param),
                                        .name = "a",
                                        .help = "factor",
                                        .type = ASSAY_TYPE_FLOAT,
                                        .default_float = 0.5,
                                        .default_string = ""};
static const assay_param* const parameters[] = {&parameter_n, &parameter_a};
static const char* const phases[] = {"axpy"};
static const assay_workload workload = {.struct_size = sizeof(assay_workload),
                                        .id = "my_plugin",
                                        .summary = "y += a x over one vector",
                                        .item_unit = "elements",
                                        .params = parameters,
                                        .param_count = sizeof parameters / sizeof *parameters,
                                        .phases = phases,
                                        .phase_count = sizeof phases / sizeof *phases,
                                        .device_flags = ASSAY_DEVICE_CPU,
                                        .create = create,
                                        .destroy = destroy,
                                        .setup = setup,
                                        .run = run,
                                        .verify = verify,
                                        .work = work,
                                        .get_extension = extension};
static const assay_workload* const workloads[] = {&workload};

/* The one exported symbol. The oldest host that will do is that of the first release: nothing later is used. */
ASSAY_EXPORT const assay_entry assay_entry_v1 = {.struct_size = sizeof(assay_entry),
                                                 .abi_major = ASSAY_ABI_MAJOR,
                                                 .abi_minor = ASSAY_ABI_MINOR,
                                                 .min_host_minor = 0,
                                                 .workload_count = 1,
                                                 .id = "org.example.my_plugin",
                                                 .version = "0.1.0",
                                                 .build = ASSAY_BUILD_INFO,
                                                 .workloads = workloads};
