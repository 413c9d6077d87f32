// A model as its publisher describes it: the config.json that transformers keeps beside the weights, read as values of
// the parameters that decoders have here.
//
// The reader guesses nothing. A field that it does not know, one that says what no workload does, and one that is
// missing are problems of the file, and the reader names each as it stands there. `without_meaning` lists the fields
// that it leaves out on purpose.
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

// Reads a file of one of the families that model_configuration.cpp lists, by its model_type.
ModelConfiguration read_model_configuration(const std::string& text);

// True for a parameter that such a file may decide.
bool is_of_model_configuration(std::string_view param);

}  // namespace assay::host::experiment
