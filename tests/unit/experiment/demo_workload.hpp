// A workload's schema with one parameter of every kind, and short ways to read a text against it.
#pragma once
#include "experiment/parse.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::host::experiment::test {

inline plugin::WorkloadSchema demo_schema() {
  plugin::WorkloadSchema schema;
  schema.id = "demo";
  schema.item_unit = "tokens";
  const auto text = [](std::string name, std::string value, std::vector<std::string> choices = {}) {
    plugin::ParamSpec spec;
    spec.name = std::move(name), spec.type = plugin::ParamType::text;
    spec.default_value = std::move(value), spec.choices = std::move(choices);
    return spec;
  };
  const auto integer = [](std::string name, std::int64_t value, double min) {
    plugin::ParamSpec spec;
    spec.name = std::move(name), spec.default_value = value, spec.min = min;
    return spec;
  };
  schema.params = {text("size", "small", {"small", "medium", "large"}), integer("batch_size", 4, 1),
                   integer("context_length", 512, 16), integer("d_model", 0, 0), integer("heads", 0, 0)};
  plugin::ParamSpec lr;
  lr.name = "lr", lr.type = plugin::ParamType::real, lr.default_value = 0.001, lr.min = 0.0, lr.max = 10.0;
  plugin::ParamSpec checkpointing;
  checkpointing.name = "checkpointing", checkpointing.type = plugin::ParamType::boolean,
  checkpointing.default_value = false;
  plugin::ParamSpec weights = text("weights", "");
  weights.input_path = true;
  schema.params.insert(schema.params.end(), {lr, checkpointing, weights});
  schema.metrics = {{"parameters", "", "", Direction::neither, false}, {"loss", "", "", Direction::neither, true}};
  schema.phases = {"forward", "backward"};
  schema.starts_cold = true;
  return schema;
}

// The same with dimensions that follow from the size, and a precision that means another on each device.
inline plugin::WorkloadSchema schema_with_presets() {
  auto schema = demo_schema();
  plugin::ParamSpec amp;
  amp.name = "amp", amp.type = plugin::ParamType::text;
  amp.default_value = std::string("auto"), amp.choices = {"auto", "fp16", "off"};
  schema.params.push_back(amp);
  const auto of_size = [&](const char* size, const char* param, std::int64_t value) {
    schema.presets.push_back({"size", size, "", "", "", param, value});
  };
  of_size("small", "d_model", 768), of_size("small", "heads", 12);
  of_size("large", "d_model", 1280), of_size("large", "heads", 20);
  schema.presets.push_back({"amp", "auto", "", "", "cuda", "amp", std::string("fp16")});
  schema.presets.push_back({"amp", "auto", "", "", "cpu", "amp", std::string("off")});
  return schema;
}

inline plugin::WorkloadSchema schema_with_required_layers() {
  auto schema = demo_schema();
  plugin::ParamSpec layers;
  layers.name = "layers", layers.required = true, layers.min = 1.0, layers.max = 96.0;
  schema.params.push_back(layers);
  return schema;
}

// What every experiment needs, with nothing swept; `rest` follows [workload.params].
inline std::string experiment_text(const std::string& rest = "", const std::string& params = "") {
  return "schema = 1\nname = \"demo\"\n[workload]\nplugin = \"demo\"\n[workload.params]\n" + params + "\n" + rest;
}

inline ParseResult parse(const std::string& text, const std::vector<std::string>& set = {},
                         const std::vector<std::string>& filters = {}) {
  const auto schema = demo_schema();
  return ExperimentFile::from_text(text, "x.toml", set).finish(&schema, filters);
}

inline std::vector<std::string> lines(const ParseResult& result) {
  std::vector<std::string> texts;
  for (const auto& mistake : result.mistakes) texts.push_back(mistake.to_string());
  return texts;
}

// The experiment of a text that has to be right; the mistakes show when it is not.
inline Experiment good(const std::string& text, const std::vector<std::string>& set = {},
                       const std::vector<std::string>& filters = {}) {
  auto result = parse(text, set, filters);
  for (const auto& line : lines(result)) ADD_FAILURE() << line;
  return result.experiment.value_or(Experiment{});
}

// Each case as its axes: "size=small measure.warmup=0".
inline std::vector<std::string> axes_of(const Experiment& experiment) {
  std::vector<std::string> result;
  for (const auto& c : experiment.cases) {
    std::string text;
    for (const auto& [key, value] : c.axes) text += (text.empty() ? "" : " ") + key + "=" + to_text(value);
    result.push_back(text);
  }
  return result;
}

}  // namespace assay::host::experiment::test
