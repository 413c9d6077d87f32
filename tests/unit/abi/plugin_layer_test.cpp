// What the C++ layer does between a workload and the host: values are read in the range of their type, a choice as what
// it means, handles reach the host as the places of their rows, and the functions of a whole plugin stand in its entry.
#include <assay/plugin.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

// ---- a host that has what a test gives it ----

std::map<std::string, std::int32_t> flags;
std::map<std::string, std::int64_t> integers;
std::map<std::string, double> reals;
std::map<std::string, std::string> texts;
std::string message;

template <class Values, class Out>
assay_status look_up(const Values& values, assay_str key, Out* out) {
  const auto found = values.find(std::string(from_abi(key)));
  if (found == values.end()) return ASSAY_INVALID_ARGUMENT;
  *out = found->second;
  return ASSAY_OK;
}
assay_status get_bool(const assay_config*, assay_str key, std::int32_t* out) noexcept {
  return look_up(flags, key, out);
}
assay_status get_int(const assay_config*, assay_str key, std::int64_t* out) noexcept {
  return look_up(integers, key, out);
}
assay_status get_float(const assay_config*, assay_str key, double* out) noexcept { return look_up(reals, key, out); }
assay_status get_string(const assay_config*, assay_str key, assay_str* out) noexcept {
  const auto found = texts.find(std::string(from_abi(key)));
  if (found == texts.end()) return ASSAY_INVALID_ARGUMENT;
  *out = to_abi(found->second);
  return ASSAY_OK;
}
void set_message(const assay_host*, assay_status, assay_str text) noexcept { message = std::string(from_abi(text)); }

assay_host make_host() {
  assay_host host{};
  host.struct_size = sizeof host;
  host.set_message = set_message;
  host.get_bool = get_bool;
  host.get_int = get_int;
  host.get_float = get_float;
  host.get_string = get_string;
  return host;
}
const assay_host host = make_host();
const assay_case of_host{};
const Case a_case(&host, &of_host);

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    return e.what();
  }
  return "";
}
template <class T>
std::string refused_integer(std::int64_t value) {
  integers["n"] = value;
  return refusal([] { static_cast<void>(a_case.get<T>("n")); });
}
template <class T>
T taken_integer(std::int64_t value) {
  integers["n"] = value;
  return a_case.get<T>("n");
}

// ---- values ----

TEST(CaseGet, AnIntegerIsInTheRangeOfItsType) {
  EXPECT_EQ(taken_integer<int>(2147483647), 2147483647);
  EXPECT_EQ(taken_integer<int>(-2147483648), std::numeric_limits<int>::min());
  EXPECT_EQ(refused_integer<int>(4294967297),
            "parameter 'n' is 4294967297, but the workload reads it as a number from -2147483648 to 2147483647");
  EXPECT_NE(refused_integer<int>(2147483648), "");
  EXPECT_NE(refused_integer<int>(-2147483649), "");
  EXPECT_EQ(taken_integer<std::size_t>(0), 0u);
  EXPECT_EQ(taken_integer<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), 9223372036854775807u);
  EXPECT_EQ(refused_integer<std::size_t>(-1),
            "parameter 'n' is -1, but the workload reads it as a number from 0 to 18446744073709551615");
  EXPECT_EQ(taken_integer<std::uint8_t>(255), 255);
  EXPECT_EQ(refused_integer<std::uint8_t>(256),
            "parameter 'n' is 256, but the workload reads it as a number from 0 to 255");
  EXPECT_EQ(taken_integer<char>(65), 'A');
  EXPECT_EQ(taken_integer<std::int64_t>(std::numeric_limits<std::int64_t>::min()),
            std::numeric_limits<std::int64_t>::min());
}

TEST(CaseGet, ARealIsInTheRangeOfItsType) {
  const auto refused = [](double value) {
    reals["x"] = value;
    return refusal([] { static_cast<void>(a_case.get<float>("x")); });
  };
  EXPECT_EQ(refused(1e39),
            "parameter 'x' is 1e+39, but the workload reads it as a number from -3.40282347e+38 to 3.40282347e+38");
  EXPECT_NE(refused(-1e39), "");
  EXPECT_EQ(refused(static_cast<double>(std::numeric_limits<float>::max())), "");
  EXPECT_EQ(refused(0.1), "");
  // A float has these, too.
  EXPECT_EQ(refused(std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(refused(std::numeric_limits<double>::quiet_NaN()), "");
  reals["x"] = 1e300;
  EXPECT_EQ(a_case.get<double>("x"), 1e300);
}

TEST(CaseGet, WhatTheTableDoesNotHaveIsRefused) {
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.get<int>("nothing")); }),
            "the workload asks for parameter 'nothing' as integer, but its own table has no such parameter");
}

TEST(CaseGet, AnotherTypeThanTheTablesIsRefusedWithBoth) {
  flags["on"] = 1;
  integers["count"] = 3;
  reals["rate"] = 0.5;
  texts["word"] = "a";
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.get<int>("rate")); }),
            "the workload asks for parameter 'rate' as integer, but its own table has it as real");
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.get<double>("count")); }),
            "the workload asks for parameter 'count' as real, but its own table has it as integer");
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.get<std::string>("on")); }),
            "the workload asks for parameter 'on' as text, but its own table has it as boolean");
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.get<bool>("word")); }),
            "the workload asks for parameter 'word' as boolean, but its own table has it as text");
}

// ---- choices ----

enum class Pass { forward, backward };
constexpr auto passes =
    choices<Pass>({{"backward", Pass::backward}, {"forward", Pass::forward}, {"fwd", Pass::forward}});
constexpr auto pass_names = names("forward", "backward");

TEST(CaseChoice, IsWhatItsNameMeans) {
  texts["pass"] = "backward";
  EXPECT_EQ(a_case.choice("pass", passes), Pass::backward);
  EXPECT_EQ(a_case.choice<Pass>("pass", pass_names), Pass::backward);
  EXPECT_EQ(a_case.choice("pass", pass_names), pass_names[1]);
  texts["pass"] = "fwd";
  EXPECT_EQ(a_case.choice("pass", passes), Pass::forward);
}

TEST(CaseChoice, ThatIsNoneIsRefusedWithThoseThatThereAre) {
  texts["pass"] = "sideways";
  const std::string text = "parameter 'pass' is \"sideways\"; expected one of \"backward\", \"forward\", \"fwd\"";
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.choice("pass", passes)); }), text);
  EXPECT_EQ(refusal([] { static_cast<void>(a_case.choice<Pass>("pass", pass_names)); }),
            "parameter 'pass' is \"sideways\"; expected one of \"forward\", \"backward\"");
  EXPECT_NE(refusal([] { static_cast<void>(a_case.choice("pass", pass_names)); }), "");
}

TEST(Choices, AreTheRowOfAParameter) {
  constexpr Param param = Param::choice("pass", Pass::forward, passes).help("of a step");
  EXPECT_STREQ(param.row.default_string, "forward");
  ASSERT_EQ(param.row.choice_count, 3u);
  EXPECT_EQ(param.row.choices, passes.names.data());
  EXPECT_STREQ(passes.name_of(Pass::backward), "backward");
  EXPECT_EQ(passes.name_of(static_cast<Pass>(7)), nullptr);
}

// ---- handles ----

struct Marks {
  std::vector<std::pair<std::uint32_t, double>> metrics;
  std::vector<std::uint32_t> begun, ended;
};
Marks marks;

assay_launch make_launch() {
  assay_launch launch{};
  launch.struct_size = sizeof launch;
  launch.phase_begin = [](const assay_launch*, std::uint32_t phase) noexcept { marks.begun.push_back(phase); };
  launch.phase_end = [](const assay_launch*, std::uint32_t phase) noexcept { marks.ended.push_back(phase); };
  launch.metric = [](const assay_launch*, std::uint32_t metric, double value) noexcept {
    marks.metrics.emplace_back(metric, value);
  };
  return launch;
}
const assay_launch of_launch = make_launch();

constexpr auto shared = Metric::per_case("shared");

struct Trains {
  static constexpr auto id = "trains", summary = "reports and marks";
  static constexpr auto forward = phase("forward"), backward = phase("backward");
  static constexpr auto phases = table(forward, backward);
  static constexpr auto loss = Metric::per_step("loss").unit("nats").lower_is_better().help("of a step");
  static constexpr auto rate = Metric::per_case("rate").unit("GB/s").higher_is_better();
  static constexpr auto pass = Metric::word("pass", passes).help("which it was");
  static constexpr auto format = Metric::word("format", pass_names);
  static constexpr auto metrics = table(loss, rate, pass, format, shared);
  explicit Trains(const Case&) {}
  void setup(const Launch&) {}
  void run(const LaunchOf<Trains>&) {}
};

TEST(Handles, AreTheRowsOfTheTable) {
  const assay_workload& workload = *detail::workload_pointers<Trains>[0];
  ASSERT_EQ(workload.phase_count, 2u);
  EXPECT_STREQ(workload.phases[1], "backward");
  ASSERT_EQ(workload.metric_count, 5u);
  EXPECT_STREQ(workload.metrics[0]->unit, "nats");
  EXPECT_STREQ(workload.metrics[0]->help, "of a step");
  EXPECT_EQ(workload.metrics[0]->direction, ASSAY_LOWER_IS_BETTER);
  EXPECT_EQ(workload.metrics[0]->scope, ASSAY_PER_STEP);
  EXPECT_EQ(workload.metrics[1]->direction, ASSAY_HIGHER_IS_BETTER);
  EXPECT_EQ(workload.metrics[1]->scope, ASSAY_PER_CASE);
  EXPECT_EQ(workload.metrics[2]->word_count, 3u);
  EXPECT_STREQ(workload.metrics[2]->help, "which it was");
  EXPECT_EQ(workload.metrics[3]->direction, ASSAY_NEITHER_IS_BETTER);
}

template <class Workload>
void report_shared(const LaunchOf<Workload>& launch) {
  launch.report(shared, std::size_t{7});
}

TEST(Handles, ReachTheHostAsTheirPlaces) {
  marks = {};
  const LaunchOf<Trains> launch(&of_launch);
  launch.report(Trains::rate, 2.5);
  launch.report(Trains::loss, 3);
  launch.report(Trains::pass, Pass::forward);
  launch.report(Trains::format, "backward");
  report_shared(launch);
  EXPECT_EQ(marks.metrics, (std::vector<std::pair<std::uint32_t, double>>{{1, 2.5}, {0, 3}, {2, 1}, {3, 1}, {4, 7}}));
  {
    const auto outer = launch.phase(Trains::backward);
    const auto inner = launch.phase(Trains::forward);
  }
  EXPECT_EQ(marks.begun, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(marks.ended, (std::vector<std::uint32_t>{0, 1}));
}

TEST(Handles, MayBeArgumentsOfFunctions) {
  marks = {};
  const LaunchOf<Trains> launch(&of_launch);
  const auto timed = [&](PhaseIn<Trains> which) {
    const auto mark = launch.phase(which);
    return which == Trains::backward;
  };
  EXPECT_FALSE(timed(Trains::forward));
  EXPECT_TRUE(timed(Trains::backward));
  const auto report = [&](MetricIn<Trains> metric) { launch.report(metric, 1); };
  report(Trains::rate);
  EXPECT_EQ(marks.begun, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(marks.metrics.at(0).first, 1u);
}

TEST(Handles, AWordThatAMetricDoesNotHaveIsAnError) {
  const LaunchOf<Trains> launch(&of_launch);
  EXPECT_THROW(launch.report(Trains::format, "sideways"), Error);
  EXPECT_THROW(launch.report(Trains::pass, static_cast<Pass>(7)), Error);
}

// ---- the plugin as a whole ----

int inits = 0, deinits = 0;
bool fails_in_init = false;
void init(const Host& of_plugin) {
  EXPECT_EQ(of_plugin.abi(), &host);
  if (fails_in_init) throw Error(ASSAY_UNSUPPORTED, "not here");
  ++inits;
}
void deinit() { ++deinits; }
assay_status init_of_c(const assay_host*) noexcept { return ASSAY_OK; }
void deinit_of_c() noexcept {}

TEST(PluginEx, FunctionsOfCStandAsTheyAre) {
  EXPECT_EQ(detail::init_of<init_of_c>(), &init_of_c);
  EXPECT_EQ(detail::deinit_of<deinit_of_c>(), &deinit_of_c);
  EXPECT_EQ(detail::init_of<nullptr>(), nullptr);
  EXPECT_EQ(detail::deinit_of<nullptr>(), nullptr);
}

TEST(PluginEx, TheOldestHostIsTheNewerOfWhatIsStatedAndNeeded) {
  EXPECT_EQ((detail::min_host_minor_of_plugin<0, Trains>()), 1u);  // its words need 1.1
  EXPECT_EQ((detail::min_host_minor_of_plugin<2, Trains>()), 2u);
}

}  // namespace
}  // namespace assay

ASSAY_PLUGIN_EX("org.assay.test.plugin_layer", "1.2.3", assay::init, assay::deinit, 3, assay::Trains)

namespace assay {
namespace {

TEST(PluginEx, StandsInTheEntry) {
  EXPECT_STREQ(assay_entry_v1.id, "org.assay.test.plugin_layer");
  EXPECT_STREQ(assay_entry_v1.version, "1.2.3");
  EXPECT_EQ(assay_entry_v1.min_host_minor, 3u);
  EXPECT_EQ(assay_entry_v1.workload_count, 1u);
  EXPECT_EQ(assay_entry_v1.init(&host), ASSAY_OK);
  EXPECT_EQ(inits, 1);
  assay_entry_v1.deinit();
  EXPECT_EQ(deinits, 1);
}

TEST(PluginEx, WhatInitThrowsIsAStatusWithItsText) {
  fails_in_init = true;
  EXPECT_EQ(assay_entry_v1.init(&host), ASSAY_UNSUPPORTED);
  EXPECT_EQ(message, "not here");
  fails_in_init = false;
}

}  // namespace
}  // namespace assay
