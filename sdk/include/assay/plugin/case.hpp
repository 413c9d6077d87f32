// The input of a workload: the host, and the case with its parameters.
#pragma once
#include <assay/abi.h>
#include <assay/plugin/choices.hpp>
#include <assay/plugin/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay {

class Host {
 public:
  explicit Host(const assay_host* host) noexcept : host_(host) {}
  void debug(std::string_view text) const noexcept { host_->log(host_, 0, to_abi(text)); }
  void info(std::string_view text) const noexcept { host_->log(host_, 1, to_abi(text)); }
  void warn(std::string_view text) const noexcept { host_->log(host_, 2, to_abi(text)); }
  template <class Table>
  const Table* extension(const char* id) const noexcept {
    return static_cast<const Table*>(host_->get_extension(host_, id));
  }
  const assay_host* abi() const noexcept { return host_; }

 private:
  const assay_host* host_;
};

// The case an object is made for: its resolved parameters, seed, rank and device.
class Case {
 public:
  Case(const assay_host* host, const assay_case* abi) noexcept : host_(host), abi_(abi) {}

  // T: bool, an integer type, a floating-point type, std::string or std::string_view (lives as long as the object).
  // Throws where the value is out of T's range.
  template <class T>
  T get(std::string_view key) const {
    if constexpr (std::same_as<T, bool>) {
      std::int32_t v = 0;
      require(host_.abi()->get_bool(abi_->config, to_abi(key), &v), key, "boolean");
      return v != 0;
    } else if constexpr (std::integral<T>) {
      std::int64_t v = 0;
      require(host_.abi()->get_int(abi_->config, to_abi(key), &v), key, "integer");
      if (!is_in_range<T>(v))
        throw out_of_range(key, std::to_string(v), std::to_string(std::numeric_limits<T>::min()),
                           std::to_string(std::numeric_limits<T>::max()));
      return static_cast<T>(v);
    } else if constexpr (std::floating_point<T>) {
      double v = 0;
      require(host_.abi()->get_float(abi_->config, to_abi(key), &v), key, "real");
      constexpr T largest = std::numeric_limits<T>::max();
      if constexpr (std::numeric_limits<T>::max_exponent < std::numeric_limits<double>::max_exponent) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const double size = v < 0 ? -v : v;
        if (size > static_cast<double>(largest) && size < infinity)
          throw out_of_range(key, number(v), number(-static_cast<double>(largest)),
                             number(static_cast<double>(largest)));
      }
      return static_cast<T>(v);
    } else {
      static_assert(std::constructible_from<T, std::string_view>,
                    "Case::get reads bool, integers, floating-point numbers and texts; Case::choice reads a choice as "
                    "the value that it means");
      assay_str v{};
      require(host_.abi()->get_string(abi_->config, to_abi(key), &v), key, "text");
      return T(from_abi(v));
    }
  }
  // The meaning of the parameter's text. Throws if it is not one of the choices.
  template <class Value, std::size_t N>
  Value choice(std::string_view key, const Choices<Value, N>& of) const {
    const auto name = get<std::string_view>(key);
    if (const Value* const found = of.find(name)) return *found;
    throw no_choice(key, name, of.names);
  }
  // The same for names in the order of an enumeration that counts from 0: c.choice<Pass>("pass", names).
  template <class Enum, std::size_t N>
  requires std::is_enum_v<Enum> Enum choice(std::string_view key, const std::array<const char*, N>& names)
  const { return static_cast<Enum>(place_of(key, names)); }
  // The table's text, which is static.
  template <std::size_t N>
  const char* choice(std::string_view key, const std::array<const char*, N>& names) const {
    return names[place_of(key, names)];
  }
  std::uint64_t seed() const noexcept { return abi_->seed; }
  std::int32_t rank() const noexcept { return abi_->rank; }
  std::int32_t rank_count() const noexcept { return abi_->rank_count; }
  std::string_view device_kind() const noexcept { return abi_->device_kind; }
  // False if the first step is to show its cost (assay_case.prepare).
  bool prepares() const noexcept { return !ASSAY_HAS(abi_, assay_case, prepare) || abi_->prepare != 0; }
  const Host& host() const noexcept { return host_; }
  // For features that only the C functions of the host have (assay.names/1).
  const assay_config* config() const noexcept { return abi_->config; }

 private:
  void require(assay_status s, std::string_view key, const char* type) const {
    if (s == ASSAY_OK) return;
    const char* const has = type_in_table(key);
    throw Error(ASSAY_INVALID_ARGUMENT, "the workload asks for parameter '" + std::string(key) + "' as " + type +
                                            ", but its own table has " +
                                            (has ? std::string("it as ") + has : "no such parameter"));
  }
  // As the functions of Param that make it are called; NULL if none has this name.
  const char* type_in_table(std::string_view key) const {
    const assay_host* const host = host_.abi();
    std::int32_t flag = 0;
    std::int64_t integer = 0;
    double real = 0;
    assay_str text{};
    if (host->get_bool(abi_->config, to_abi(key), &flag) == ASSAY_OK) return "boolean";
    if (host->get_int(abi_->config, to_abi(key), &integer) == ASSAY_OK) return "integer";
    if (host->get_float(abi_->config, to_abi(key), &real) == ASSAY_OK) return "real";
    return host->get_string(abi_->config, to_abi(key), &text) == ASSAY_OK ? "text" : nullptr;
  }
  template <std::size_t N>
  std::size_t place_of(std::string_view key, const std::array<const char*, N>& names) const {
    const auto name = get<std::string_view>(key);
    for (std::size_t i = 0; i < N; ++i)
      if (name == names[i]) return i;
    throw no_choice(key, name, names);
  }
  // By hand: std::in_range takes no character type.
  template <class T>
  static constexpr bool is_in_range(std::int64_t v) noexcept {
    if constexpr (std::is_signed_v<T>)
      return v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max();
    else
      return v >= 0 && static_cast<std::uint64_t>(v) <= std::numeric_limits<T>::max();
  }
  static std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
  }
  static Error out_of_range(std::string_view key, const std::string& value, const std::string& least,
                            const std::string& most) {
    return Error(ASSAY_INVALID_ARGUMENT, "parameter '" + std::string(key) + "' is " + value +
                                             ", but the workload reads it as a number from " + least + " to " + most);
  }
  template <std::size_t N>
  static Error no_choice(std::string_view key, std::string_view value, const std::array<const char*, N>& names) {
    std::string text = "parameter '" + std::string(key) + "' is \"" + std::string(value) + "\"; expected one of ";
    for (std::size_t i = 0; i < N; ++i) text.append(i == 0 ? "\"" : ", \"").append(names[i]).append("\"");
    return Error(ASSAY_INVALID_ARGUMENT, text);
  }
  Host host_;
  const assay_case* abi_;
};

}  // namespace assay
