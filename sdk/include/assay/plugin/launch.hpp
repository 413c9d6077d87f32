// The context of one call: the stream to enqueue on, marks of phases, values of metrics.
//
// LaunchOf<Workload> knows the tables of a workload. It takes their rows as handles and finds their places at compile
// time; a handle that is in no row does not compile:
//
//   void run(const assay::LaunchOf<Workload>& launch) {
//     const auto phase = launch.phase(forward);
//     ...
//     launch.report(loss, value);
//   }
//
// It is also an assay::Launch, for code that marks and reports nothing. Code that several workloads share is a
// template:
//
//   template <class Workload>
//   void report_size(const assay::LaunchOf<Workload>& launch, const Model& model) {
//     launch.report(parameters, model.parameter_count());  // each of the workloads has this row in its table
//   }
#pragma once
#include <assay/abi.h>
#include <assay/plugin/error.hpp>
#include <assay/plugin/tables.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay {

class Launch {
 public:
  explicit Launch(const assay_launch* abi) noexcept : abi_(abi) {}

  // Marks a phase for as long as it lives: `const auto phase = launch.phase(forward);`
  class [[nodiscard]] Phase {
   public:
    Phase(const assay_launch* abi, std::uint32_t index) noexcept
        : abi_(abi), index_(index), exceptions_(std::uncaught_exceptions()) {
      abi_->phase_begin(abi_, index_);
    }
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;
    // Left open while an exception passes through, so that the record names the phase that failed.
    ~Phase() {
      if (std::uncaught_exceptions() == exceptions_) abi_->phase_end(abi_, index_);
    }

   private:
    const assay_launch* abi_;
    std::uint32_t index_;
    int exceptions_;
  };
  // By their places in the tables, as in enumerations beside the tables. LaunchOf needs no such numbers: it refuses one
  // for a phase that has a handle. It still takes a metric's number, because the rows of any table of metrics are
  // handles, and older sources would no longer compile.
  template <class Index>
  requires(!std::is_base_of_v<assay::Phase, Index>) Phase phase(Index index)
  const noexcept { return Phase(abi_, static_cast<std::uint32_t>(index)); }
  template <class Index>
  requires(!std::is_base_of_v<Metric, Index>) void metric(Index index, double value) const noexcept {
    abi_->metric(abi_, static_cast<std::uint32_t>(index), value);
  }
  // Handles do not work here; the compiler's message explains it.
  template <class Handle>
  requires std::is_base_of_v<assay::Phase, Handle> Phase phase(const Handle&)
  const noexcept {
    static_assert(!std::is_same_v<Handle, Handle>,
                  "the row of a handle is in the tables of a workload: take const assay::LaunchOf<Workload>& in place "
                  "of const assay::Launch&");
    return Phase(abi_, 0);
  }
  template <class Handle, class Value>
  requires std::is_base_of_v<Metric, Handle>
  void report(const Handle&, const Value&) const noexcept {
    static_assert(!std::is_same_v<Handle, Handle>,
                  "the row of a handle is in the tables of a workload: take const assay::LaunchOf<Workload>& in place "
                  "of const assay::Launch&");
  }
  template <class Handle, class Value>
  requires std::is_base_of_v<Metric, Handle>
  void metric(const Handle&, const Value&) const noexcept {
    static_assert(
        !std::is_same_v<Handle, Handle>,
        "metric() takes a place in the table of metrics; report() of assay::LaunchOf<Workload> takes a handle");
  }
  void* stream() const noexcept { return abi_->stream; }
  std::int32_t device() const noexcept { return abi_->device; }
  assay_stage stage() const noexcept { return abi_->stage; }
  std::uint64_t iteration() const noexcept { return abi_->iteration; }
  const assay_launch* abi() const noexcept { return abi_; }

 private:
  const assay_launch* abi_;
};

namespace mistake {
void this_phase_is_not_in_the_phases_table_of_the_workload();
void this_metric_is_not_in_the_metrics_table_of_the_workload();
void the_metrics_table_of_the_workload_has_this_name_with_another_meaning();
void this_metric_is_a_word_and_is_reported_by_one_of_its_words();
void this_metric_is_a_number_and_has_no_words();
}  // namespace mistake

namespace detail {

constexpr bool is_same_text(const char* a, const char* b) noexcept {
  return a && b ? std::string_view(a) == b : a == b;
}
constexpr const char* name_of(const Phase& row) noexcept { return row.name; }
constexpr const char* name_of(const char* row) noexcept { return row; }

template <class Workload>
consteval std::uint32_t row_of_phase(const char* name) {
  if constexpr (requires { Workload::phases.size(); })
    for (std::size_t i = 0; i < Workload::phases.size(); ++i)
      if (is_same_text(name_of(Workload::phases[i]), name)) return static_cast<std::uint32_t>(i);
  mistake::this_phase_is_not_in_the_phases_table_of_the_workload();
  return 0;
}

template <class Workload>
consteval std::uint32_t row_of_metric(const assay_metric& handle) {
  if constexpr (requires { Workload::metrics.size(); })
    for (std::size_t i = 0; i < Workload::metrics.size(); ++i) {
      const assay_metric& row = Workload::metrics[i].row;
      if (!is_same_text(row.name, handle.name)) continue;
      if (!is_same_text(row.unit, handle.unit) || row.direction != handle.direction || row.scope != handle.scope ||
          row.words != handle.words)
        mistake::the_metrics_table_of_the_workload_has_this_name_with_another_meaning();
      return static_cast<std::uint32_t>(i);
    }
  mistake::this_metric_is_not_in_the_metrics_table_of_the_workload();
  return 0;
}

template <class Workload>
concept HasPhaseHandles = requires {
  { Workload::phases[0] } -> std::convertible_to<const Phase&>;
};

// Are the tables of a class those of a class that it derives from?
template <class Derived, class Base>
constexpr bool has_tables_of() {
  bool is_same = true;
  if constexpr (
      requires { Derived::phases; } && requires { Base::phases; })
    is_same = static_cast<const void*>(&Derived::phases) == static_cast<const void*>(&Base::phases);
  else if constexpr (
      requires { Derived::phases; } || requires { Base::phases; })
    is_same = false;
  if constexpr (
      requires { Derived::metrics; } && requires { Base::metrics; })
    is_same = is_same && static_cast<const void*>(&Derived::metrics) == static_cast<const void*>(&Base::metrics);
  else if constexpr (
      requires { Derived::metrics; } || requires { Base::metrics; })
    is_same = false;
  return is_same;
}

}  // namespace detail

// Rows of a workload's tables, whose places were found at compile time. A function or lambda that takes one is called
// with a handle; it must be a constant.
template <class Workload>
class PhaseIn {
 public:
  consteval PhaseIn(const Phase& handle) : row_(detail::row_of_phase<Workload>(handle.name)) {}
  constexpr std::uint32_t row() const noexcept { return row_; }
  friend constexpr bool operator==(PhaseIn, PhaseIn) noexcept = default;

 private:
  std::uint32_t row_;
};

template <class Workload>
class MetricIn {
 public:
  consteval MetricIn(const Metric& handle) : row_(detail::row_of_metric<Workload>(handle.row)) {
    if (handle.row.word_count > 0) mistake::this_metric_is_a_word_and_is_reported_by_one_of_its_words();
  }
  constexpr std::uint32_t row() const noexcept { return row_; }

 private:
  std::uint32_t row_;
};

// A metric of words, by its word.
template <class Workload>
class TextIn {
 public:
  consteval TextIn(const Metric& handle)
      : row_(detail::row_of_metric<Workload>(handle.row)),
        words_(handle.row.words),
        count_(static_cast<std::size_t>(handle.row.word_count)) {
    if (count_ == 0) mistake::this_metric_is_a_number_and_has_no_words();
  }
  constexpr std::uint32_t row() const noexcept { return row_; }
  std::size_t index_of(std::string_view word) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (word == words_[i]) return i;
    throw Error(ASSAY_INTERNAL,
                "the workload reports the word '" + std::string(word) + "', which its metric does not have");
  }

 private:
  std::uint32_t row_;
  const char* const* words_;
  std::size_t count_;
};

// A metric of words, by its meaning.
template <class Workload, class Value>
class WordIn {
 public:
  consteval WordIn(const WordMetric<Value>& handle)
      : row_(detail::row_of_metric<Workload>(handle.row)),
        values_(handle.values),
        count_(static_cast<std::size_t>(handle.row.word_count)) {}
  constexpr std::uint32_t row() const noexcept { return row_; }
  std::size_t index_of(const Value& value) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (values_[i] == value) return i;
    throw Error(ASSAY_INTERNAL, "the workload reports a value for which its metric has no word");
  }

 private:
  std::uint32_t row_;
  const Value* values_;
  std::size_t count_;
};

template <class Workload>
class LaunchOf : public Launch {
 public:
  explicit LaunchOf(const assay_launch* abi) noexcept : Launch(abi) {}
  // For a workload with the tables of the class that it derives from.
  template <class Derived>
  requires(!std::same_as<Derived, Workload> && std::derived_from<Derived, Workload> &&
           detail::has_tables_of<Derived, Workload>()) LaunchOf(const LaunchOf<Derived>& launch)
  noexcept : Launch(launch.abi()) {}

  Launch::Phase phase(PhaseIn<Workload> phase) const noexcept { return Launch::Phase(abi(), phase.row()); }
  template <class Index>
  requires(std::is_integral_v<Index> || std::is_enum_v<Index>) Launch::Phase phase(Index index)
  const noexcept {
    static_assert(!detail::HasPhaseHandles<Workload>,
                  "a phase of this workload is marked by its handle, not by a number");
    return Launch::phase(index);
  }

  template <class Number>
  requires std::is_arithmetic_v<Number>
  void report(MetricIn<Workload> metric, Number value) const noexcept {
    abi()->metric(abi(), metric.row(), static_cast<double>(value));
  }
  void report(TextIn<Workload> metric, std::string_view word) const {
    abi()->metric(abi(), metric.row(), static_cast<double>(metric.index_of(word)));
  }
  template <class Value>
  requires(!std::is_arithmetic_v<Value> && !std::convertible_to<const Value&, std::string_view>) void report(
      std::type_identity_t<WordIn<Workload, Value>> metric, const Value& value) const {
    abi()->metric(abi(), metric.row(), static_cast<double>(metric.index_of(value)));
  }
};

}  // namespace assay
