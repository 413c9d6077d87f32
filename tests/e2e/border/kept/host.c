/* A host of an older minor, as far as the border goes: compiled against kept headers alone, it opens a plugin and a
 * device backend of today, offers what a host of that minor offered, and carries one case out.
 *
 *   host PLUGIN DEVICE WORKLOAD [PARAMETER=VALUE...]
 *
 * It is a program of its own, and not assay with its minor turned down: what a host of 1.0 reads and offers is said by
 * the header of 1.0, not by today's code, and the executable that is shipped has no switch that only tests may use. All
 * that it offers ends where a page ends that nobody may read behind: a plugin that takes a field of today for granted
 * crashes here.
 *
 * Prints lines of a key and its value. Exit status: 0, or 3 where the plugin asks for a newer host, or 1. */
#define _GNU_SOURCE
#include <assay/abi.h>
#include <assay/device.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_params = 256, most_metrics = 64, most_phases = 32, steps = 3, asks_for_newer_host = 3 };

static _Noreturn void fail(const char* what, const char* why) {
  printf("failed %s: %s\n", what, why);
  exit(1);
}

/* Memory that ends at a page behind which is none. What is not set by hand is no zero. */
static void* at_the_end(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
  char* const begin = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED || mprotect(begin + pages * page, page, PROT_NONE) != 0) fail("memory", "none");
  memset(begin, 0x5a, pages * page);
  return begin + pages * page - bytes;
}

/* ---- the parameters of the case -----------------------------------------------------------------------------------
 */

typedef struct setting {
  const assay_param* param;
  int64_t integer; /* of a bool, too */
  double real;
  const char* text;
  int is_set; /* by the command line */
} setting;
struct assay_config {
  setting settings[most_params];
  uint32_t count;
};

static int is_text(assay_str s, const char* text) { return s.size == strlen(text) && !memcmp(s.data, text, s.size); }

static const setting* find(const assay_config* config, assay_str key, assay_type type) {
  for (uint32_t i = 0; i < config->count; ++i)
    if (is_text(key, config->settings[i].param->name) && config->settings[i].param->type == type)
      return &config->settings[i];
  return NULL;
}
static assay_status get_bool(const assay_config* config, assay_str key, int32_t* out) {
  const setting* const found = find(config, key, ASSAY_TYPE_BOOL);
  if (found) *out = (int32_t)found->integer;
  return found ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}
static assay_status get_int(const assay_config* config, assay_str key, int64_t* out) {
  const setting* const found = find(config, key, ASSAY_TYPE_INT);
  if (found) *out = found->integer;
  return found ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}
static assay_status get_float(const assay_config* config, assay_str key, double* out) {
  const setting* const found = find(config, key, ASSAY_TYPE_FLOAT);
  if (found) *out = found->real;
  return found ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}
static assay_status get_string(const assay_config* config, assay_str key, assay_str* out) {
  const setting* const found = find(config, key, ASSAY_TYPE_STRING);
  if (found) out->data = found->text, out->size = strlen(found->text);
  return found ? ASSAY_OK : ASSAY_INVALID_ARGUMENT;
}

static setting* setting_named(assay_config* config, const char* name, size_t length) {
  for (uint32_t i = 0; i < config->count; ++i)
    if (strlen(config->settings[i].param->name) == length && !memcmp(config->settings[i].param->name, name, length))
      return &config->settings[i];
  return NULL;
}
static assay_config* resolve(const assay_workload* workload, char** given, int given_count) {
  assay_config* const config = calloc(1, sizeof *config);
  if (!config || workload->param_count > most_params) fail("parameters", "too many");
  for (config->count = 0; config->count < workload->param_count; ++config->count) {
    const assay_param* const param = workload->params[config->count];
    const char* const text = param->default_string ? param->default_string : "";
    config->settings[config->count] = (setting){param, param->default_int, param->default_float, text, 0};
  }
  for (int i = 0; i < given_count; ++i) {
    const char* const value = strchr(given[i], '=');
    setting* const found = value ? setting_named(config, given[i], (size_t)(value - given[i])) : NULL;
    if (!found) fail(given[i], "no such parameter");
    found->integer = strtoll(value + 1, NULL, 10), found->real = strtod(value + 1, NULL), found->text = value + 1;
    found->is_set = 1;
  }
#if ASSAY_ABI_MINOR >= 2
  if (ASSAY_HAS(workload, assay_workload, flags))
    for (uint32_t i = 0; i < workload->preset_count; ++i) {
      const assay_preset* const p = workload->presets[i];
      const setting* const when = setting_named(config, p->when, strlen(p->when));
      const setting* const also = p->also_when ? setting_named(config, p->also_when, strlen(p->also_when)) : NULL;
      setting* const param = setting_named(config, p->param, strlen(p->param));
      if (!when || !param || (p->device_kind && strcmp(p->device_kind, "cpu") != 0)) continue;
      if (strcmp(when->text, p->choice) != 0 || (also && strcmp(also->text, p->also_choice) != 0)) continue;
      if (param->is_set && strcmp(p->when, p->param) != 0) continue;
      param->integer = p->int_value, param->real = p->float_value;
      if (p->string_value) param->text = p->string_value;
    }
#endif
  return config;
}

/* ---- what the host offers ------------------------------------------------------------------------------------------
 */

static const assay_device_api* device_api;
static assay_device* device;
static const assay_memory* memory;
static const assay_device_access* access_to_device;
static char message[4096];
static double metric_values[most_metrics];
static unsigned marks[most_phases];

static void log_text(const assay_host* host, int32_t level, assay_str text) { (void)host, (void)level, (void)text; }
static void set_message(const assay_host* host, assay_status status, assay_str text) {
  (void)host, (void)status;
  snprintf(message, sizeof message, "%.*s", (int)text.size, text.data);
}
static const void* get_extension(const assay_host* host, const char* id) {
  (void)host;
  if (strcmp(id, ASSAY_EXT_MEMORY) == 0) return memory;
  return strcmp(id, ASSAY_EXT_DEVICE) == 0 ? access_to_device : NULL;
}
static assay_status allocate(const assay_memory* m, assay_memory_kind kind, size_t bytes, assay_str label, void** out) {
  (void)m, (void)kind, (void)label;
  return device_api->allocate(device, bytes, out);
}
static void release(const assay_memory* m, void* address) {
  (void)m;
  device_api->release(device, address);
}
static void report(const assay_memory* m, assay_memory_kind kind, int64_t delta_bytes, assay_str label) {
  (void)m, (void)kind, (void)delta_bytes, (void)label;
}
static void moment(const assay_memory* m, assay_str name) { (void)m, (void)name; }
static void phase_begin(const assay_launch* launch, uint32_t phase) {
  (void)launch;
  if (phase < most_phases) ++marks[phase];
}
static void phase_end(const assay_launch* launch, uint32_t phase) { (void)launch, (void)phase; }
static void metric(const assay_launch* launch, uint32_t index, double value) {
  (void)launch;
  if (index < most_metrics) metric_values[index] = value;
}

static const assay_host* make_host(void) {
  assay_host* const host = at_the_end(sizeof *host);
  *host = (assay_host){sizeof *host, ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, NULL,       log_text,     set_message,
                       get_bool,     get_int,         get_float,       get_string, get_extension};
  assay_memory* const m = at_the_end(sizeof *m);
  *m = (assay_memory){sizeof *m, NULL, allocate, release, report, moment};
  memory = m;
  assay_device_access* const d = at_the_end(sizeof *d);
  *d = (assay_device_access){sizeof *d, device_api, device};
  access_to_device = d;
  return host;
}

/* ---- a case --------------------------------------------------------------------------------------------------------
 */

static void check_device(assay_status status, const char* doing) {
  if (status != ASSAY_OK) fail(doing, device_api->error_text());
}
static void check(assay_status status, const char* doing) {
  if (status == ASSAY_OK) return;
  printf("status %d\n", status);
  fail(doing, message);
}

static void open_device(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("device", dlerror());
  device_api = dlsym(library, ASSAY_DEVICE_SYMBOL);
  if (!device_api) fail("device", "exports no " ASSAY_DEVICE_SYMBOL);
  if (device_api->abi_major != ASSAY_DEVICE_ABI_MAJOR) fail("device", "of another major version");
  if (!ASSAY_HAS(device_api, assay_device_api, release)) fail("device", "its table is too short");
  int32_t count = 0;
  check_device(device_api->count(&count), "count");
  check_device(device_api->open(0, &device), "open");
  assay_device_info* const info = at_the_end(sizeof *info);
  info->struct_size = sizeof *info;
  check_device(device_api->info(device, info), "info");
  printf("device 1.%u %s\n", device_api->abi_minor, info->name);
#if ASSAY_DEVICE_ABI_MINOR >= 1
  if (device_api->abi_minor >= 1) printf("bus_address '%s' uuid '%s'\n", info->bus_address, info->uuid);
#endif
}

static const assay_workload* find_workload(const assay_entry* entry, const char* id) {
  for (uint32_t i = 0; i < entry->workload_count; ++i)
    if (strcmp(entry->workloads[i]->id, id) == 0) return entry->workloads[i];
  fail(id, "no such workload");
}

int main(int argc, char** argv) {
  if (argc < 4) fail("usage", "host PLUGIN DEVICE WORKLOAD [PARAMETER=VALUE...]");
  printf("host 1.%u\n", ASSAY_ABI_MINOR);
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("plugin", dlerror());
  const assay_entry* const entry = dlsym(library, ASSAY_ENTRY_SYMBOL);
  if (!entry) fail("plugin", "exports no " ASSAY_ENTRY_SYMBOL);
  if (!ASSAY_HAS(entry, assay_entry, deinit) || entry->abi_major != ASSAY_ABI_MAJOR) fail("plugin", "not of version 1");
  printf("plugin 1.%u\n", entry->abi_minor);
  if (entry->min_host_minor > ASSAY_ABI_MINOR) {
    printf("refused it needs a host with ABI 1.%u\n", entry->min_host_minor);
    return asks_for_newer_host;
  }
  open_device(argv[2]);
  const assay_workload* const workload = find_workload(entry, argv[3]);
  const assay_host* const host = make_host();
  if (entry->init) check(entry->init(host), "init");

  assay_case* const c = at_the_end(sizeof *c);
  c->struct_size = sizeof *c;
  c->config = resolve(workload, argv + 4, argc - 4);
  c->seed = 1, c->rank = 0, c->rank_count = 1, c->device_kind = "cpu";
#if ASSAY_ABI_MINOR >= 2
  c->prepare = 1, c->reserved = 0;
#endif
  assay_workload_self* self = NULL;
  check(workload->create(host, c, &self), "create");

  void* stream = NULL;
  check_device(device_api->stream_create(device, &stream), "stream_create");
  assay_launch* const launch = at_the_end(sizeof *launch);
  *launch = (assay_launch){sizeof *launch, NULL, stream, 0, ASSAY_STAGE_SETUP, 0, phase_begin, phase_end, metric};
  check(workload->setup(self, launch), "setup");
  launch->stage = ASSAY_STAGE_MEASURE;
  for (; launch->iteration < steps; ++launch->iteration) {
    check(workload->run(self, launch), "run");
    check_device(device_api->stream_synchronize(device, stream), "stream_synchronize");
  }
  launch->stage = ASSAY_STAGE_FINISH;
  if (workload->finish) check(workload->finish(self, launch), "finish");
  launch->stage = ASSAY_STAGE_VERIFY;
  message[0] = '\0';
  if (workload->verify) printf("verify %d %s\n", workload->verify(self, launch), message);
  if (workload->work) {
    assay_work* const work = at_the_end(sizeof *work);
    memset(work, 0, sizeof *work);
    work->struct_size = sizeof *work;
    check(workload->work(self, work), "work");
    printf("items %llu\n", (unsigned long long)work->items);
  }
  for (uint32_t i = 0; i < workload->metric_count && i < most_metrics; ++i)
    printf("metric %s %g\n", workload->metrics[i]->name, metric_values[i]);
  for (uint32_t i = 0; i < workload->phase_count && i < most_phases; ++i)
    printf("phase %s %u\n", workload->phases[i], marks[i]);
  workload->destroy(self);
  if (entry->deinit) entry->deinit();
  device_api->stream_destroy(device, stream);
  device_api->close(device);
  printf("ended\n");
  return 0;
}
