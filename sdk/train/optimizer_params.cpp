#include "assay/train/optimizer_params.hpp"

namespace assay::train {

OptimizerConfig optimizer_config(const Case& c) {
  OptimizerConfig optimizer;
  optimizer.name = c.choice("optimizer", optimizer_names);  // the config keeps a view
  optimizer.lr = c.get<double>("lr");
  return optimizer;
}

}  // namespace assay::train
