/* libnvidia-ml.so.1 without a GPU: the few functions that assay asks for, which answer by the environment.
 *   FAKE_NVML_REFUSE       names of functions, by commas: they answer "Not Supported"
 *   FAKE_NVML_UTILISATION  percent of the driver's samples, by commas, over and over; each question brings one more
 *                          sample, of 20 ms. "frozen,70": no sample after the first question, and a rate of 70
 *   FAKE_NVML_CLOCKS       the SM clock in MHz at each question, by commas; the last one stays
 *   FAKE_NVML_REASONS      what holds the clocks down, NVML's bits
 *   FAKE_NVML_PROCESSES    how many others compute on the GPU, 1 GiB each; -1: the list is empty
 *   FAKE_NVML_CHILD        the id of one of these others
 *   FAKE_NVML_LOOKS        set: the process that asks computes nothing, and is not in the list
 *   FAKE_NVML_CHILDREN     set: those that it has started are in the list, 2 GiB each
 *   FAKE_NVML_HIDDEN_IDS   set: the list has the ids of another container
 *   FAKE_NVML_MIG          set: MIG is on
 * The energy grows by 5 J with each question. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { done = 0, not_supported = 3, not_found = 6, insufficient_size = 7 };
enum { max_children = 16 };

typedef struct {
  unsigned gpu, memory;
} rates;
typedef struct {
  unsigned long long time_us;
  union {
    unsigned number;
    unsigned long long wide;
  } value;
} sample;
typedef struct {
  unsigned id;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
} process;

static int gpu;
static int starts;
static unsigned long long newest_us;
static unsigned asked, energy_questions, clock_questions;

static int refused(const char* name) {
  const char* list = getenv("FAKE_NVML_REFUSE");
  return list && strstr(list, name);
}
static long number_of(const char* variable, long otherwise) {
  const char* text = getenv(variable);
  return text ? strtol(text, NULL, 0) : otherwise;
}
#define ANSWER(field, value)                     \
  do {                                           \
    if (refused(__func__)) return not_supported; \
    *(field) = (value);                          \
    return done;                                 \
  } while (0)

EXPORT int nvmlInit_v2(void) {
  if (refused(__func__)) return not_supported;
  ++starts;
  return done;
}
EXPORT int nvmlShutdown(void) {
  --starts;
  return done;
}
/* How often it was started and not shut down. */
EXPORT int fake_nvml_starts(void) { return starts; }

EXPORT const char* nvmlErrorString(int status) {
  return status == not_supported ? "Not Supported" : status == not_found ? "Not Found" : "No Permission";
}
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  snprintf(text, size, "580.95.05");
  return done;
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  if (strcmp(address, "0000:18:00.0") != 0) return not_found;
  ANSWER(device, (void*)&gpu);
}
EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  (void)device;
  *pending = 0;
  ANSWER(current, getenv("FAKE_NVML_MIG") ? 1u : 0u);
}

static const char* utilisations(void) {
  const char* list = getenv("FAKE_NVML_UTILISATION");
  return list ? list : "90";
}
static int is_frozen(void) { return strncmp(utilisations(), "frozen,", 7) == 0; }

EXPORT int nvmlDeviceGetUtilizationRates(void* device, rates* out) {
  (void)device;
  if (refused(__func__)) return not_supported;
  out->gpu = (unsigned)strtol(utilisations() + (is_frozen() ? 7 : 0), NULL, 10);
  out->memory = 1;
  return done;
}

/* A buffer of one sample: the newest. */
EXPORT int nvmlDeviceGetSamples(void* device, unsigned sampling, unsigned long long last_seen_us, unsigned* type,
                                unsigned* count, sample* out) {
  (void)device;
  if (refused(__func__) || sampling != 1) return not_supported;
  *type = 1;
  if (!out) {
    *count = 4;
    return done;
  }
  if (*count < 1) return 2;
  if (newest_us == 0) {
    newest_us = ((unsigned long long)time(NULL) + 3600) * 1000000; /* later than any question */
  } else if (!is_frozen()) {
    newest_us += 20000;
  }
  if (newest_us <= last_seen_us) return not_found;
  unsigned values[16];
  unsigned values_given = 0;
  for (const char* at = utilisations() + (is_frozen() ? 7 : 0); at && values_given < 16;
       at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    values[values_given++] = (unsigned)strtol(at, NULL, 10);
  out[0].time_us = newest_us;
  out[0].value.number = values[asked++ % values_given];
  *count = 1;
  return done;
}

static unsigned sm_clock(void) {
  const char* at = getenv("FAKE_NVML_CLOCKS");
  if (!at) return 1755u;
  for (unsigned i = 0; i < clock_questions && strchr(at, ','); ++i) at = strchr(at, ',') + 1;
  ++clock_questions;
  return (unsigned)strtol(at, NULL, 10);
}

EXPORT int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* mhz) {
  (void)device;
  ANSWER(mhz, type == 1 ? sm_clock() : 3201u);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void* device, unsigned type, unsigned* mhz) {
  (void)device;
  ANSWER(mhz, type == 1 ? 1980u : 3202u);
}
EXPORT int nvmlDeviceGetApplicationsClock(void* device, unsigned type, unsigned* mhz) {
  (void)device;
  ANSWER(mhz, type == 1 ? 1900u : 3201u);
}
EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  (void)device;
  ANSWER(milliwatts, 650500u);
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  (void)device;
  ANSWER(milliwatts, 600000u);
}
EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned* milliwatts) {
  (void)device;
  ANSWER(milliwatts, 700000u);
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  (void)device;
  ANSWER(millijoules, 1000000u + 5000u * (unsigned long long)++energy_questions);
}
EXPORT int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* celsius) {
  (void)device;
  (void)sensor;
  ANSWER(celsius, 61u);
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  (void)device;
  ANSWER(reasons, (unsigned long long)number_of("FAKE_NVML_REASONS", 0));
}
/* Those that any thread of this process has started. */
static unsigned children_of_this(unsigned* ids) {
  unsigned count = 0;
  if (!getenv("FAKE_NVML_CHILDREN")) return 0;
  DIR* threads = opendir("/proc/self/task");
  for (struct dirent* thread; threads && (thread = readdir(threads)) != NULL;) {
    char file[300];
    snprintf(file, sizeof file, "/proc/self/task/%s/children", thread->d_name);
    FILE* list = fopen(file, "r");
    while (list && count < max_children && fscanf(list, "%u", &ids[count]) == 1) ++count;
    if (list) fclose(list);
  }
  if (threads) closedir(threads);
  return count;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, process* out) {
  (void)device;
  if (refused(__func__)) return not_supported;
  const unsigned room = *count;
  const unsigned first = getenv("FAKE_NVML_LOOKS") ? 1 : 0;
  const unsigned listed = (unsigned)(number_of("FAKE_NVML_PROCESSES", 0) + 1) - first;
  unsigned children[max_children];
  const unsigned processes = listed + children_of_this(children);
  *count = processes;
  if (room < processes) return insufficient_size;
  for (unsigned i = 0; i < processes; ++i) {
    const unsigned number = i + first;
    out[i].id = number == 0 && !getenv("FAKE_NVML_HIDDEN_IDS") ? (unsigned)getpid() : 4000000u + number;
    if (number == 1 && getenv("FAKE_NVML_CHILD")) out[i].id = (unsigned)number_of("FAKE_NVML_CHILD", 0);
    if (i >= listed) out[i].id = children[i - listed];
    out[i].used_bytes = (i < listed ? 1ull : 2ull) << 30;
    out[i].gpu_instance = out[i].compute_instance = ~0u;
  }
  return done;
}
