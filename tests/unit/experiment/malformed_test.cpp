// One wrong file each: one mistake, at its line and column, in its words.
#include "demo_workload.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>

namespace assay::host::experiment::test {
namespace {

struct Malformed {
  const char* file;  // without ".toml"
  int line, column;
  std::string begins;      // of the mistake's text
  std::string suggestion;  // its end; "": the text suggests nothing
};

std::ostream& operator<<(std::ostream& out, const Malformed& m) { return out << m.file; }

const std::vector<Malformed>& malformed_files() {
  static const std::vector<Malformed> files{
      {"above_range", 6, 6, "[workload.params] lr is 11; expected a number >= 0 and <= 10 (default 0.001)", ""},
      {"allow_not_array", 6, 9,
       R"([run] allow is "oom"; expected an array of ok, oom, timeout, crashed, unsupported, wrong_result, failed)",
       ""},
      {"allow_unknown", 6, 17,
       R"([run] allow has "time_out"; expected one of ok, oom, timeout, crashed, unsupported, wrong_result, failed)",
       "; did you mean 'timeout'?"},
      {"below_range", 6, 14, "[workload.params] batch_size is 0; expected an integer >= 1 (default 4)", ""},
      {"bind_word", 6, 8, R"([run] bind is "core"; expected one of none, cores (default none))",
       "; did you mean 'cores'?"},
      {"choice", 6, 8, R"([workload.params] size is "midium"; expected one of small, medium, large (default small))",
       "; did you mean 'medium'?"},
      {"column_memory_kind", 6, 38,
       R"([output] columns has "memory.after_setup.weights.mib", which no record of workload demo has; expected a parameter, a)",
       ""},
      {"column_sum_of_phases", 6, 20,
       R"([output] columns has "forward+optimizer.mean_ms", which no record of workload demo has; expected a parameter, a)",
       ""},
      {"column_ratio_alone", 6, 20,
       R"([output] columns has "step.mean_ms.ratio", but no baseline is given; expected relative_to = { AXIS = VALUE } in)",
       ""},
      {"column_ratio_of_text", 9, 12,
       R"([output] columns has "size.ratio", but size is no number; expected a column with a number before .ratio)",
       ""},
      {"column_ratio_unknown", 9, 12,
       R"([output] columns has "forwrad.mean_ms.ratio", but no record of workload demo has "forwrad.mean_ms"; expected a)",
       "; did you mean 'forward.mean_ms'?"},
      {"column_speedup_alone", 6, 12,
       R"([output] columns has "speedup", but no baseline is given; expected relative_to = { AXIS = VALUE } in)", ""},
      {"column_unknown", 8, 3,
       R"([output] columns has "forwrad.mean_ms", which no record of workload demo has; expected a parameter, a)",
       "; did you mean 'forward.mean_ms'?"},
      {"date_for_text", 6, 8,
       "[workload.params] size is 2026-01-01 (a date or time); expected one of small, medium, large (default small)",
       ""},
      {"device_unknown", 6, 10, R"([run] device is "cdua"; expected one of auto, cpu, cuda (default auto))",
       "; did you mean 'cuda'?"},
      {"exclude_all", 7, 1, "[[sweep.exclude]] drops every case; expected at least one case that is left", ""},
      {"exclude_empty", 7, 1, "[[sweep.exclude]] is empty; expected at least one key", ""},
      {"exclude_unknown", 8, 1, "unknown key 'sizes' in [[sweep.exclude]]", "; did you mean 'size'?"},
      {"exclude_value", 8, 8,
       R"([[sweep.exclude]] size is "medium", which its axis does not have; expected one of small, large)", ""},
      {"float_for_integer", 6, 14, "[workload.params] batch_size is 4.0; expected an integer >= 1 (default 4)", ""},
      {"format_unknown", 6, 20, R"([output] formats has "yaml"; expected one of json, csv, markdown)", ""},
      {"input_missing", 6, 11, R"([workload.params] weights is "absent.safetensors", but)", ""},
      {"memory_limit_unit", 6, 16, R"([run] memory_limit is "4GB"; expected a size above 0)", ""},
      {"missing_name", 1, 1, R"(missing 'name'; expected name = "...", )", ""},
      {"missing_plugin", 3, 2,
       R"(missing 'plugin' in [workload]; expected plugin = "...", a name on the plugin path or a path to a .so)", ""},
      {"missing_required_parameter", 5, 11,
       "missing 'layers' in [workload.params]; expected an integer >= 1 and <= 96 (required)", ""},
      {"missing_schema", 1, 1, "missing 'schema'; expected schema = 1", ""},
      {"missing_workload", 1, 1,
       R"(missing 'plugin' in [workload]; expected plugin = "...", a name on the plugin path or a path to a .so)", ""},
      {"name_empty", 2, 8,
       R"(name is ""; expected the folder's name under the results: not empty, at most 200 bytes, no '/', no leading '.', no blank at an end, no control characters)",
       ""},
      {"name_hidden", 2, 8,
       R"(name is ".demo"; expected the folder's name under the results: not empty, at most 200 bytes, no '/', no leading '.', no blank at an end, no control characters)",
       ""},
      {"name_with_slash", 2, 8,
       R"(name is "a/b"; expected the folder's name under the results: not empty, at most 200 bytes, no '/', no leading '.', no blank at an end, no control characters)",
       ""},
      {"negative_warmup", 6, 10, "[measure] warmup is -3; expected an integer >= 0 and <= 10000000 (default 5)", ""},
      {"nsys_trace_unknown", 6, 23,
       R"([profile] nsys_trace has "cublass"; expected one of cuda, nvtx, osrt, cublas, cublas-verbose, cudnn, cusolver, )",
       "; did you mean 'cublas'?"},
      {"number_beyond_integers", 6, 11, "99999999999999999999 is beyond the integers of 64 bits; expected at most", ""},
      {"number_beyond_reals", 6, 6, "1e999 is beyond the numbers of 64 bits; expected 0, or a size from", ""},
      {"number_nearer_to_zero", 6, 6, "1e-400 is nearer to 0 than any number of 64 bits; expected 0, or", ""},
      {"plugin_not_text", 4, 10,
       "[workload] plugin is 7; expected a string: a name on the plugin path, or a path to a .so with a '/' in it", ""},
      {"profile_not_bool", 6, 8, R"([profile] nsys is "yes"; expected true or false (default false))", ""},
      {"profile_unknown", 6, 1, "unknown key 'kernel' in [profile]", "; did you mean 'kernels'?"},
      {"range_below_param", 6, 14, "[sweep] batch_size is 0; expected an integer >= 1 (default 4)", ""},
      {"range_both_growths", 6, 34, "[sweep] batch_size has both 'factor' and 'step'; expected one of them", ""},
      {"range_factor_one", 6, 43, "[sweep] batch_size factor is 1; expected a number > 1", ""},
      {"range_fraction", 6, 14, "[sweep] batch_size is 1.0; expected an integer >= 1 (default 4)", ""},
      {"range_infinite", 6, 23, "[sweep] lr max is inf; expected a number", ""},
      {"range_min_above_max", 6, 22, "[sweep] batch_size min is 8; expected min <= max, which is 4", ""},
      {"range_min_zero", 6, 19,
       "[sweep] d_model min is 0; expected a number > 0: no factor leads on from another; use step", ""},
      {"range_missing_growth", 6, 14,
       "[sweep] batch_size is a table without factor (or step); expected an array of values, or a range as in { min = "
       "1, max = 64, factor = 4 }",
       ""},
      {"range_missing_max", 6, 1, "[sweep] batch_size is a table without max; expected an array", ""},
      {"range_of_words", 6, 16, R"([sweep] size min is "small"; expected a number)", ""},
      {"range_step_zero", 6, 41, "[sweep] batch_size step is 0; expected a number > 0", ""},
      {"range_too_long", 6, 14,
       "[sweep] batch_size is a range of about 10001 values; expected 10000 at most: a larger step", ""},
      {"range_unknown_member", 6, 46, "unknown key 'fctor' in [sweep] batch_size", "; did you mean 'factor'?"},
      {"ranks_list", 6, 9,
       "[run] ranks is an array; expected an integer >= 1 and <= 65536, \"all\" or \"auto\" (default \"auto\"); "
       "several "
       "values are an axis: sweep.run.ranks=[...]",
       ""},
      {"ranks_word", 6, 9,
       R"([run] ranks is "many"; expected an integer >= 1 and <= 65536, "all" or "auto" (default "auto"))", ""},
      {"relative_to_empty", 8, 15,
       R"([output] relative_to is empty; expected a table of axes, each with the value of the baseline, as in)", ""},
      {"relative_to_list", 8, 24, R"([output] relative_to size is an array; expected one of small, medium, large)", ""},
      {"relative_to_not_swept", 9, 25,
       R"([output] relative_to has 'measure.warmpu', which is not swept; expected an axis: size, measure.warmup)",
       "; did you mean 'measure.warmup'?"},
      {"relative_to_twice", 9, 51, R"([output] relative_to has 'measure.warmup' twice; expected it once)", ""},
      {"relative_to_value", 8, 24,
       R"([output] relative_to size is "medium", which its axis does not have; expected one of small, large)", ""},
      {"relative_to_without_sweep", 6, 17,
       R"([output] relative_to has 'size', which is not swept; expected an axis of [sweep], and there is none)", ""},
      {"relative_to_zip", 9, 17,
       R"([output] relative_to size = "small" stands in several places of its [[sweep.zip]]; expected heads beside it, one of 1, 2)",
       ""},
      {"relative_to_zip_apart", 9, 17,
       R"([output] relative_to size = "small" has other values beside it than in its [[sweep.zip]]; expected values that)",
       ""},
      {"section_is_a_value", 3, 11, "measure is 3; expected a table [measure]", ""},
      {"setting_among_parameters", 6, 1, "unknown key 'steps' in [workload.params]", "; did you mean 'measure.steps'?"},
      {"setting_in_wrong_table", 6, 1, "unknown key 'warmup' in [run]", "; did you mean 'measure.warmup'?"},
      {"stall_timeout_unit", 6, 17,
       R"([run] stall_timeout is "2 minutes"; expected a duration: "10m", "90s", "500ms", "1h30m", or a number of seconds; 0 for none (default "2m"))",
       ""},
      {"steps_and_until", 7, 1,
       "[measure] has both 'steps' and 'until'; expected one of them: 'steps' for a fixed count, 'until' for a "
       "stopping rule",
       ""},
      {"steps_zero", 6, 9, "[measure] steps is 0; expected an integer >= 1 and <= 10000000 (default none)", ""},
      {"sweep_and_fixed", 8, 1,
       "'size' in [sweep] also has a fixed value in [workload.params] (line 6); expected one of the two", ""},
      {"sweep_element_type", 6, 21, R"([sweep] batch_size is "four"; expected an integer >= 1 (default 4))", ""},
      {"sweep_empty_axis", 6, 8, "[sweep] size is an empty array; expected at least one value", ""},
      {"sweep_empty_table", 6, 14,
       "[sweep] batch_size is a table without min, max, factor (or step); expected an array of values, or a "
       "range as in",
       ""},
      {"sweep_not_array", 6, 8, R"([sweep] size is "small"; expected an array of values, as in size = ["small"])", ""},
      {"sweep_setting_element", 6, 27,
       "[sweep] measure.warmup is -2; expected an integer >= 0 and <= 10000000 (default 5)", ""},
      {"sweep_too_large", 5, 1, "[sweep] has 160000 cases, more than 100000; expected fewer: sweep fewer values", ""},
      {"sweep_unknown", 6, 1, "unknown key 'sise' in [sweep]", "; did you mean 'size'?"},
      {"sweep_unknown_setting", 6, 1, "unknown key 'measure.warmpu' in [sweep]", "; did you mean 'measure.warmup'?"},
      {"swept_steps_and_until", 8, 1,
       "[measure] has both 'steps' and 'until'; expected one of them: 'steps' for a fixed count, 'until' for a "
       "stopping rule",
       ""},
      {"syntax_duplicate_key", 7, 9, "'steps' stands twice; expected each key once", ""},
      {"syntax_foreign_letter", 6, 3, "not TOML: ", ""},
      {"syntax_missing_value", 6, 9, "not TOML: ", ""},
      {"syntax_text_without_quotes", 2, 8, "not TOML: ", "; did you mean name = \"quick start\"?"},
      {"syntax_unclosed_header", 5, 9, "not TOML: ", ""},
      {"syntax_unclosed_string", 2, 13, "not TOML: ", ""},
      {"text_for_bool", 6, 17, R"([workload.params] checkpointing is "yes"; expected true or false (default false))",
       ""},
      {"threads_negative", 6, 11, "[run] threads is -1; expected an integer >= 0 and <= 65536 (default 0)", ""},
      {"timeout_unit", 6, 11, R"([measure] timeout is "10 minutes"; expected a duration abo)", ""},
      {"timeout_zero", 6, 11,
       R"([measure] timeout is 0; expected a duration above 0: "10m", "90s", "500ms", "1h30m", or a number of seconds (default "10m"))",
       ""},
      {"unknown_parameter", 7, 1, "unknown key 'batchsize' in [workload.params]", "; did you mean 'batch_size'?"},
      {"unknown_parameter_far", 6, 1,
       "unknown key 'zzz' in [workload.params]; known: size, batch_size, context_length, d_model, heads, lr, "
       "checkpointing, weights",
       ""},
      {"unknown_root_key", 2, 1, "unknown key 'nmae'", "; did you mean 'name'?"},
      {"unknown_root_table", 5, 2, "unknown table 'mesure'", "; did you mean 'measure'?"},
      {"unknown_setting", 6, 3, "unknown key 'stpes' in [measure]", "; did you mean 'steps'?"},
      {"until_confidence", 6, 47, "[measure.until] confidence is 1.5; expected a number > 0 and < 1 (default 0.95)",
       ""},
      {"until_min_above_max", 6, 1,
       "[measure] until has min_steps 20 above max_steps 10; expected min_steps <= max_steps", ""},
      {"until_unknown", 6, 1, "unknown key 'confidense' in [measure.until]", "; did you mean 'confidence'?"},
      {"warmup_is_text", 6, 10, R"([measure] warmup is "five"; expected an integer >= 0 and <= 10000000 (default 5))",
       ""},
      {"wireup_timeout_zero", 6, 18,
       R"([run] wireup_timeout is 0; expected a duration above 0: "10m", "90s", "500ms", "1h30m", or a number of seconds (default "1m"))",
       ""},
      {"wrong_schema", 1, 10, "schema is 2; expected 1, the layout that this version reads", ""},
      {"zip_and_product", 9, 1,
       "'heads' in [[sweep.zip]] is swept a second time (first line 6); expected each axis once", ""},
      {"zip_not_array", 5, 8, "[sweep] zip is a table; expected an array of tables: write [[sweep.zip]]", ""},
      {"zip_range_unequal", 7, 9,
       "[[sweep.zip]] heads has 3 values and d_model has 2; expected the same number: the keys of a group move "
       "together",
       ""},
      {"zip_unequal", 7, 9,
       "[[sweep.zip]] heads has 3 values and d_model has 2; expected the same number: the keys of a group move "
       "together",
       ""},
  };
  return files;
}

class MalformedFile : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedFile, IsReportedAtItsPlace) {
  const auto& expected = GetParam();
  const auto path = std::filesystem::path(MALFORMED_FOLDER) / (std::string(expected.file) + ".toml");
  const bool requires_layers = std::string(expected.file) == "missing_required_parameter";
  const auto schema = requires_layers ? schema_with_required_layers() : demo_schema();
  const auto result = ExperimentFile::read(path).finish(&schema);
  EXPECT_FALSE(result.experiment.has_value());
  ASSERT_EQ(result.mistakes.size(), 1u) << testing::PrintToString(lines(result));
  const Mistake& mistake = result.mistakes[0];
  EXPECT_EQ(mistake.file, path.string());
  EXPECT_EQ(mistake.line, expected.line);
  EXPECT_EQ(mistake.column, expected.column);
  EXPECT_TRUE(mistake.text.starts_with(expected.begins)) << mistake.text;
  EXPECT_TRUE(mistake.text.ends_with(expected.suggestion)) << mistake.text;
  EXPECT_EQ(mistake.text.find("did you mean") != std::string::npos, !expected.suggestion.empty()) << mistake.text;
  EXPECT_NE(mistake.text.find(expected.begins.starts_with("unknown") ? "; " : "; expected"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Experiment, MalformedFile, testing::ValuesIn(malformed_files()),
                         [](const auto& test) { return std::string(test.param.file); });

TEST(MalformedFiles, ALetterThatLooksLikeOursIsNamed) {
  const auto schema = demo_schema();
  const auto path = std::filesystem::path(MALFORMED_FOLDER) / "syntax_foreign_letter.toml";
  const auto result = ExperimentFile::read(path).finish(&schema);
  ASSERT_EQ(result.mistakes.size(), 1u);
  EXPECT_TRUE(result.mistakes[0].text.ends_with(": '\u0435' (U+0435) is no ASCII letter")) << result.mistakes[0].text;
}

TEST(MalformedFiles, EachHasARowInTheTable) {
  std::set<std::string> on_disk, in_table;
  for (const auto& entry : std::filesystem::directory_iterator(MALFORMED_FOLDER))
    on_disk.insert(entry.path().stem().string());
  for (const auto& row : malformed_files()) in_table.insert(row.file);
  EXPECT_EQ(on_disk, in_table);
}

}  // namespace
}  // namespace assay::host::experiment::test
