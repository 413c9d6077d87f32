// Checks the members of a workload at compile time. The optional ones are found by their names, so a misspelt name or a
// wrong signature would silently leave a workload without, for example, a verification.
#pragma once
#include <assay/plugin/case.hpp>
#include <assay/plugin/launch.hpp>
#include <assay/plugin/results.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace assay::detail {

// The required form of a member, if it exists.
template <class W>
concept HasSetup = requires(W& w, LaunchOf<W>&& launch) {
  { w.setup(std::move(launch)) } -> std::same_as<void>;
};
template <class W>
concept HasRun = requires(W& w, LaunchOf<W>&& launch) {
  { w.run(std::move(launch)) } -> std::same_as<void>;
};
template <class W>
concept HasFinish = requires(W& w, LaunchOf<W>&& launch) {
  { w.finish(std::move(launch)) } -> std::same_as<void>;
};
template <class W>
concept HasVerify = requires(W& w, LaunchOf<W>&& launch) {
  Verified(w.verify(std::move(launch)));
};
template <class W>
concept HasWork = requires(const W& w) {
  Work(w.work());
};
template <class W>
concept HasPeak = requires(W& w, LaunchOf<W>&& launch) {
  Peak(w.peak(std::move(launch)));
};
template <class W>
concept HasSilence = requires(W& w) {
  { w.silence(true) } -> std::same_as<void>;
};
template <class W>
concept HasAccount = requires(W& w, LaunchOf<W>&& launch) {
  Account(w.account(std::move(launch)));
};
template <class W>
concept HasOpenAccount = requires(W& w, LaunchOf<W>&& launch) {
  { w.open_account(std::move(launch)) } -> std::same_as<void>;
};
template <class W>
concept HasRestart = requires(W& w, LaunchOf<W>&& launch) {
  { w.restart(std::move(launch)) } -> std::same_as<void>;
};
template <class W>
concept HasPlan = requires(const W& w, const Planning& planning) {
  { w.plan(planning) } -> std::same_as<void>;
};
template <class W>
concept HasExtension = requires(const W& w, const char* id) {
  { w.extension(id) } -> std::convertible_to<const void*>;
};

// Is there a member of this name, of any kind? In a class that inherits it from two sides the name means nothing. In a
// class from which none can derive, only public and not overloaded members are found.
#define ASSAY_DETAIL_FIND_MEMBER(name)                  \
  struct Named_##name {                                 \
    int name;                                           \
  };                                                    \
  template <class W>                                    \
  struct WithNamed_##name : W, Named_##name {};         \
  template <class W>                                    \
  constexpr bool is_there_##name() {                    \
    if constexpr (std::is_final_v<W>) return requires { \
        &W::name;                                       \
      };                                                \
    else                                                \
      return !requires { &WithNamed_##name<W>::name; }; \
  }
ASSAY_DETAIL_FIND_MEMBER(finish)
ASSAY_DETAIL_FIND_MEMBER(verify)
ASSAY_DETAIL_FIND_MEMBER(work)
ASSAY_DETAIL_FIND_MEMBER(peak)
ASSAY_DETAIL_FIND_MEMBER(silence)
ASSAY_DETAIL_FIND_MEMBER(account)
ASSAY_DETAIL_FIND_MEMBER(open_account)
ASSAY_DETAIL_FIND_MEMBER(restart)
ASSAY_DETAIL_FIND_MEMBER(plan)
ASSAY_DETAIL_FIND_MEMBER(extension)
ASSAY_DETAIL_FIND_MEMBER(params)
ASSAY_DETAIL_FIND_MEMBER(phases)
ASSAY_DETAIL_FIND_MEMBER(metrics)
ASSAY_DETAIL_FIND_MEMBER(presets)
ASSAY_DETAIL_FIND_MEMBER(item_unit)
ASSAY_DETAIL_FIND_MEMBER(device_flags)
ASSAY_DETAIL_FIND_MEMBER(ranks_cooperate)
ASSAY_DETAIL_FIND_MEMBER(cold_start)
ASSAY_DETAIL_FIND_MEMBER(is_open)
ASSAY_DETAIL_FIND_MEMBER(steps_elsewhere)
ASSAY_DETAIL_FIND_MEMBER(min_host_minor)
#undef ASSAY_DETAIL_FIND_MEMBER

template <class W>
concept HasId = requires {
  static_cast<const char*>(W::id);
  static_cast<const char*>(W::summary);
};

// Of `&W::name`: a static member, as tables and constants are; a number.
template <class Address>
concept OfStatic = std::is_pointer_v<Address> && !std::is_function_v<std::remove_pointer_t<Address>>;
template <class Address>
concept OfNumber = OfStatic<Address> && std::is_integral_v<std::remove_pointer_t<Address>>;

// A misspelt name of an optional member that is absent: of a table, of a constant, of a function.
#define ASSAY_DETAIL_NOT_A_TABLE(near, meant)   \
  static_assert(!(                              \
                    !requires { W::meant; } &&  \
                    requires {                  \
                      { &W::near } -> OfStatic; \
                      W::near[0];               \
                      W::near.size();           \
                    }),                         \
                "the table '" #near "' is none that a workload is read for; its name is '" #meant "'")
#define ASSAY_DETAIL_NOT_A_CONSTANT(near, meant) \
  static_assert(!(                               \
                    !requires { W::meant; } &&   \
                    requires {                   \
                      { &W::near } -> OfNumber;  \
                    }),                          \
                "the constant '" #near "' is none that a workload is read for; its name is '" #meant "'")
#define ASSAY_DETAIL_NOT_A_CALL(near, meant)                                                                        \
  static_assert(!(!is_there_##meant<W>() && requires(W & w, LaunchOf<W> && launch) { w.near(std::move(launch)); }), \
                "the function '" #near "' is none that a workload is called by; its name is '" #meant "'")

template <class W>
struct CheckedMembers {
  static_assert(std::is_class_v<W>, "a workload is a class");
  static_assert(HasId<W>, "a workload has static constexpr auto id = \"name\", summary = \"what it does\"");
  static_assert(std::is_constructible_v<W, Case>, "a workload has a public constructor that takes const assay::Case&");
  static_assert(HasSetup<W>,
                "a workload has a public function void setup(const assay::Launch&), or of assay::LaunchOf<Workload>");
  static_assert(HasRun<W>,
                "a workload has a public function void run(const assay::Launch&), or of assay::LaunchOf<Workload>");

  static_assert(!is_there_finish<W>() || HasFinish<W>,
                "finish is a public function void finish(const assay::Launch&), or of assay::LaunchOf<Workload>");
  static_assert(!is_there_verify<W>() || HasVerify<W>,
                "verify is a public function std::string verify(const assay::Launch&) or assay::Verified verify(...), "
                "or of assay::LaunchOf<Workload>; it returns what was checked, and throws what is wrong");
  static_assert(!is_there_work<W>() || HasWork<W>, "work is a public function assay::Work work() const");
  static_assert(!is_there_peak<W>() || HasPeak<W>,
                "peak is a public function assay::Peak peak(const assay::Launch&), or of assay::LaunchOf<Workload>");
  static_assert(!is_there_silence<W>() || HasSilence<W>, "silence is a public function void silence(bool)");
  static_assert(!is_there_account<W>() || HasAccount<W>,
                "account is a public function assay::Account account(const assay::Launch&), or of "
                "assay::LaunchOf<Workload>");
  static_assert(!is_there_open_account<W>() || (HasOpenAccount<W> && HasAccount<W>),
                "open_account is a public function void open_account(const assay::Launch&) beside account");
  static_assert(!is_there_restart<W>() || (HasRestart<W> && HasAccount<W>),
                "restart is a public function void restart(const assay::Launch&) beside account");
  static_assert(!is_there_plan<W>() || HasPlan<W>, "plan is a public function void plan(const assay::Planning&) const");
  static_assert(!is_there_extension<W>() || HasExtension<W>,
                "extension is a public function const void* extension(const char* id) const");

  static_assert(
      !is_there_params<W>() ||
          requires {
            W::params.size();
            W::params[0].row.default_int;
          },
      "params is public and static constexpr: assay::table(assay::Param::integer(...), ...)");
  static_assert(
      !is_there_metrics<W>() ||
          requires {
            W::metrics.size();
            W::metrics[0].row.scope;
          },
      "metrics is public and static constexpr: assay::table(...) of rows assay::Metric::per_case(...), ...");
  static_assert(
      !is_there_presets<W>() ||
          requires {
            W::presets.size();
            W::presets[0].row.choice;
          },
      "presets is public and static constexpr: assay::table(assay::Preset::integer(...), ...)");
  static_assert(
      !is_there_phases<W>() ||
          requires {
            W::phases.size();
            name_of(W::phases[0]);
          },
      "phases is public and static constexpr: assay::table(...) of rows assay::phase(...)");
  static_assert(
      !is_there_item_unit<W>() || requires { static_cast<const char*>(W::item_unit); },
      "item_unit is public and static constexpr: a text");
  static_assert(
      !is_there_device_flags<W>() || requires { static_cast<std::uint32_t>(W::device_flags); },
      "device_flags is public and static constexpr: ASSAY_DEVICE_CPU, ...");
  static_assert(
      !is_there_ranks_cooperate<W>() || requires { static_cast<bool>(W::ranks_cooperate); },
      "ranks_cooperate is public and static constexpr bool");
  static_assert(
      !is_there_cold_start<W>() || requires { static_cast<bool>(W::cold_start); },
      "cold_start is public and static constexpr bool");
  static_assert(
      !is_there_steps_elsewhere<W>() || requires { static_cast<bool>(W::steps_elsewhere); },
      "steps_elsewhere is public and static constexpr bool");
  static_assert(
      !is_there_is_open<W>() || requires { static_cast<bool>(W::is_open); },
      "is_open is public and static constexpr bool");
  static_assert(
      !is_there_min_host_minor<W>() || requires { static_cast<std::uint32_t>(W::min_host_minor); },
      "min_host_minor is public and static constexpr std::uint32_t");

  ASSAY_DETAIL_NOT_A_TABLE(param, params);
  ASSAY_DETAIL_NOT_A_TABLE(parameter, params);
  ASSAY_DETAIL_NOT_A_TABLE(parameters, params);
  ASSAY_DETAIL_NOT_A_TABLE(metric, metrics);
  ASSAY_DETAIL_NOT_A_TABLE(phase, phases);
  ASSAY_DETAIL_NOT_A_TABLE(phase_names, phases);
  ASSAY_DETAIL_NOT_A_TABLE(preset, presets);
  ASSAY_DETAIL_NOT_A_CONSTANT(flags, device_flags);
  ASSAY_DETAIL_NOT_A_CONSTANT(device_flag, device_flags);
  ASSAY_DETAIL_NOT_A_CONSTANT(devices, device_flags);
  ASSAY_DETAIL_NOT_A_CONSTANT(rank_cooperate, ranks_cooperate);
  ASSAY_DETAIL_NOT_A_CONSTANT(ranks_cooperates, ranks_cooperate);
  ASSAY_DETAIL_NOT_A_CONSTANT(cooperate, ranks_cooperate);
  ASSAY_DETAIL_NOT_A_CONSTANT(cooperates, ranks_cooperate);
  ASSAY_DETAIL_NOT_A_CONSTANT(cold, cold_start);
  ASSAY_DETAIL_NOT_A_CONSTANT(cold_starts, cold_start);
  ASSAY_DETAIL_NOT_A_CONSTANT(starts_cold, cold_start);
  ASSAY_DETAIL_NOT_A_CONSTANT(min_host, min_host_minor);
  ASSAY_DETAIL_NOT_A_CONSTANT(host_minor, min_host_minor);
  ASSAY_DETAIL_NOT_A_CALL(finished, finish);
  ASSAY_DETAIL_NOT_A_CALL(finalize, finish);
  ASSAY_DETAIL_NOT_A_CALL(validate, verify);
  ASSAY_DETAIL_NOT_A_CALL(verification, verify);
  ASSAY_DETAIL_NOT_A_CALL(peaks, peak);
};
#undef ASSAY_DETAIL_NOT_A_TABLE
#undef ASSAY_DETAIL_NOT_A_CONSTANT
#undef ASSAY_DETAIL_NOT_A_CALL

}  // namespace assay::detail
