/* One plugin per way to be found by `assay validate`; UNFIT_RULE, set by the build, chooses it. In C, by hand, because
 * much of it does not compile in C++ over assay/plugin.hpp. The rule `sound` is a plugin without a mistake. */
#define _GNU_SOURCE /* for usleep and setenv */
#include <assay/abi.h>
#include <assay/device.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum rule {
  sound,
  exits_in_constructor,
  aborts_in_constructor,
  crashes_in_constructor,
  hangs_in_constructor,
  prints_in_constructor,
  sleeps_in_constructor,
  sets_handler_in_constructor,
  sets_variable_in_constructor,
  moves_in_constructor,
  opens_in_constructor,
  starts_thread_in_constructor,
  undefined_symbol,
  other_symbol,
  exports_more,
  short_entry,
  short_workload,
  short_param,
  newer_major,
  newer_host,
  no_run,
  null_workload,
  null_params,
  null_param,
  null_choice,
  many_params,
  many_choices,
  name_with_blank,
  name_twice,
  name_of_column,
  phase_twice,
  latin_help,
  escape_in_help,
  default_out_of_range,
  default_nan,
  range_reversed,
  unknown_type,
  unknown_scope,
  default_no_choice,
  choice_twice,
  preset_of_nothing,
  unit_with_blank,
  without_help,
  no_object,
  object_and_failure,
  fails_in_create,
  crashes_at_bound,
  refuses_without_text,
  knows_every_extension,
  crashes_at_null_extension,
  needs_every_extension,
  crashes_in_early_destroy,
  shares_state,
  fails_in_setup,
  fails_in_run,
  crashes_in_run,
  hangs_in_run,
  exits_in_run,
  allocates_in_run,
  waits_in_run,
  logs_in_run,
  prints_in_run,
  leaves_phase_open,
  ends_other_phase,
  never_marks,
  never_reports,
  reports_nan,
  reports_other_metric,
  work_that_grows,
  items_without_unit,
  work_without_end,
  fails_in_finish,
  releases_in_finish,
  wrong_result,
  verifies_without_text,
  crashes_in_destroy,
  hangs_in_deinit,
  keeps_memory,
  keeps_heap,
  keeps_thread,
  keeps_descriptor,
  keeps_handler,
  keeps_folder,
  keeps_variable,
  keeps_process,
  aborts_at_exit,
  exits_with_code,
  hangs_at_exit,
  ignores_refusal,
  hides_refusal,
  keeps_after_refusal,
  verifies_nothing,
  draws_without_seed,
  keeps_no_account,
  miscounts,
  repeats_otherwise,
  idle_when_measured,
};
#define IS(which) (UNFIT_RULE == which)

static int one_more = 0; /* of all objects of this process */

static void crash(void) {
  volatile size_t address = 8;
  *(volatile int*)address = 1;
}
static void hang(void) {
  for (;;) pause();
}
static void end_with_code(void) { _exit(3); }
static void on_signal(int number) { (void)number; }
static void* wait_for_ever(void* nothing) {
  hang();
  return nothing;
}
static void start_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_ever, NULL);
  pthread_detach(thread);
}
static void open_file(void) {
  if (open("/dev/null", O_RDONLY) < 0) abort();
}
static void move_away(void) {
  if (chdir("/") != 0) abort();
}

__attribute__((constructor)) static void construct(void) {
  if (IS(exits_in_constructor)) exit(0);
  if (IS(aborts_in_constructor)) abort();
  if (IS(crashes_in_constructor)) crash();
  if (IS(hangs_in_constructor)) hang();
  if (IS(prints_in_constructor)) puts("unfit: hello");
  if (IS(sleeps_in_constructor)) usleep(2200 * 1000);
  if (IS(sets_handler_in_constructor)) signal(SIGUSR1, on_signal);
  if (IS(sets_variable_in_constructor)) setenv("UNFIT", "1", 1);
  if (IS(moves_in_constructor)) move_away();
  if (IS(opens_in_constructor)) open_file();
  if (IS(starts_thread_in_constructor)) start_thread();
}

#if UNFIT_NEEDS_A_SYMBOL
void a_symbol_that_nobody_defines(void);
ASSAY_EXPORT void calls_it(void) { a_symbol_that_nobody_defines(); }
#endif
#if UNFIT_EXPORTS_MORE
ASSAY_EXPORT int helper_of_everyone(void) { return 1; }
#endif

struct assay_workload_self {
  const assay_host* host;
  const assay_memory* memory;
  int64_t n, steps;
  double marks[64]; /* of each step the first element, and its magnitude */
  float *x, *y;
  char is_set_up;
};
static struct assay_workload_self* the_only_one = NULL;

static assay_str text(const char* characters) {
  const assay_str view = {characters, strlen(characters)};
  return view;
}
static assay_status fail(const assay_host* host, assay_status status, const char* reason) {
  host->set_message(host, status, text(reason));
  return status;
}

static assay_status create(const assay_host* host, const assay_case* c, assay_workload_self** out) {
  struct assay_workload_self* self = NULL;
  const assay_memory* memory = host->get_extension(host, ASSAY_EXT_MEMORY);
  int64_t n = 0;
  if (IS(needs_every_extension) && memory->struct_size == 0) return ASSAY_INTERNAL;
  if (!memory) return fail(host, ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_MEMORY);
  if (host->get_int(c->config, text("n"), &n) != ASSAY_OK) return fail(host, ASSAY_INVALID_ARGUMENT, "there is no n");
  if (IS(no_object)) return ASSAY_OK;
  if (IS(fails_in_create)) return fail(host, ASSAY_INTERNAL, "it cannot");
  if (IS(crashes_at_bound) && n == 1000) crash();
  if (IS(refuses_without_text) && n == 1000) return ASSAY_INVALID_ARGUMENT;
  self = calloc(1, sizeof *self);
  self->host = host;
  self->memory = memory;
  self->n = n;
  *out = self;
  if (IS(object_and_failure)) return fail(host, ASSAY_INVALID_ARGUMENT, "an object, and a failure");
  return ASSAY_OK;
}

static void give_back(assay_workload_self* self) {
  if (self->x) self->memory->release(self->memory, self->x);
  if (self->y && !IS(keeps_memory)) self->memory->release(self->memory, self->y);
  self->x = self->y = NULL;
}

static void destroy(assay_workload_self* self) {
  if (IS(crashes_in_early_destroy) && !self->is_set_up) crash();
  if (IS(crashes_in_destroy) && self->is_set_up) crash();
  if (IS(aborts_at_exit)) atexit(abort);
  if (IS(exits_with_code)) atexit(end_with_code);
  if (IS(hangs_at_exit)) atexit(hang);
  if (!(IS(keeps_after_refusal) && !self->is_set_up)) give_back(self);
  free(self);
}

static assay_status take(assay_workload_self* self, const char* label, float** to) {
  void* address = NULL;
  const assay_status status =
      self->memory->allocate(self->memory, ASSAY_MEMORY_DATA, (size_t)self->n * sizeof(float), text(label), &address);
  *to = address;
  return IS(ignores_refusal) || IS(hides_refusal) ? ASSAY_OK : status;
}

static void keep_something(void) {
  static char* kept[64];
  static int count = 0;
  if (IS(keeps_heap)) {
    kept[count % 64] = malloc(100000);
    memset(kept[count++ % 64], 1, 100000);
  }
  if (IS(keeps_thread)) start_thread();
  if (IS(keeps_descriptor)) open_file();
  if (IS(keeps_handler)) signal(SIGUSR1, on_signal);
  if (IS(keeps_folder)) move_away();
  if (IS(keeps_variable)) setenv("UNFIT", "1", 1);
  if (IS(keeps_process) && fork() == 0) hang();
}

static assay_status setup(assay_workload_self* self, const assay_launch* launch) {
  assay_status status = ASSAY_OK;
  (void)launch;
  if (IS(fails_in_setup)) return fail(self->host, ASSAY_DEVICE_ERROR, "the device is made of wood");
  status = take(self, "x", &self->x);
  if (status == ASSAY_OK) status = take(self, "y", &self->y);
  if (status != ASSAY_OK) return status;
  if (!IS(hides_refusal) || (self->x && self->y))
    for (int64_t i = 0; i < self->n; ++i) self->x[i] = (float)(1 + i % 7), self->y[i] = 0;
  if (IS(shares_state)) the_only_one = self;
  keep_something();
  ++one_more;
  self->is_set_up = 1;
  return ASSAY_OK;
}

static void misbehave_in_run(assay_workload_self* self) {
  const assay_host* host = self->host;
  const assay_device_access* access = host->get_extension(host, ASSAY_EXT_DEVICE);
  if (IS(crashes_in_run)) crash();
  if (IS(hangs_in_run)) hang();
  if (IS(exits_in_run)) exit(0);
  if (IS(allocates_in_run)) {
    void* block = NULL;
    if (self->memory->allocate(self->memory, ASSAY_MEMORY_WORKSPACE, 256, text("scratch"), &block) == ASSAY_OK)
      self->memory->release(self->memory, block);
  }
  if (IS(waits_in_run)) access->api->stream_synchronize(access->device, NULL);
  if (IS(logs_in_run)) host->log(host, 1, text("a step"));
  if (IS(prints_in_run)) puts("a step");
}

static assay_status run(assay_workload_self* self, const assay_launch* launch) {
  if (IS(shares_state)) self = the_only_one;
  if (IS(fails_in_run) && self->steps == 2) return fail(self->host, ASSAY_DEVICE_ERROR, "the device is tired");
  if (!self->x || !self->y) return fail(self->host, ASSAY_INTERNAL, "there is no memory to work on");
  if (!IS(never_marks)) launch->phase_begin(launch, 0);
  misbehave_in_run(self);
  if (IS(idle_when_measured) && launch->stage != ASSAY_STAGE_MEASURE) usleep(1000);
  for (int64_t i = 0; i < self->n; ++i) self->y[i] += self->x[i];
  if (self->steps < 32) {
    self->marks[2 * self->steps] = (double)self->y[0];
    self->marks[2 * self->steps + 1] = (double)self->y[0];
  }
  ++self->steps;
  if (!IS(never_marks) && !IS(leaves_phase_open)) launch->phase_end(launch, IS(ends_other_phase) ? 77 : 0);
  if (IS(reports_other_metric)) launch->metric(launch, 9, 1);
  if (!IS(never_reports)) launch->metric(launch, 0, IS(reports_nan) ? (double)NAN : (double)self->y[0]);
  if (IS(draws_without_seed)) launch->metric(launch, 0, one_more);
  return ASSAY_OK;
}

static assay_status finish(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  if (IS(fails_in_finish)) return fail(self->host, ASSAY_INTERNAL, "it does not end");
  if (IS(releases_in_finish)) give_back(self);
  return ASSAY_OK;
}

static assay_status verify(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  if (IS(wrong_result)) return fail(self->host, ASSAY_WRONG_RESULT, "the sum is 41, expected 42");
  for (int64_t i = 0; i < self->n && !IS(verifies_nothing); ++i)
    if (self->y[i] != (float)self->steps * (float)(1 + i % 7))
      return fail(self->host, ASSAY_WRONG_RESULT, "y is not what the steps have added up");
  if (!IS(verifies_without_text)) self->host->set_message(self->host, ASSAY_OK, text("every y"));
  return ASSAY_OK;
}

static assay_status work(const assay_workload_self* self, assay_work* out) {
  out->flops = (uint64_t)self->n;
  if (IS(work_that_grows)) out->flops *= 1 + (uint64_t)self->steps;
  if (IS(work_without_end)) out->flops = UINT64_MAX;
  out->bytes = 12 * (uint64_t)self->n;
  out->items = (uint64_t)self->n;
  return ASSAY_OK;
}

/* From the result, not from what run() has counted. */
static assay_status read_account(assay_workload_self* self, const assay_launch* launch, assay_step_account* out) {
  (void)launch;
  out->steps = (uint64_t)self->y[0] + (IS(miscounts) ? 1 : 0);
  out->marks_per_step = 1;
  for (out->mark_count = 0; out->mark_count < 32 && out->mark_count < out->steps; ++out->mark_count)
    if (out->mark_count < out->mark_capacity) {
      out->marks[2 * out->mark_count] = self->marks[2 * out->mark_count];
      out->marks[2 * out->mark_count + 1] = self->marks[2 * out->mark_count + 1];
    }
  return ASSAY_OK;
}

static assay_status restart(assay_workload_self* self, const assay_launch* launch) {
  (void)launch;
  self->steps = 0;
  for (int64_t i = 0; i < self->n; ++i) self->y[i] = 0;
  if (IS(repeats_otherwise)) self->y[0] = 0.5f;
  return ASSAY_OK;
}

static const assay_account account = {.struct_size = sizeof account, .read = read_account, .restart = restart};

static const void* get_extension(const assay_workload_self* self, const char* id) {
  if (id && strcmp(id, ASSAY_EXT_ACCOUNT) == 0 && !IS(keeps_no_account)) return &account;
  if (IS(knows_every_extension)) return self;
  if (IS(crashes_at_null_extension) && strcmp(id, "x") == 0) return self;
  return NULL;
}

static void deinit(void) {
  if (IS(hangs_in_deinit)) hang();
}

/* ---- tables: what a rule changes stands beside the sound value ---- */

static const char* const modes[] = {"plain", IS(null_choice) ? NULL : IS(choice_twice) ? "plain" : "fancy"};
static const assay_param n_row = {.struct_size = IS(short_param) ? 8 : sizeof(assay_param),
                                  .name = IS(name_with_blank) ? "n n" : "n",
                                  .unit = IS(unit_with_blank) ? " elements" : "elements",
                                  .help = IS(without_help)     ? NULL
                                          : IS(latin_help)     ? "l\xe4nge"
                                          : IS(escape_in_help) ? "\x1b[2Jlength"
                                                               : "length",
                                  .type = IS(unknown_type) ? 9 : ASSAY_TYPE_INT,
                                  .flags = ASSAY_PARAM_HAS_MIN | ASSAY_PARAM_HAS_MAX,
                                  .default_int = IS(default_out_of_range) ? 5000 : 16,
                                  .min = IS(range_reversed) ? 2000 : 1,
                                  .max = 1000};
static const assay_param mode_row = {.struct_size = sizeof(assay_param),
                                     .name = IS(name_twice)       ? "n"
                                             : IS(name_of_column) ? "status"
                                                                  : "mode",
                                     .help = "which way",
                                     .type = ASSAY_TYPE_STRING,
                                     .default_string = IS(default_no_choice) ? "zzz" : "plain",
                                     .choices = modes,
                                     .choice_count = IS(many_choices) ? 4000000000u : 2};
static const assay_param rate_row = {.struct_size = sizeof(assay_param),
                                     .name = "rate",
                                     .help = "a factor",
                                     .type = ASSAY_TYPE_FLOAT,
                                     .default_float = IS(default_nan) ? (double)NAN : 0.5};
static const assay_param* const params[] = {&n_row, &mode_row, IS(null_param) ? NULL : &rate_row};
static const assay_metric sum_row = {.struct_size = sizeof(assay_metric),
                                     .name = "sum",
                                     .help = "of the first element",
                                     .scope = IS(unknown_scope) ? 7 : ASSAY_PER_STEP};
static const assay_metric* const metrics[] = {&sum_row};
static const char* const phases[] = {"add", "add"};
static const assay_preset preset_row = {.struct_size = sizeof(assay_preset),
                                        .when = IS(name_of_column) ? "status" : "mode",
                                        .choice = IS(choice_twice) ? "plain" : "fancy",
                                        .param = IS(preset_of_nothing) ? "depth" : "n",
                                        .int_value = 32};
static const assay_preset* const presets[] = {&preset_row};

static const assay_workload workload = {.struct_size = IS(short_workload) ? 16 : sizeof(assay_workload),
                                        .id = "unfit",
                                        .summary = "adds, and has one mistake",
                                        .item_unit = IS(items_without_unit) ? NULL : "elements",
                                        .params = IS(null_params) ? NULL : params,
                                        .metrics = metrics,
                                        .phases = phases,
                                        .param_count = IS(many_params) ? 4000000000u : 3,
                                        .metric_count = 1,
                                        .phase_count = IS(phase_twice) ? 2 : 1,
                                        .device_flags = ASSAY_DEVICE_CPU,
                                        .create = create,
                                        .destroy = destroy,
                                        .setup = setup,
                                        .run = IS(no_run) ? NULL : run,
                                        .finish = finish,
                                        .verify = verify,
                                        .work = work,
                                        .get_extension = get_extension,
                                        .presets = presets,
                                        .preset_count = 1};
static const assay_workload* const workloads[] = {IS(null_workload) ? NULL : &workload};

#if UNFIT_EXPORTS_ANOTHER
#define assay_entry_v1 another_entry
extern ASSAY_EXPORT const assay_entry another_entry;
#endif
const assay_entry assay_entry_v1 = {.struct_size = IS(short_entry) ? 8 : sizeof(assay_entry),
                                    .abi_major = IS(newer_major) ? 2 : ASSAY_ABI_MAJOR,
                                    .abi_minor = ASSAY_ABI_MINOR,
                                    .min_host_minor = IS(newer_host) ? 99 : 0,
                                    .workload_count = 1,
                                    .id = "org.assay.test.unfit",
                                    .version = "1.0.0",
                                    .build = "a test",
                                    .workloads = workloads,
                                    .deinit = deinit};
