// A model as its publisher describes it: the config.json that transformers keeps beside the weights, read as values of
// the parameters that decoders have here.
//
// Nothing is guessed. A field that is not known, one that says what no workload does, and one that is missing are each
// a problem of the file, named as they stand there; what is left out on purpose is a list (without_meaning).
#pragma once
#include "common/value.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::experiment {

struct ModelConfiguration {
  std::map<std::string, Value> values;  // by parameter; what the family never has stands there, too, as "false" or 0
  std::vector<std::string> problems;    // not empty: no value counts
};

// Of the families in model_configuration.cpp, by model_type.
ModelConfiguration read_model_configuration(const std::string& text);

// True for a parameter that such a file may decide.
bool is_of_model_configuration(std::string_view param);

}  // namespace assay::host::experiment
