// The workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/plugin.hpp>
#include <cstdint>
#include <string>

namespace node_check {

using assay::Param;
using assay::Preset;

enum class CheckOf { matrix_product, copy, all_reduce };
inline constexpr auto checks = assay::choices<CheckOf>(
    {{"matrix_product", CheckOf::matrix_product}, {"copy", CheckOf::copy}, {"all_reduce", CheckOf::all_reduce}});
// What "auto" is on a kind of device is among the presets: no case has it.
enum class Precision { automatic, fp32, tf32, bf16, fp16 };
inline constexpr auto precisions = assay::choices<Precision>({{"auto", Precision::automatic},
                                                              {"fp32", Precision::fp32},
                                                              {"tf32", Precision::tf32},
                                                              {"bf16", Precision::bf16},
                                                              {"fp16", Precision::fp16}});
enum class Fault { none, wrong, not_a_number };
inline constexpr auto faults =
    assay::choices<Fault>({{"none", Fault::none}, {"wrong", Fault::wrong}, {"not_a_number", Fault::not_a_number}});

// Beyond this the integers of a product would be few.
inline constexpr std::int64_t largest_size = 32768;
inline constexpr std::int64_t largest_pattern = 0x7fffffff;

inline constexpr auto params = assay::table(
    Param::choice("check", CheckOf::matrix_product, checks).help("what a step does: compute, memory, or the links"),
    Param::integer("size", 0)
        .at_least(0)
        .at_most(double(largest_size))
        .help("of matrix_product: rows and columns of the square matrices"),
    Param::choice("precision", Precision::automatic, precisions)
        .help("of matrix_product: of the factors; the sums are fp32. tf32, fp16: cuda"),
    Param::integer("bytes", 0)
        .at_least(0)
        .at_most(double(std::int64_t{1} << 40))
        .unit("bytes")
        .help("of copy: of what is copied; of all_reduce: of a rank's message"),
    Param::integer("repeats", 0)
        .at_least(0)
        .at_most(1 << 20)
        .help("products, copies or all-reduces of one step, one after the other"),
    Param::integer("pattern", 0)
        .at_least(0)
        .at_most(double(largest_pattern))
        .help("of copy: the pattern of bytes; 0: another one in each run. The record names it"),
    Param::choice("fault", Fault::none, faults)
        .help("tries the check itself: after the first step one element of the last rank is wrong, or no number"));

inline constexpr auto presets = assay::table(Preset::text("precision", "auto", "precision", "fp32").on("cpu"),
                                             Preset::text("precision", "auto", "precision", "bf16").on("cuda"),
                                             Preset::integer("check", "matrix_product", "size", 1024).on("cpu"),
                                             Preset::integer("check", "matrix_product", "size", 8192).on("cuda"),
                                             Preset::integer("check", "matrix_product", "repeats", 2).on("cpu"),
                                             Preset::integer("check", "matrix_product", "repeats", 50).on("cuda"),
                                             Preset::integer("check", "copy", "bytes", 256 << 20).on("cpu"),
                                             Preset::integer("check", "copy", "bytes", 1 << 30).on("cuda"),
                                             Preset::integer("check", "copy", "repeats", 1).on("cpu"),
                                             Preset::integer("check", "copy", "repeats", 50).on("cuda"),
                                             Preset::integer("check", "all_reduce", "bytes", 16 << 20).on("cpu"),
                                             Preset::integer("check", "all_reduce", "bytes", 256 << 20).on("cuda"),
                                             Preset::integer("check", "all_reduce", "repeats", 1).on("cpu"),
                                             Preset::integer("check", "all_reduce", "repeats", 4).on("cuda"));

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  CheckOf check;
  Precision precision;
  std::int64_t size = 0, bytes = 0, repeats = 1;
  std::uint64_t seed = 0, pattern = 0;
  Fault fault = Fault::none;  // of this rank
  std::int32_t rank = 0, ranks = 1;
};

}  // namespace node_check
