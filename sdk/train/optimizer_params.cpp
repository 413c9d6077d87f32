#include "assay/train/optimizer_params.hpp"

#include <assay/workload/unread_settings.hpp>

namespace assay::train {

OptimizerConfig optimizer_config(const Case& c, WholeMatrixOptimizers of_matrices) {
  OptimizerConfig optimizer;
  optimizer.name = c.choice("optimizer", optimizer_names);  // the config keeps a view
  optimizer.lr = c.get<double>("lr");
  optimizer.weight_decay = c.get<float>("weight_decay");
  if (optimizer.name == "muon" && of_matrices == WholeMatrixOptimizers::refused)
    throw Error(ASSAY_UNSUPPORTED,
                "this workload does not serve optimizer = \"muon\", which updates whole matrices; expected optimizer = "
                "\"adamw\", or one of the workloads decoder, moe, ddp and sharded_optimizer, which do");
  if (of_matrices == WholeMatrixOptimizers::refused) return optimizer;
  constexpr workload::ChoiceSetting settings[] = {{"muon_lr", {"muon"}},       {"muon_weight_decay", {"muon"}},
                                                  {"muon_momentum", {"muon"}}, {"muon_nesterov", {"muon"}},
                                                  {"muon_steps", {"muon"}},    {"muon_adjust", {"muon"}}};
  workload::require_read(c, "optimizer", settings, optimizer_params);
  if (c.get<float>("muon_momentum") == 1)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "muon_momentum = 1 takes nothing of a gradient, so that no matrix learns; expected less than 1");
  optimizer.muon = {.lr = c.get<double>("muon_lr"),
                    .weight_decay = c.get<float>("muon_weight_decay"),
                    .momentum = c.get<float>("muon_momentum"),
                    .nesterov = c.get<bool>("muon_nesterov"),
                    .steps = c.get<std::int64_t>("muon_steps"),
                    .adjust = c.choice<MuonAdjust>("muon_adjust", muon_adjusts)};
  return optimizer;
}

}  // namespace assay::train
