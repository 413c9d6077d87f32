// What is not to compile, and why: mistakes_test.sh compiles this file once for each of the parts below. Each of its
// mistakes is named by the line above it, "// PART: beginning of the sentence"; the compiler must find these, each as
// often as it stands here, and nothing else. Without a part the file is right, and compiles without a warning.
#include <assay/plugin.hpp>

#include <limits>
#include <string>

namespace {

using assay::Launch;
using assay::LaunchOf;
using assay::Metric;
using assay::Param;
using assay::Preset;
using assay::table;

// What every workload has.
struct Plain {
  static constexpr auto id = "plain", summary = "what is right about all of them";
  explicit Plain(const assay::Case&) {}
  void setup(const Launch&) {}
  void run(const Launch&) {}
};

enum class Pass { forward, backward };
constexpr auto passes = assay::choices<Pass>({{"forward", Pass::forward}, {"backward", Pass::backward}});
constexpr auto words = assay::names("fp32", "bf16");

// All that there is, as it should be. Names of its own that resemble the layer's are no mistakes.
class Sound : public Plain {
 public:
  static constexpr auto item_unit = "tokens";
  static constexpr auto params =
      table(Param::integer("n", 1).at_least(1).at_most(8), Param::real("rate", 0.5), Param::text("file", ""),
            Param::integer("needed", 0).at_least(1).required(), Param::choice("pass", Pass::forward, passes),
            Param::choice("dtype", "fp32", words), Param::boolean("on", true));
  static constexpr auto presets = table(Preset::integer("pass", "backward", "n", 8));
  static constexpr auto forward = assay::phase("forward"), backward = assay::phase("backward");
  static constexpr auto phases = table(forward, backward);
  static constexpr auto loss = Metric::per_step("loss").unit("nats").lower_is_better().help("of a step");
  static constexpr auto pass_taken = Metric::word("pass_taken", passes).help("which it was");
  static constexpr auto format = Metric::word("format", words);
  static constexpr auto metrics = table(loss, pass_taken, format);
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU, min_host_minor = 2;
  static constexpr bool ranks_cooperate = true, cold_start = true;
  using Plain::Plain;

  void run(const LaunchOf<Sound>& launch) {
    const auto phase = launch.phase(stage);
    const auto inner = launch.phase(backward);
    launch.report(loss, 1);
    launch.report(pass_taken, Pass::backward);
    launch.report(format, "bf16");
    stage = phase_of(forward);
  }
  void finish(const Launch&) {}
  assay::Verified verify(const LaunchOf<Sound>&) { return {"all of it", flags > 0}; }
  assay::Work work() const { return {}; }
  assay::Peak peak(const Launch&) { return {}; }
  void silence(bool) {}
  const void* extension(const char*) const { return nullptr; }

  static constexpr auto phase = assay::phase("none of the table");
  [[maybe_unused]] static constexpr const char* unit = "s";
  int flags = 0, devices = 0;
  double metric(double x) const { return x; }

 private:
  static assay::PhaseIn<Sound> phase_of(assay::PhaseIn<Sound> row) { return row; }
  assay::PhaseIn<Sound> stage = forward;
};
static_assert(sizeof(assay::detail::Adapter<Sound>) > 0);

// From which none derives.
struct Final final : Plain {
  using Plain::Plain;
  std::string verify(const Launch&) { return ""; }
};
static_assert(sizeof(assay::detail::Adapter<Final>) > 0);

// Of a workload without handles numbers are right.
struct ByNumber : Plain {
  static constexpr auto phases = assay::names("forward");
  using Plain::Plain;
  void run(const auto& launch) {
    const auto phase = launch.phase(0);
    launch.metric(0u, 1.0);
  }
};
static_assert(sizeof(assay::detail::Adapter<ByNumber>) > 0);

// One table for several classes.
struct Reports {
  static constexpr auto loss = Metric::per_case("loss");
  static constexpr auto metrics = table(loss);
};
struct Uses : Plain, Reports {
  using Plain::Plain;
  void run(const LaunchOf<Reports>& launch) { launch.report(loss, 2); }
};
static_assert(sizeof(assay::detail::Adapter<Uses>) > 0);

// For code that several workloads share.
constexpr auto shared = Metric::per_case("shared");
template <class Workload>
void report_shared(const LaunchOf<Workload>& launch) {
  launch.report(shared, 1.0);
}
struct Shares : Plain {
  static constexpr auto metrics = table(Metric::per_case("first"), shared);
  using Plain::Plain;
  void run(const LaunchOf<Shares>& launch) { report_shared(launch); }
};
static_assert(sizeof(assay::detail::Adapter<Shares>) > 0);

#define WORKLOAD(name, ...) \
  struct name : Plain {     \
    using Plain::Plain;     \
    __VA_ARGS__             \
  };                        \
  static_assert(sizeof(assay::detail::Adapter<name>) > 0)
#define PARAMS(name, ...) WORKLOAD(name, static constexpr auto params = table(__VA_ARGS__);)
#define METRICS(name, ...) WORKLOAD(name, static constexpr auto metrics = table(__VA_ARGS__);)

#if defined(TABLES)
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto with_null = std::array<const char*, 2>{"one", nullptr};
constexpr auto twice = assay::names("one", "two", "one");
constexpr auto blank = assay::names("two words");

// TABLES: the default of a parameter is outside its at_least and at_most
PARAMS(BelowMinimum, Param::integer("n", 0).at_least(1));
// TABLES: the default of a parameter is outside its at_least and at_most
PARAMS(AboveMaximum, Param::real("x", 2).at_most(1));
// TABLES: the default of a parameter is none of its choices
PARAMS(NoChoice, Param::choice("dtype", "fp64", words));
// TABLES: the default of a real parameter is not a number
PARAMS(NanDefault, Param::real("x", nan));
// TABLES: a bound of a parameter is not a number
PARAMS(NanBound, Param::real("x", 1).at_least(nan).required());
// TABLES: at_least of a parameter is above its at_most
PARAMS(NoRange, Param::integer("n", 2).at_least(3).at_most(1).required());
// TABLES: at_least and at_most are for integer and real parameters
PARAMS(BoundedText, Param::text("t", "").at_least(1));
// TABLES: the default of a text parameter is NULL
PARAMS(NullDefault, Param::text("t", nullptr));
// TABLES: a choice of a parameter is NULL
PARAMS(NullChoice, Param::choice("c", "one", with_null));
// TABLES: a parameter has the same choice twice
PARAMS(SameChoice, Param::choice("c", "one", twice));
// TABLES: the name of a parameter is of letters, digits, '_', '-' and '.'
PARAMS(TwoWords, Param::integer("two words", 1));
// TABLES: the name of a parameter is of letters, digits, '_', '-' and '.'
PARAMS(NoName, Param::integer("", 1));
// TABLES: a parameter has the name of another parameter or of a metric
// TABLES: a parameter has the name of another parameter or of a metric
PARAMS(SameParam, Param::integer("n", 1), Param::real("n", 1));
// TABLES: a parameter has the name of a column that the host's tables have
PARAMS(ColumnOfHost, Param::integer("status", 1));
// TABLES: a parameter has the name of a column that the host's tables have
PARAMS(Setting, Param::integer("measure.steps", 1));
// TABLES: a metric has the name of a column that the host's tables have
WORKLOAD(ItemRate, static constexpr auto item_unit = "tokens";
         static constexpr auto metrics = table(Metric::per_case("j_per_token")););
// TABLES: a metric has the name of a column that the host's tables have
METRICS(Statistic, Metric::per_step("loss"), Metric::per_case("loss.mean"));
// TABLES: the name of a metric is of letters, digits, '_', '-' and '.'
METRICS(BadName, Metric::per_case("GB/s"));
// TABLES: a metric has the name of another metric or of a parameter
WORKLOAD(LikeItsParam,
         // TABLES: a parameter has the name of another parameter or of a metric
         static constexpr auto params = table(Param::integer("n", 1));
         static constexpr auto metrics = table(Metric::per_case("n")););
// TABLES: a word of a metric is of letters, digits, '_', '-' and '.'
METRICS(BlankWord, Metric::word("dtype", blank));
// TABLES: a metric has the same word twice
METRICS(SameWord, Metric::word("dtype", twice));
constexpr Metric word_of_a_step() {
  Metric metric = Metric::word("dtype", words);
  metric.row.scope = ASSAY_PER_STEP;
  return metric;
}
// TABLES: a metric of words is per case
METRICS(WordOfAStep, word_of_a_step());
// TABLES: the name of a phase is of letters, digits, '_', '-' and '.'
WORKLOAD(BadPhase, static constexpr auto phases = table(assay::phase("a+b")););
// TABLES: a phase has the name of another phase
WORKLOAD(SamePhase, static constexpr auto phases = assay::names("a", "a"););
// TABLES: a phase has the name of the host's 'step'
WORKLOAD(StepPhase, static constexpr auto phases = table(assay::phase("step")););
// TABLES: a preset is for a choice that no parameter has
WORKLOAD(NoSuchChoice, static constexpr auto params = table(Param::choice("c", "fp32", words), Param::integer("n", 1));
         static constexpr auto presets = table(Preset::integer("c", "fp64", "n", 1)););
// TABLES: a preset sets what is no parameter
WORKLOAD(NoSuchParam, static constexpr auto params = table(Param::choice("c", "fp32", words));
         static constexpr auto presets = table(Preset::integer("c", "bf16", "n", 1)););
// TABLES: a preset sets a parameter to a value outside its range or choices
WORKLOAD(OutOfRange,
         static constexpr auto params = table(Param::choice("c", "fp32", words), Param::integer("n", 1).at_most(2));
         static constexpr auto presets = table(Preset::integer("c", "bf16", "n", 3)););
// TABLES: a preset has a value of another type than its parameter
WORKLOAD(IntegerForReal,
         static constexpr auto params = table(Param::choice("c", "fp32", words), Param::real("x", 1).at_least(1));
         static constexpr auto presets = table(Preset::integer("c", "bf16", "x", 3)););
// TABLES: a preset has a value of another type than its parameter
WORKLOAD(RealForInteger,
         static constexpr auto params = table(Param::choice("c", "fp32", words), Param::integer("n", 1));
         static constexpr auto presets = table(Preset::real("c", "bf16", "n", 3)););
// TABLES: a preset has a value of another type than its parameter
WORKLOAD(IntegerForBoolean,
         static constexpr auto params = table(Param::choice("c", "fp32", words), Param::boolean("on", false));
         static constexpr auto presets = table(Preset::integer("c", "bf16", "on", 2)););
// TABLES: a preset has a value of another type than its parameter
WORKLOAD(NumberForText, static constexpr auto params = table(Param::choice("c", "fp32", words), Param::text("t", ""));
         static constexpr auto presets = table(Preset::integer("c", "bf16", "t", 3)););
// TABLES: the names that a parameter may have are kept nowhere
PARAMS(NamesInPlace, Param::choice("dtype", "fp32", assay::names("fp32", "bf16")));
// TABLES: the names that a parameter may have are kept nowhere
PARAMS(ChoicesInPlace, Param::choice("pass", Pass::forward, assay::choices<Pass>({{"forward", Pass::forward}})));
// TABLES: the words of a metric are kept nowhere
METRICS(WordsInPlace, Metric::word("dtype", assay::names("fp32", "bf16")));
// TABLES: the words of a metric are kept nowhere
METRICS(WordChoicesInPlace, Metric::word("pass", assay::choices<Pass>({{"forward", Pass::forward}})));
#endif

#if defined(MEMBERS)
// MEMBERS: verify is a public function std::string verify
WORKLOAD(VerifiesNothing, void verify(const Launch&){});
// MEMBERS: verify is a public function std::string verify
WORKLOAD(
    VerifiesWithoutLaunch, std::string verify() { return ""; });
// MEMBERS: verify is a public function std::string verify
WORKLOAD(
    VerifiesInPrivate, private
    : std::string verify(const Launch&) { return ""; });
// MEMBERS: finish is a public function void finish
WORKLOAD(FinishesWithoutLaunch, void finish(){});
// MEMBERS: work is a public function assay::Work work() const
WORKLOAD(
    ChangingWork, assay::Work work() { return {}; });
// MEMBERS: peak is a public function assay::Peak peak
WORKLOAD(
    PeakWithoutLaunch, assay::Peak peak() { return {}; });
// MEMBERS: silence is a public function void silence(bool)
WORKLOAD(SilenceWithoutFlag, void silence(){});
// MEMBERS: extension is a public function const void* extension(const char* id) const
WORKLOAD(
    ChangingExtension, const void* extension(const char*) { return nullptr; });
// MEMBERS: a workload has a public function void setup
WORKLOAD(SetupWithoutLaunch, void setup(){});
// MEMBERS: a workload has a public function void run
WORKLOAD(
    RunsByStatus, int run(const Launch&) { return 0; });
// MEMBERS: a workload has a public constructor that takes const assay::Case&
struct FromNothing {
  static constexpr auto id = "x", summary = "x";
  void setup(const Launch&) {}
  void run(const Launch&) {}
};
static_assert(sizeof(assay::detail::Adapter<FromNothing>) > 0);
// MEMBERS: params is public and static constexpr
WORKLOAD(PrivateTable, private : static constexpr auto params = table(Param::integer("n", 1)););
// MEMBERS: cold_start is public and static constexpr bool
WORKLOAD(PrivateFlag, private : static constexpr bool cold_start = true;);
// MEMBERS: the table 'metric' is none that a workload is read for; its name is 'metrics'
WORKLOAD(MetricTable, static constexpr auto metric = table(Metric::per_case("loss")););
// MEMBERS: the table 'phase' is none that a workload is read for; its name is 'phases'
WORKLOAD(PhaseTable, static constexpr auto phase = assay::names("forward"););
// MEMBERS: the table 'param' is none that a workload is read for; its name is 'params'
WORKLOAD(ParamTable, static constexpr auto param = table(Param::integer("n", 1)););
// MEMBERS: the table 'preset' is none that a workload is read for; its name is 'presets'
WORKLOAD(PresetTable, static constexpr auto preset = table(Preset::integer("c", "a", "n", 1)););
// MEMBERS: the constant 'flags' is none that a workload is read for; its name is 'device_flags'
WORKLOAD(Flags, static constexpr auto flags = ASSAY_DEVICE_CPU;);
// MEMBERS: the constant 'rank_cooperate' is none that a workload is read for; its name is 'ranks_cooperate'
WORKLOAD(RankCooperate, static constexpr bool rank_cooperate = true;);
// MEMBERS: the function 'validate' is none that a workload is called by; its name is 'verify'
WORKLOAD(
    Validates, std::string validate(const Launch&) { return ""; });
// MEMBERS: two workloads of a plugin have the same id
constexpr auto same_ids = assay::detail::workload_count<Shares, Uses>();
// MEMBERS: init is void init(const assay::Host&), which may throw
constexpr auto init = assay::detail::init_of<[](int) {}>();
// MEMBERS: min_host_minor is above the version of this header
constexpr auto newer = assay::detail::min_host_minor_of_plugin<ASSAY_ABI_MINOR + 1, Plain>();
#endif

#if defined(HANDLES)
constexpr auto stray = Metric::per_case("stray");
constexpr auto stray_phase = assay::phase("stray");
constexpr auto other_loss = Metric::per_case("loss");

[[maybe_unused]] void report(const LaunchOf<Sound>& launch) {
  // HANDLES: this_metric_is_not_in_the_metrics_table_of_the_workload
  launch.report(stray, 1);
  // HANDLES: this_phase_is_not_in_the_phases_table_of_the_workload
  static_cast<void>(launch.phase(stray_phase));
  // HANDLES: the_metrics_table_of_the_workload_has_this_name_with_another_meaning
  launch.report(other_loss, 1);
  // HANDLES: this_metric_is_a_word_and_is_reported_by_one_of_its_words
  launch.report(Sound::format, 1);
  // HANDLES: this_metric_is_a_number_and_has_no_words
  launch.report(Sound::loss, "fp32");
  // HANDLES: a phase of this workload is marked by its handle, not by a number
  static_cast<void>(launch.phase(0));
  // HANDLES: this_metric_is_not_in_the_metrics_table_of_the_workload
  report_shared(launch);
}
[[maybe_unused]] void report_untyped(const Launch& launch) {
  // HANDLES: the row of a handle is in the tables of a workload: take const assay::LaunchOf<Workload>&
  launch.report(Sound::loss, 1);
  // HANDLES: the row of a handle is in the tables of a workload: take const assay::LaunchOf<Workload>&
  static_cast<void>(launch.phase(Sound::forward));
  // HANDLES: metric() takes a place in the table of metrics
  launch.metric(Sound::loss, 1);
}
[[maybe_unused]] void choose() {
  // HANDLES: two_choices_have_the_same_name
  static_cast<void>(assay::choices<Pass>({{"a", Pass::forward}, {"a", Pass::backward}}));
  // HANDLES: the_default_of_a_choice_is_none_of_its_values
  static_cast<void>(Param::choice("pass", static_cast<Pass>(7), passes));
}
#endif

}  // namespace

ASSAY_PLUGIN("org.example.sound", "1.0.0", Sound)
