// `config_file`: a published configuration of a model in the place of a preset.
//
// A workload that takes one has an input path of this name in its table. The host reads the file, as it reads presets,
// so that its contents are known before anything starts. They stand in the plan, the record and every table, an
// experiment overrides them one by one, and the workload receives them as if the experiment had written them. It is a
// separate parameter, and not a value of `size`: that one is a choice, which an experiment may misspell, and a path is
// none. An input path is found from the experiment's folder, hashed as part of the case and watched while it runs.
#pragma once
#include "experiment/experiment.hpp"
#include "experiment/model_configuration.hpp"
#include "plugin/schema.hpp"

#include <map>
#include <string>
#include <vector>

namespace assay::host::experiment {

inline constexpr const char* model_file_param = "config_file";

class ModelFiles {
 public:
  // Gives the parameters that the case's file decides their values, where the experiment gives them none.
  void apply(const plugin::WorkloadSchema& schema, Case& into);
  // What is wrong, with each file once.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  const ModelConfiguration& read(const std::string& path);
  void refuse(const std::string& path, const std::string& what);

  std::map<std::string, ModelConfiguration> read_;
  std::vector<std::string> problems_;
};

// True for a parameter that the case's file decides.
bool is_decided_by_file(const plugin::WorkloadSchema& schema, const Case& c, const std::string& param);

}  // namespace assay::host::experiment
