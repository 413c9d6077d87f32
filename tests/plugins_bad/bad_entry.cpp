// One plugin per way to be unsound at the border itself, before any of its code runs; BAD_<RULE>, set by the build,
// chooses it.
#include <assay/plugin.hpp>

namespace {

struct Idle {
  static constexpr auto id = "idle", summary = "does nothing";
  explicit Idle(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};

// Rows that the C++ layer does not compile, as C may have them.
#if defined(BAD_DUPLICATE_PARAMS)
constexpr assay::Param n = assay::Param::integer("n", 1);
constexpr const assay_param* params[] = {&n.row, &n.row};
#elif defined(BAD_WORDS_OF_A_STEP)
constexpr auto dtypes = assay::names("fp32", "bf16");
constexpr assay_metric words_of_a_step() {
  assay_metric metric = assay::Metric::word("dtype", dtypes).row;
  metric.scope = ASSAY_PER_STEP;
  return metric;
}
constexpr assay_metric word = words_of_a_step();
constexpr const assay_metric* metrics[] = {&word};
#endif

constexpr assay_workload with_rows() {
  assay_workload workload = *assay::detail::workload_pointers<Idle>[0];
#if defined(BAD_DUPLICATE_PARAMS)
  workload.params = params, workload.param_count = 2;
#elif defined(BAD_WORDS_OF_A_STEP)
  workload.metrics = metrics, workload.metric_count = 1;
#endif
  return workload;
}
constexpr assay_workload idle = with_rows();
constexpr const assay_workload* workloads[] = {&idle};

constexpr assay_entry sound() {
  assay_entry entry{};
  entry.struct_size = sizeof(assay_entry);
  entry.abi_major = ASSAY_ABI_MAJOR;
  entry.abi_minor = ASSAY_ABI_MINOR;
  entry.workload_count = 1;
  entry.id = "org.assay.test.bad_entry";
  entry.version = "1.0.0";
  entry.build = ASSAY_BUILD_INFO;
  entry.workloads = workloads;
  return entry;
}

#if defined(BAD_NULL_WORKLOADS)
constexpr const assay_workload* no_workload[] = {nullptr};
#endif

constexpr assay_entry changed() {
  assay_entry entry = sound();
#if defined(BAD_NEWER_MAJOR_FIELD)
  entry.abi_major = 2;
#elif defined(BAD_NEEDS_NEWER_HOST)
  entry.min_host_minor = 99;
#elif defined(BAD_SHORT_STRUCT)
  entry.struct_size = 16;
#elif defined(BAD_NULL_WORKLOADS)
  entry.workloads = no_workload;
#elif defined(BAD_NULL_TABLE)
  entry.workloads = nullptr;
#endif
  return entry;
}

}  // namespace

#if defined(BAD_UNDEFINED_SYMBOL)
extern "C" void assay_test_symbol_that_nobody_defines();
// Referred to by code that is kept: the loader must refuse it before anything runs.
extern "C" ASSAY_EXPORT void assay_test_caller() { assay_test_symbol_that_nobody_defines(); }
#endif

#if defined(BAD_MISSING_SYMBOL)
extern "C" ASSAY_EXPORT constinit const assay_entry assay_some_other_name = changed();
#elif defined(BAD_NEWER_MAJOR)
extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v2 = changed();
#else
extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v1 = changed();
#endif
