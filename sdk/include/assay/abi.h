/* assay/abi.h - the border between the host and a workload plugin.
 *
 * C11 and C++17. Depends on <stddef.h> and <stdint.h> alone. One file, above 500 lines, since a plugin in any language
 * needs it alone.
 *
 *   Rule 1  A released struct only grows at its end; every struct starts with its size.
 *   Rule 2  Whoever made a thing frees it. Text is borrowed for the call and copied by the receiver.
 *   Rule 3  Nothing is thrown across this file; no C++ type and no allocator crosses it.
 *
 * Frozen with release 1.0.0: nothing changes here, and additions come at the end (tests/unit/abi/border.table has all
 * of it). The major version is part of the symbol's name, and of the id of an extension ("assay.memory/1"). Only
 * struct_size shows which fields the other side's struct has: use ASSAY_HAS before any field that is marked "Since".
 * The minor covers what has no size: a status, or the meaning of a flag. Each side ignores what it does not know: an id
 * gives NULL, a bit of flags has no effect. (Only assay_str has no size; it never grows.)
 *
 * The file has more than 500 lines because a frozen border stays in one file, which any C compiler can read alone.
 *
 * A plugin exports one data symbol, `assay_entry_v1`. Everything else is reached from it. The tables it points to
 * (workloads, parameters, metrics, phases, presets) are constant data with static storage: the host reads them without
 * running plugin code.
 *
 * Threads. [any-thread]: may be called at any time from any thread. [main-thread]: the thread that loaded the plugin.
 * [measure-thread]: the one thread that runs a case; the case's device is current on it. Calls on one workload object
 * never overlap.
 */
#ifndef ASSAY_ABI_H
#define ASSAY_ABI_H
#include <stddef.h>
#include <stdint.h>

#define ASSAY_ABI_MAJOR 1u /* part of the symbol's name: a host of version 1 does not find a plugin of version 2 */
#define ASSAY_ABI_MINOR 5u /* counts appended fields, statuses and extensions, here and in assay/comm.h */

#if defined(_WIN32)
#define ASSAY_EXPORT __declspec(dllexport)
#else
#define ASSAY_EXPORT __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define ASSAY_NOEXCEPT noexcept
extern "C" {
#else
#define ASSAY_NOEXCEPT
#endif

/* True when `p`, made by the other side, is long enough to hold `field`. */
#define ASSAY_HAS(p, type, field) ((p)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

/* ---- status ---------------------------------------------------------------------------------------------------- */

typedef int32_t assay_status; /* a fixed width: the size of a C enum is the compiler's choice */
#define ASSAY_OK 0
#define ASSAY_INVALID_ARGUMENT 1 /* an invalid parameter, or combination of parameters */
#define ASSAY_UNSUPPORTED 2      /* sound, but not available here: the case is skipped, not failed */
#define ASSAY_OUT_OF_MEMORY 3
#define ASSAY_DEVICE_ERROR 4
#define ASSAY_WRONG_RESULT 5
#define ASSAY_INTERNAL 6
#define ASSAY_COMM_ERROR 7 /* another rank is gone, did not answer in time, or failed; the text names it */
/* Since 1.3, only from verify: what was checked is right, but a part that should be checked was not; the text says
 * which. A host before 1.3 gets ASSAY_UNSUPPORTED instead, which it records as 'not checked'. */
#define ASSAY_VERIFIED_IN_PART 8

/* A borrowed view of UTF-8 text, not NUL-terminated. Valid until the call that received it returns. */
typedef struct assay_str {
  const char* data;
  size_t size;
} assay_str;

/* ---- what a workload declares (static storage, read without creating anything) ---------------------------------- */

typedef int32_t assay_type;
#define ASSAY_TYPE_BOOL 1
#define ASSAY_TYPE_INT 2
#define ASSAY_TYPE_FLOAT 3
#define ASSAY_TYPE_STRING 4

#define ASSAY_PARAM_REQUIRED 1u     /* has no default: the experiment must set it */
#define ASSAY_PARAM_HAS_MIN 2u      /* `min` holds, for int and float */
#define ASSAY_PARAM_HAS_MAX 4u      /* `max` holds */
#define ASSAY_PARAM_INPUT_PATH 8u   /* string: a file that must exist; relative to the experiment file; "" is none */
#define ASSAY_PARAM_OUTPUT_PATH 16u /* string: a file the plugin writes; relative to the run folder; "" is none */
/* Since 1.4. String: the words of a command line, separated by blanks. A word with blanks, quotes or backslashes is in
 * double quotes, and a backslash precedes each " and \ within them. The experiment may give an array of strings
 * instead, whose elements are the words. */
#define ASSAY_PARAM_WORDS 32u

/* One row of a workload's parameter table. */
typedef struct assay_param {
  size_t struct_size;
  const char* name;
  const char* unit; /* NULL: a pure number, a name, a switch */
  const char* help;
  assay_type type;
  uint32_t flags;
  int64_t default_int; /* for an int; 0 or 1 for a bool */
  double default_float;
  const char* default_string;
  double min, max;            /* inclusive */
  const char* const* choices; /* for a string; NULL: any text */
  uint64_t choice_count;
} assay_param;

typedef int32_t assay_direction;
#define ASSAY_LOWER_IS_BETTER (-1)
#define ASSAY_NEITHER_IS_BETTER 0
#define ASSAY_HIGHER_IS_BETTER 1

typedef int32_t assay_scope;
#define ASSAY_PER_STEP 0 /* reported in every run(); the host keeps each value and its statistics */
#define ASSAY_PER_CASE 1 /* reported once, in any call that has a launch; the last value counts */

/* One row of a workload's table of metrics. */
typedef struct assay_metric {
  size_t struct_size;
  const char* name;
  const char* unit; /* NULL: a pure number */
  const char* help;
  assay_direction direction;
  assay_scope scope;
  /* Since 1.1. A result that is one of a few words, ASSAY_PER_CASE: the value is an index into them, and tables show
   * the word; an index beyond them fails the case. NULL and 0: a number. */
  const char* const* words;
  uint64_t word_count;
} assay_metric;

/* Since 1.2. One row of what a choice stands for: if the string parameter `when` is `choice`, the parameter `param`
 * gets the value below of its type, unless the experiment sets it: in its file, by --set, or on an axis. The host
 * passes that value to create(), and records and tables show it. A row whose `param` is `when` replaces the choice
 * itself (resolves "auto"). Rows are read in order: first those for any device, when the experiment is read, then those
 * for the case's kind of device, when the device is known. */
typedef struct assay_preset {
  size_t struct_size;
  const char* when;
  const char* choice;
  const char* also_when; /* NULL: no further condition; otherwise this string parameter must be `also_choice` */
  const char* also_choice;
  const char* device_kind; /* NULL: any device; otherwise only this kind */
  const char* param;
  int64_t int_value; /* for an int; 0 or 1 for a bool */
  double float_value;
  const char* string_value;
} assay_preset;

typedef int32_t assay_arithmetic;
#define ASSAY_ARITHMETIC_UNSTATED 0
#define ASSAY_ARITHMETIC_FP64 1
#define ASSAY_ARITHMETIC_FP32 2 /* without tensor cores */
#define ASSAY_ARITHMETIC_TF32 3
#define ASSAY_ARITHMETIC_FP16 4
#define ASSAY_ARITHMETIC_BF16 5
#define ASSAY_ARITHMETIC_FP8 6

/* Work of one step, by the plugin's formula. Zero: not stated. */
typedef struct assay_work {
  size_t struct_size;
  uint64_t flops; /* floating-point operations; a multiply-add is two */
  uint64_t bytes; /* least traffic to the device's main memory */
  uint64_t items; /* counted in assay_workload.item_unit */
  /* Since 1.3. The arithmetic of nearly all of `flops`, whatever format holds their sums: the host compares their rate
   * with the device's peak for it. */
  assay_arithmetic arithmetic;
  int32_t reserved; /* 0 */
} assay_work;

/* ---- what the host offers --------------------------------------------------------------------------------------- */

typedef struct assay_config assay_config;               /* opaque: the resolved parameters of one case */
typedef struct assay_workload_self assay_workload_self; /* opaque: the plugin's object */

/* One per plugin, alive until after assay_entry.deinit has returned. */
typedef struct assay_host {
  size_t struct_size;
  uint32_t abi_major, abi_minor;
  void* impl;
  /* [any-thread] level: 0 debug, 1 info, 2 warning, 3 error. Lands in the case's log, never on the user's terminal;
   * the first few warnings are also notes of the case's record. */
  void (*log)(const struct assay_host*, int32_t level, assay_str text) ASSAY_NOEXCEPT;
  /* [calling-thread] The text for the status about to be returned. With ASSAY_OK or
   * ASSAY_VERIFIED_IN_PART from verify: what was checked. */
  void (*set_message)(const struct assay_host*, assay_status, assay_str text) ASSAY_NOEXCEPT;
  /* [main-thread] ASSAY_INVALID_ARGUMENT: no such parameter, or of another type; *out is untouched. Every parameter of
   * the table is present, defaults included. The text of get_string lives as long as the config. */
  assay_status (*get_bool)(const assay_config*, assay_str key, int32_t* out) ASSAY_NOEXCEPT;
  assay_status (*get_int)(const assay_config*, assay_str key, int64_t* out) ASSAY_NOEXCEPT;
  assay_status (*get_float)(const assay_config*, assay_str key, double* out) ASSAY_NOEXCEPT;
  assay_status (*get_string)(const assay_config*, assay_str key, assay_str* out) ASSAY_NOEXCEPT;
  /* [any-thread] NULL when not offered. Ids read "assay.name/1"; the table is the host's and lives as long as it. */
  const void* (*get_extension)(const struct assay_host*, const char* id)ASSAY_NOEXCEPT;
} assay_host;

/* What create() learns about the case. */
typedef struct assay_case {
  size_t struct_size;
  const assay_config* config; /* lives until destroy() has returned */
  uint64_t seed;              /* for everything random in the workload */
  int32_t rank, rank_count;   /* 0 and 1 without ranks */
  const char* device_kind;    /* "cpu", "cuda", ... */
  /* Since 1.2. 0: the user wants to measure a first step's cost. setup() then makes only the model and its inputs, and
   * the first run() allocates a step's memory and finds its kernels, each in the phase that needs them. Only a workload
   * with ASSAY_WORKLOAD_COLD_START ever gets 0. */
  int32_t prepare;
  int32_t reserved; /* 0 */
} assay_case;

typedef int32_t assay_stage;
#define ASSAY_STAGE_SETUP 0
#define ASSAY_STAGE_WARMUP 1
#define ASSAY_STAGE_MEASURE 2
#define ASSAY_STAGE_FINISH 3
#define ASSAY_STAGE_VERIFY 4

/* The context of one call. Made by the host, valid until the call returns. */
typedef struct assay_launch {
  size_t struct_size;
  void* impl;
  void* stream;   /* the case's device's: a CUstream as void* on CUDA, NULL on the CPU. Enqueue on it only. */
  int32_t device; /* ordinal; already current on the calling thread */
  assay_stage stage;
  uint64_t iteration; /* for run(): 0-based, warm-up included */
  /* [measure-thread] Marks of one phase, by its index in assay_workload.phases. The host reads the device's timeline
   * and the host's clock at both. Phases may nest, and may occur several times in a step: their times add up. */
  void (*phase_begin)(const struct assay_launch*, uint32_t phase) ASSAY_NOEXCEPT;
  void (*phase_end)(const struct assay_launch*, uint32_t phase) ASSAY_NOEXCEPT;
  /* [measure-thread] Reports a value, by the metric's index in assay_workload.metrics. */
  void (*metric)(const struct assay_launch*, uint32_t metric, double value) ASSAY_NOEXCEPT;
} assay_launch;

/* ---- extension "assay.memory/1": memory with a kind -------------------------------------------------------------- */

typedef int32_t assay_memory_kind;
#define ASSAY_MEMORY_PARAMETERS 0
#define ASSAY_MEMORY_GRADIENTS 1
#define ASSAY_MEMORY_OPTIMIZER_STATE 2
#define ASSAY_MEMORY_ACTIVATIONS 3
#define ASSAY_MEMORY_WORKSPACE 4
#define ASSAY_MEMORY_COMMUNICATION 5
#define ASSAY_MEMORY_DATA 6
#define ASSAY_MEMORY_KIND_COUNT 7

typedef struct assay_memory {
  size_t struct_size;
  void* impl;
  /* [measure-thread] Memory on the case's device, 256-byte aligned, touched but not initialised to any value.
   * ASSAY_OUT_OF_MEMORY comes with text (bytes wanted, bytes free, bytes held by kind). */
  assay_status (*allocate)(const struct assay_memory*, assay_memory_kind, size_t bytes, assay_str label,
                           void** out) ASSAY_NOEXCEPT;
  void (*release)(const struct assay_memory*, void* address) ASSAY_NOEXCEPT;
  /* [any-thread] Accounts for memory that the plugin obtains elsewhere: positive when taken, negative when freed. */
  void (*report)(const struct assay_memory*, assay_memory_kind, int64_t delta_bytes, assay_str label) ASSAY_NOEXCEPT;
  /* [measure-thread] Names this moment: the host notes current and peak by kind. The peak restarts from here. */
  void (*moment)(const struct assay_memory*, assay_str name) ASSAY_NOEXCEPT;
} assay_memory;
#define ASSAY_EXT_MEMORY "assay.memory/1"

/* ---- extension "assay.device/1": the case's device, see assay/device.h ------------------------------------------- */

struct assay_device;
struct assay_device_api;
typedef struct assay_device_access {
  size_t struct_size;
  const struct assay_device_api* api;
  struct assay_device* device;
} assay_device_access;
#define ASSAY_EXT_DEVICE "assay.device/1"

/* ---- extension "assay.memory_plan/1": what lies in an arena -------------------------------------------------------
 * Offered when the user asked for a snapshot of the memory, NULL otherwise. */

typedef struct assay_memory_plan {
  size_t struct_size;
  void* impl;
  /* [measure-thread] In setup, once for each tensor that the workload places in memory from assay.memory: its place,
   * and the first and last moment of a step at which it is alive, both included. Moments are any numbers that rise in
   * the order of the step. A tensor outside the arena is ignored, with a line in the log. */
  void (*buffer)(const struct assay_memory_plan*, void* arena, size_t offset, size_t bytes, int32_t first_moment,
                 int32_t last_moment, assay_str name) ASSAY_NOEXCEPT;
} assay_memory_plan;
#define ASSAY_EXT_MEMORY_PLAN "assay.memory_plan/1"

/* ---- extension "assay.progress/1": progress of a long set-up ----------------------------------------------------- */

typedef struct assay_progress {
  size_t struct_size;
  void* impl;
  /* [measure-thread] In setup: progress in any unit, for the progress line, and a sign of life. Cheap. */
  void (*report)(const struct assay_progress*, int64_t done, int64_t total) ASSAY_NOEXCEPT;
} assay_progress;
#define ASSAY_EXT_PROGRESS "assay.progress/1"

/* ---- extension "assay.parts/1": the current part of a long call ---------------------------------------------------
 * Since 1.5. */

typedef struct assay_parts {
  size_t struct_size;
  void* impl;
  /* [measure-thread] In setup and verify: begins a part of the call, "optimizer", which lasts until another one begins
   * or the call returns; an empty name only ends it. The host adds up the time of each name, shows it in the progress
   * line, and names it if the process ends in it. Lower case, digits and '_', at most 55 bytes; the first 64 names of a
   * call count. A part with nothing to do need not begin. */
  void (*begin)(const struct assay_parts*, assay_str name) ASSAY_NOEXCEPT;
} assay_parts;
#define ASSAY_EXT_PARTS "assay.parts/1"

/* ---- extension "assay.capture/1": the phases of a captured step ---------------------------------------------------
 */

/* A step that was captured once (a CUDA graph) calls no function of the launch when it is replayed. So the workload
 * marks its phases while it captures, and run() reports each replay. One captured step per case. */
typedef struct assay_capture {
  size_t struct_size;
  void* impl;
  /* [measure-thread] In setup(), or in the first run() of a case whose `prepare` is 0 while no phase is open; the
   * stream capturing: from begin to end, phase marks become part of the captured step. begin may be called again: the
   * last capture counts. */
  assay_status (*begin)(const struct assay_capture*) ASSAY_NOEXCEPT;
  assay_status (*end)(const struct assay_capture*) ASSAY_NOEXCEPT;
  /* [measure-thread] In run(), once: the captured step is part of this one. */
  void (*replayed)(const struct assay_capture*) ASSAY_NOEXCEPT;
} assay_capture;
#define ASSAY_EXT_CAPTURE "assay.capture/1"

/* ---- extension "assay.peak/1", of a workload: the device's peak rates ---------------------------------------------
 */

typedef struct assay_peak {
  size_t struct_size;
  double flops_per_s; /* in the arithmetic that assay_work states; 0: not measured */
  double bytes_per_s; /* of the device's main memory, reads and writes together; 0: not measured */
} assay_peak;

typedef struct assay_peak_probe {
  size_t struct_size;
  /* [measure-thread] Once, after verify, on each rank separately: measures the device's best rates for a fraction of a
   * second. May block, and spoil the state. With ASSAY_OK the text says how it was measured; any other status means
   * that there is no such figure. */
  assay_status (*measure)(assay_workload_self*, const assay_launch*, assay_peak* out) ASSAY_NOEXCEPT;
} assay_peak_probe;
#define ASSAY_EXT_PEAK "assay.peak/1"

/* ---- extension "assay.silence/1", of a workload: its steps without communication --------------------------------- */

typedef struct assay_silence {
  size_t struct_size;
  /* [measure-thread] After finish, on several ranks. Not 0: run() does all of a step except communication with other
   * ranks, so that the host can time the rest; its results are wrong from there on. 0: as before. verify begins from a
   * fresh state. */
  assay_status (*set)(assay_workload_self*, int32_t silent) ASSAY_NOEXCEPT;
} assay_silence;
#define ASSAY_EXT_SILENCE "assay.silence/1"

/* ---- extension "assay.account/1", of a workload: what its steps have done -----------------------------------------
 * Since 1.5. The host gives no figure for steps that the workload's state does not account for. It compares the count
 * in the state with its calls and, if the workload can restart, repeats the first steps and compares their marks.
 * Without this extension the verification is recorded as 'partial' at most. */

typedef struct assay_step_account {
  size_t struct_size;
  /* Out: the steps taken since setup or the last restart, as their results show: an optimizer's step number, a sum to
   * which each step adds, a counter that the last kernel of a step raises. A counter that run() raises on entry proves
   * nothing. */
  uint64_t steps;
  /* Out: a mark is two numbers that a step has left, a value (its loss, a sum over its gradients) and the magnitude of
   * the terms of that value. Each step has `marks_per_step` of them, and those of the first steps are kept:
   * `mark_count` in all, a multiple of marks_per_step. 0 and 0 without marks. */
  uint64_t marks_per_step, mark_count;
  /* In: room for `mark_capacity` marks, two doubles each: value, magnitude. */
  double* marks;
  uint64_t mark_capacity;
  /* Out: the share of its magnitude by which a value may differ if a device does not repeat a step to the bit. */
  double tolerance;
} assay_step_account;

typedef struct assay_account {
  size_t struct_size;
  /* [measure-thread] May be NULL. Right before the first measured step, outside every timed window: enqueues work that
   * destroys some of the results of earlier steps, so that steps which write none show. A few elements suffice,
   * so that the caches stay as other steps find them. */
  assay_status (*open)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  /* [measure-thread] When the device has ended the last step: before finish, and again after repeated steps. May block.
   * ASSAY_WRONG_RESULT with a text if the state contradicts itself. */
  assay_status (*read)(assay_workload_self*, const assay_launch*, assay_step_account* out) ASSAY_NOEXCEPT;
  /* [measure-thread] May be NULL. After finish, on all ranks: the state is that after setup again, and the steps that
   * follow are the first ones, in ASSAY_STAGE_WARMUP and with their metrics ignored. May block. */
  assay_status (*restart)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
} assay_account;
#define ASSAY_EXT_ACCOUNT "assay.account/1"

/* ---- extension "assay.plan/1", of a workload: what a case takes, stated without a device --------------------------
 * A workload whose operations go through assay/compute does not need it: the host walks through its setup and a step on
 * a device that carries nothing out (assay/planning.h). Any other workload can state its needs here. */

typedef int32_t assay_operation_kind;
#define ASSAY_OPERATION_PRODUCT 0    /* a matrix product */
#define ASSAY_OPERATION_ATTENTION 1  /* tiled attention */
#define ASSAY_OPERATION_OTHER 2      /* bound by the memory's bandwidth */
#define ASSAY_OPERATION_COLLECTIVE 3 /* between ranks */

typedef struct assay_planned_operation {
  size_t struct_size;
  const char* name; /* static text: "matmul" */
  assay_operation_kind kind;
  assay_arithmetic arithmetic; /* of `flops` */
  uint64_t flops;
  uint64_t bytes; /* least traffic to the device's main memory; of a collective: what this rank sends */
} assay_planned_operation;

typedef struct assay_plan {
  size_t struct_size;
  void* impl;
  /* [main-thread] Device memory in the order in which setup and the steps take it: positive when taken, negative when
   * freed. */
  void (*memory)(const struct assay_plan*, assay_memory_kind, int64_t delta_bytes) ASSAY_NOEXCEPT;
  /* [main-thread] One operation of a step, in the step's order. */
  void (*operation)(const struct assay_plan*, const assay_planned_operation*) ASSAY_NOEXCEPT;
} assay_plan;

typedef struct assay_planner {
  size_t struct_size;
  /* [main-thread] After create, in place of setup and of every step; no device is open. ASSAY_UNSUPPORTED and
   * ASSAY_INVALID_ARGUMENT as of setup. */
  assay_status (*plan)(const assay_workload_self*, const assay_plan*) ASSAY_NOEXCEPT;
} assay_planner;
#define ASSAY_EXT_PLAN "assay.plan/1"

/* ---- extension "assay.names/1": parameters, phases and metrics that are in no table ------------------------------
 * Since 1.4. Names that a workload with ASSAY_WORKLOAD_OPEN cannot declare: an experiment or a program gives them. */

typedef struct assay_names {
  size_t struct_size;
  void* impl;
  /* [main-thread] In create. The name of the parameter at this place, of all parameters of the case, the table's
   * included, in alphabetical order. ASSAY_INVALID_ARGUMENT after the last one. The text lives as long as the config.
   */
  assay_status (*param)(const struct assay_names*, const assay_config*, uint64_t place, assay_str* out) ASSAY_NOEXCEPT;
  /* [measure-thread] From setup on. The index by which a launch takes the phase or the metric of this name: that of the
   * table, or a new and then constant one after the table's. The row's texts are copied. ASSAY_INVALID_ARGUMENT with a
   * text: an invalid name, a metric of that name with another unit, direction or scope, words, or more than 256 of a
   * kind. May allocate: name everything known before the steps. */
  assay_status (*phase)(const struct assay_names*, assay_str name, uint32_t* out) ASSAY_NOEXCEPT;
  assay_status (*metric)(const struct assay_names*, const assay_metric* row, uint32_t* out) ASSAY_NOEXCEPT;
} assay_names;
#define ASSAY_EXT_NAMES "assay.names/1"

/* ---- the plugin ----------------------------------------------------------------------------------------------------
 */

typedef struct assay_workload {
  size_t struct_size;
  const char* id; /* the name an experiment uses: lower case, digits, '_', '.' */
  const char* summary;
  const char* item_unit; /* the unit of assay_work.items, plural: "tokens"; NULL: none */
  /* Arrays of pointers, so that a row may grow. */
  const assay_param* const* params;
  const assay_metric* const* metrics;
  const char* const* phases;
  uint32_t param_count, metric_count, phase_count;
  uint32_t device_flags; /* ASSAY_ANY_DEVICE, or the kinds it runs on */
  /* [main-thread] Reads and checks parameters. No device work, no large memory. On failure *out stays NULL. */
  assay_status (*create)(const assay_host*, const assay_case*, assay_workload_self** out) ASSAY_NOEXCEPT;
  /* [measure-thread] In any state. Frees everything that create and setup made. */
  void (*destroy)(assay_workload_self*) ASSAY_NOEXCEPT;
  /* [measure-thread] Allocates, fills inputs, prepares kernels; if assay_case.prepare is 0, only what is stated there.
   * May block. */
  assay_status (*setup)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  /* [measure-thread] Enqueues one step on launch->stream. No allocation, no synchronisation, no log, except in the
   * first step of a case whose `prepare` is 0. */
  assay_status (*run)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  /* [measure-thread] May be NULL. Once, after the last measured step: reports per-case metrics, writes files. May
   * block. What run() needs stays until destroy, because further steps may follow in ASSAY_STAGE_WARMUP: traced ones,
   * and silent ones (assay.silence/1). Their metrics are ignored, and no figure reported here includes them. The
   * host does not call run() after `finish` of a plugin that was compiled against 1.2 or older. */
  assay_status (*finish)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  /* [measure-thread] May be NULL; the record then says 'not checked'. ASSAY_OK, ASSAY_WRONG_RESULT, since 1.3
   * ASSAY_VERIFIED_IN_PART, or, if nothing can be checked, ASSAY_UNSUPPORTED; with text. After finish; may run further
   * steps and spoil the state. May block. */
  assay_status (*verify)(assay_workload_self*, const assay_launch*) ASSAY_NOEXCEPT;
  /* [main-thread] May be NULL. Valid after create. */
  assay_status (*work)(const assay_workload_self*, assay_work* out) ASSAY_NOEXCEPT;
  /* [any-thread] May be NULL. Unknown ids give NULL. */
  const void* (*get_extension)(const assay_workload_self*, const char* id)ASSAY_NOEXCEPT;
  /* Since 1.2. NULL if preset_count is 0. */
  const assay_preset* const* presets;
  uint32_t preset_count;
  uint32_t flags; /* ASSAY_WORKLOAD_... */
} assay_workload;

#define ASSAY_WORKLOAD_COLD_START 1u /* obeys assay_case.prepare */
/* Since 1.3. Its ranks work together: they divide the work of a step, or communicate. Without this flag each rank does
 * the whole work, and the host starts several only if the user asks for copies. */
#define ASSAY_WORKLOAD_RANKS_COOPERATE 2u
/* Since 1.4. An experiment may give it parameters of any type beyond its table, which get_bool and the others read, and
 * it may name further phases and metrics (assay.names/1). It refuses in create a parameter that it does not use, which
 * may be a typo. A host before 1.4 knows no such parameters. */
#define ASSAY_WORKLOAD_OPEN 4u
/* Since 1.5. Other processes carry out its steps, which are over when run() returns. The host then times them by its
 * clock, opens the device only for observation (assay/observation.h) and touches it in no step: assay_launch.stream is
 * NULL. A host before 1.5 marks and awaits each step on the device. */
#define ASSAY_WORKLOAD_STEPS_ELSEWHERE 8u

#define ASSAY_ANY_DEVICE 0u
#define ASSAY_DEVICE_CPU 1u
#define ASSAY_DEVICE_CUDA 2u

/* The one exported symbol. Constant data: read without running plugin code. */
typedef struct assay_entry {
  size_t struct_size;
  uint32_t abi_major, abi_minor; /* the version that the plugin was compiled against */
  uint32_t min_host_minor;       /* the oldest host this plugin accepts; an older one refuses it */
  uint32_t workload_count;
  const char* id;      /* "org.example.axpy" */
  const char* version; /* "1.2.0" */
  const char* build;   /* "g++ 12.2 Release" */
  const assay_workload* const* workloads;
  assay_status (*init)(const assay_host*) ASSAY_NOEXCEPT; /* [main-thread] may be NULL */
  void (*deinit)(void) ASSAY_NOEXCEPT;                    /* [main-thread] may be NULL; joins every plugin thread */
} assay_entry;

#define ASSAY_ENTRY_SYMBOL "assay_entry_v1"
extern ASSAY_EXPORT const assay_entry assay_entry_v1;

#ifdef __cplusplus
}
#endif
#endif
