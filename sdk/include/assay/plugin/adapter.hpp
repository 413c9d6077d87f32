// From a class to the C table of a workload: the host's calls reach an object, and exceptions become statuses.
#pragma once
#include <assay/abi.h>
#include <assay/plugin/case.hpp>
#include <assay/plugin/launch.hpp>
#include <assay/plugin/member_checks.hpp>
#include <assay/plugin/results.hpp>
#include <assay/plugin/table_checks.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace assay::detail {

// Runs `f`; an exception becomes a status, and the host gets its text.
template <class F>
assay_status guard(const assay_host* host, F&& f) noexcept {
  const auto fail = [host](assay_status s, const char* text) {
    if (text && *text) host->set_message(host, s, to_abi(text));
    return s;
  };
  try {
    std::forward<F>(f)();
    return ASSAY_OK;
  } catch (const Error& e) {
    return fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(ASSAY_OUT_OF_MEMORY, "host memory: std::bad_alloc");
  } catch (const std::exception& e) {
    return fail(ASSAY_INTERNAL, e.what());
  } catch (...) {
    return fail(ASSAY_INTERNAL, "the plugin threw something that is not a std::exception");
  }
}

template <class Rows, std::size_t... I>
constexpr auto pointers(const Rows& rows, std::index_sequence<I...>) {
  return std::array{&rows[I].row...};
}
template <class Rows, std::size_t... I>
constexpr std::array<const char*, sizeof...(I)> name_pointers(const Rows& rows, std::index_sequence<I...>) {
  return {name_of(rows[I])...};
}

template <class W>
struct Adapter {
  static_assert(sizeof(CheckedMembers<W>) > 0 && sizeof(CheckedTables<W>) > 0);  // which make the checks

  struct Self {
    const assay_host* host;
    W workload;
  };
  static Self* self(assay_workload_self* s) noexcept { return reinterpret_cast<Self*>(s); }
  static const Self* self(const assay_workload_self* s) noexcept { return reinterpret_cast<const Self*>(s); }

  static assay_status create(const assay_host* host, const assay_case* c, assay_workload_self** out) noexcept {
    return guard(host, [&] { *out = reinterpret_cast<assay_workload_self*>(new Self{host, W(Case(host, c))}); });
  }
  static void destroy(assay_workload_self* s) noexcept { delete self(s); }
  static assay_status setup(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.setup(LaunchOf<W>(l)); });
  }
  static assay_status run(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.run(LaunchOf<W>(l)); });
  }
  static assay_status finish(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.finish(LaunchOf<W>(l)); });
  }
  static assay_status verify(assay_workload_self* s, const assay_launch* l) noexcept {
    const assay_host* host = self(s)->host;
    assay_status verdict = ASSAY_OK;
    const assay_status status = guard(host, [&] {
      const Verified verified(self(s)->workload.verify(LaunchOf<W>(l)));
      if (verified.in_part) verdict = host->abi_minor >= 3 ? ASSAY_VERIFIED_IN_PART : ASSAY_UNSUPPORTED;
      host->set_message(host, verdict, to_abi(verified.text));
    });
    return status == ASSAY_OK ? verdict : status;
  }
  static assay_status work(const assay_workload_self* s, assay_work* out) noexcept {
    return guard(self(s)->host, [&] {
      const Work w = self(s)->workload.work();
      if (ASSAY_HAS(out, assay_work, items)) out->flops = w.flops, out->bytes = w.bytes, out->items = w.items;
      if (ASSAY_HAS(out, assay_work, arithmetic)) out->arithmetic = w.arithmetic;
    });
  }
  static assay_status peak(assay_workload_self* s, const assay_launch* l, assay_peak* out) noexcept {
    return guard(self(s)->host, [&] {
      const Peak found = self(s)->workload.peak(LaunchOf<W>(l));
      if (ASSAY_HAS(out, assay_peak, bytes_per_s))
        out->flops_per_s = found.flops_per_s, out->bytes_per_s = found.bytes_per_s;
      self(s)->host->set_message(self(s)->host, ASSAY_OK, to_abi(found.text));
    });
  }
  static assay_status silence(assay_workload_self* s, std::int32_t silent) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.silence(silent != 0); });
  }
  static assay_status open_account(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.open_account(LaunchOf<W>(l)); });
  }
  static assay_status read_account(assay_workload_self* s, const assay_launch* l, assay_step_account* out) noexcept {
    return guard(self(s)->host, [&] {
      const Account found = self(s)->workload.account(LaunchOf<W>(l));
      if (!ASSAY_HAS(out, assay_step_account, tolerance)) return;
      out->steps = found.steps;
      out->tolerance = found.tolerance;
      out->marks_per_step = found.marks_per_step;
      out->mark_count = 0;
      if (found.marks_per_step == 0 || !out->marks) return;
      const std::uint64_t whole_steps =
          std::min<std::uint64_t>(found.marks.size(), out->mark_capacity) / found.marks_per_step;
      for (; out->mark_count < whole_steps * found.marks_per_step; ++out->mark_count) {
        const StepMark& mark = found.marks[static_cast<std::size_t>(out->mark_count)];
        out->marks[2 * out->mark_count] = mark.value;
        out->marks[2 * out->mark_count + 1] = mark.magnitude;
      }
    });
  }
  static assay_status restart(assay_workload_self* s, const assay_launch* l) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.restart(LaunchOf<W>(l)); });
  }
  static constexpr assay_account account_table() {
    assay_account table{};
    table.struct_size = sizeof(assay_account);
    table.read = read_account;
    if constexpr (HasOpenAccount<W>) table.open = open_account;
    if constexpr (HasRestart<W>) table.restart = restart;
    return table;
  }
  static assay_status plan(const assay_workload_self* s, const assay_plan* sink) noexcept {
    return guard(self(s)->host, [&] { self(s)->workload.plan(Planning(sink)); });
  }
  static const void* extension(const assay_workload_self* s, const char* id) noexcept {
    if (!id) return nullptr;
    if constexpr (HasPlan<W>) {
      static constexpr assay_planner planner{sizeof(assay_planner), plan};
      if (std::string_view(id) == ASSAY_EXT_PLAN) return &planner;
    }
    if constexpr (HasPeak<W>) {
      static constexpr assay_peak_probe probe{sizeof(assay_peak_probe), peak};
      if (std::string_view(id) == ASSAY_EXT_PEAK) return &probe;
    }
    if constexpr (HasSilence<W>) {
      static constexpr assay_silence table{sizeof(assay_silence), silence};
      if (std::string_view(id) == ASSAY_EXT_SILENCE) return &table;
    }
    if constexpr (HasAccount<W>) {
      static constexpr assay_account table = account_table();
      if (std::string_view(id) == ASSAY_EXT_ACCOUNT) return &table;
    }
    if constexpr (HasExtension<W>) return self(s)->workload.extension(id);
    return nullptr;
  }

  static constexpr auto param_pointers() {
    if constexpr (requires { W::params; })
      return pointers(W::params, std::make_index_sequence<W::params.size()>());
    else
      return std::array<const assay_param*, 0>{};
  }
  static constexpr auto metric_pointers() {
    if constexpr (requires { W::metrics; })
      return pointers(W::metrics, std::make_index_sequence<W::metrics.size()>());
    else
      return std::array<const assay_metric*, 0>{};
  }
  static constexpr auto preset_pointers() {
    if constexpr (requires { W::presets; })
      return pointers(W::presets, std::make_index_sequence<W::presets.size()>());
    else
      return std::array<const assay_preset*, 0>{};
  }
  static constexpr auto phase_names() {
    if constexpr (HasPhaseHandles<W>)
      return name_pointers(W::phases, std::make_index_sequence<W::phases.size()>());
    else
      return std::array<const char*, 0>{};
  }
  static constexpr auto params_ = param_pointers();
  static constexpr auto metrics_ = metric_pointers();
  static constexpr auto presets_ = preset_pointers();
  static constexpr auto phase_names_ = phase_names();

  static constexpr assay_workload make() {
    assay_workload w{};
    w.struct_size = sizeof(assay_workload);
    w.id = W::id;
    w.summary = W::summary;
    if constexpr (requires { W::item_unit; }) w.item_unit = W::item_unit;
    w.params = params_.data(), w.param_count = static_cast<std::uint32_t>(params_.size());
    w.metrics = metrics_.data(), w.metric_count = static_cast<std::uint32_t>(metrics_.size());
    if constexpr (HasPhaseHandles<W>)
      w.phases = phase_names_.data(), w.phase_count = static_cast<std::uint32_t>(phase_names_.size());
    else if constexpr (requires { W::phases; })
      w.phases = W::phases.data(), w.phase_count = static_cast<std::uint32_t>(W::phases.size());
    w.presets = presets_.data(), w.preset_count = static_cast<std::uint32_t>(presets_.size());
    if constexpr (requires { W::device_flags; }) w.device_flags = W::device_flags;
    if constexpr (requires { W::cold_start; }) w.flags |= W::cold_start ? ASSAY_WORKLOAD_COLD_START : 0u;
    if constexpr (requires { W::ranks_cooperate; }) w.flags |= W::ranks_cooperate ? ASSAY_WORKLOAD_RANKS_COOPERATE : 0u;
    if constexpr (requires { W::steps_elsewhere; }) w.flags |= W::steps_elsewhere ? ASSAY_WORKLOAD_STEPS_ELSEWHERE : 0u;
    if constexpr (requires { W::is_open; }) w.flags |= W::is_open ? ASSAY_WORKLOAD_OPEN : 0u;
    w.create = create, w.destroy = destroy, w.setup = setup, w.run = run;
    if constexpr (HasFinish<W>) w.finish = finish;
    if constexpr (HasVerify<W>) w.verify = verify;
    if constexpr (HasWork<W>) w.work = work;
    if constexpr (HasPeak<W> || HasSilence<W> || HasAccount<W> || HasPlan<W> || HasExtension<W>)
      w.get_extension = extension;
    return w;
  }
  static constexpr assay_workload workload_ = make();

  // The oldest host that runs the workload as intended. An older one would show the index of a metric's word, would run
  // without the values that a preset stands for, and takes no array for words and no parameters beyond the table. It
  // simply does without everything else that came later: it never asks for a cold start, a peak, silence or a plan,
  // gets 'not checked' for a partial verification, and starts ranks as it always did.
  static constexpr std::uint32_t min_host_minor() {
    std::uint32_t minor = 0;
    if constexpr (requires { W::min_host_minor; }) {
      static_assert(W::min_host_minor <= ASSAY_ABI_MINOR,
                    "min_host_minor is above the version of this header, whose hosts the plugin is built for");
      minor = W::min_host_minor;
    }
    for (const assay_metric* metric : metrics_)
      if (metric->word_count > 0 && minor < 1) minor = 1;
    if (!presets_.empty() && minor < 2) minor = 2;
    for (const assay_param* param : params_)
      if ((param->flags & ASSAY_PARAM_WORDS) != 0 && minor < 4) minor = 4;
    if constexpr (requires { W::is_open; })
      if (W::is_open && minor < 4) minor = 4;
    return minor;
  }
};

template <class... W>
inline constexpr std::array<const assay_workload*, sizeof...(W)> workload_pointers{&Adapter<W>::workload_...};

// For a plugin with these workloads: all of them must work.
template <class... W>
constexpr std::uint32_t min_host_minor() {
  std::uint32_t minor = 0;
  for (const std::uint32_t needed : {Adapter<W>::min_host_minor()...})
    if (minor < needed) minor = needed;
  return minor;
}
// The same for a plugin that asks for more.
template <std::uint32_t stated, class... W>
constexpr std::uint32_t min_host_minor_of_plugin() {
  static_assert(stated <= ASSAY_ABI_MINOR,
                "min_host_minor is above the version of this header, whose hosts the plugin is built for");
  return min_host_minor<W...>() < stated ? stated : min_host_minor<W...>();
}

template <class... W>
constexpr bool have_own_ids() {
  const std::array<const char*, sizeof...(W)> ids{W::id...};
  return !is_twice(ids.data(), ids.size());
}
template <class... W>
constexpr std::uint32_t workload_count() {
  static_assert(sizeof...(W) > 0, "a plugin has at least one workload");
  static_assert(have_own_ids<W...>(), "two workloads of a plugin have the same id");
  return sizeof...(W);
}

// ---- functions of the plugin as a whole: as C has them, or as C++ likes them ----

template <auto function>
assay_status call_init(const assay_host* host) noexcept {
  return guard(host, [host] { function(Host(host)); });
}
template <auto function>
void call_deinit() noexcept {
  function();
}
template <auto function>
constexpr auto init_of() noexcept -> decltype(assay_entry::init) {
  using Function = decltype(function);
  constexpr bool is_of_c = std::is_convertible_v<Function, decltype(assay_entry::init)>;
  constexpr bool is_of_cpp =
      std::is_invocable_r_v<void, Function, Host> && !std::is_invocable_v<Function, const assay_host*>;
  if constexpr (is_of_cpp)
    static_assert(std::is_void_v<std::invoke_result_t<Function, Host>>,
                  "init of a const assay::Host& returns nothing; it throws assay::Error where it fails");
  static_assert(is_of_c || is_of_cpp,
                "init is void init(const assay::Host&), which may throw, or assay_status init(const assay_host*) "
                "noexcept, or nullptr");
  if constexpr (is_of_c)
    return function;
  else if constexpr (is_of_cpp)
    return call_init<function>;
  else
    return nullptr;
}
template <auto function>
constexpr auto deinit_of() noexcept -> decltype(assay_entry::deinit) {
  using Function = decltype(function);
  constexpr bool is_of_c = std::is_convertible_v<Function, decltype(assay_entry::deinit)>;
  static_assert(is_of_c || std::is_invocable_v<Function>, "deinit is void deinit(), or nullptr");
  if constexpr (is_of_c)
    return function;
  else if constexpr (std::is_invocable_v<Function>)
    return call_deinit<function>;
  else
    return nullptr;
}

}  // namespace assay::detail

#ifndef ASSAY_BUILD_INFO /* assay_add_plugin sets it to the compiler and the build type */
#define ASSAY_BUILD_INFO "unknown build"
#endif

// Defines the exported entry: ASSAY_PLUGIN(id, version, Workload...). Once per plugin.
#define ASSAY_PLUGIN(id_text, version_text, ...) \
  ASSAY_PLUGIN_EX(id_text, version_text, nullptr, nullptr, 0, __VA_ARGS__)

// The same with plugin-wide functions, and the oldest host that the plugin accepts:
//   ASSAY_PLUGIN_EX(id, version, init, deinit, min_host_minor, Workload...)
//   init            void init(const assay::Host&): once, before any workload is made; it may throw. Or nullptr.
//   deinit          void deinit(): once, after every workload is gone; it joins the plugin's threads, and does not
//                   throw. Or nullptr.
//   min_host_minor  what the workloads themselves need is known without it: 0 where there is nothing more.
#define ASSAY_PLUGIN_EX(id_text, version_text, init_function, deinit_function, oldest_host_minor, ...) \
  extern "C" ASSAY_EXPORT constinit const assay_entry assay_entry_v1 = {                               \
      sizeof(assay_entry),                                                                             \
      ASSAY_ABI_MAJOR,                                                                                 \
      ASSAY_ABI_MINOR,                                                                                 \
      assay::detail::min_host_minor_of_plugin<oldest_host_minor, __VA_ARGS__>(),                       \
      assay::detail::workload_count<__VA_ARGS__>(),                                                    \
      id_text,                                                                                         \
      version_text,                                                                                    \
      ASSAY_BUILD_INFO,                                                                                \
      assay::detail::workload_pointers<__VA_ARGS__>.data(),                                            \
      assay::detail::init_of<init_function>(),                                                         \
      assay::detail::deinit_of<deinit_function>()};
