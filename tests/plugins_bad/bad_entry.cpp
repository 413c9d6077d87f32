// One plugin per way to be unsound at the border itself, before any of its code runs; BAD_<RULE>, set by the build,
// chooses it.
#include <assay/plugin.hpp>

namespace {

#if defined(BAD_WORDS_OF_A_STEP)
constexpr auto dtypes = assay::names("fp32", "bf16");
constexpr assay::Metric words_of_a_step() {
  assay::Metric metric = assay::Metric::word("dtype", dtypes, "");
  metric.row.scope = ASSAY_PER_STEP;
  return metric;
}
#endif

struct Idle {
  static constexpr auto id = "idle", summary = "does nothing";
#if defined(BAD_DUPLICATE_PARAMS)
  static constexpr auto params = assay::table(assay::Param::integer("n", 1), assay::Param::integer("n", 2));
#endif
#if defined(BAD_WORDS_OF_A_STEP)
  static constexpr auto metrics = assay::table(words_of_a_step());
#endif
  explicit Idle(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};

constexpr assay_entry sound() {
  assay_entry entry{};
  entry.struct_size = sizeof(assay_entry);
  entry.abi_major = ASSAY_ABI_MAJOR;
  entry.abi_minor = ASSAY_ABI_MINOR;
  entry.workload_count = 1;
  entry.id = "org.assay.test.bad_entry";
  entry.version = "1.0.0";
  entry.build = ASSAY_BUILD_INFO;
  entry.workloads = assay::detail::workload_pointers<Idle>.data();
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
