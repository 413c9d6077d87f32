#include "assay/mesh/strategy.hpp"

#include <string>

namespace assay::mesh {

void validate(const Strategy& strategy) {
  const auto refuse = [](const std::string& text) { throw Error(ASSAY_INTERNAL, "the strategy " + text); };
  const bool gradients = strategy.gradients.has_value(), update = strategy.update.has_value();
  if (gradients && update) refuse("has both gradients and update; expected one of them");
  switch (strategy.shares) {
    case Shares::nothing:
      if (!gradients && !update) refuse("shares nothing and exchanges nothing; expected gradients or update");
      break;
    case Shares::blocks:
      if (gradients || update) refuse("shares blocks, which exchange gradients and updates; leave both out");
      break;
    case Shares::columns:
      if (gradients || update)
        refuse("shares columns, whose gradients are a rank's own; leave gradients and update out");
      break;
    case Shares::stages:
      if (gradients || update)
        refuse("shares stages, whose gradients are a rank's own; leave gradients and update out");
      break;
    case Shares::tokens:
      if (!gradients || strategy.gradients->reduction != comm::Reduction::sum)
        refuse("shares tokens, and a rank's gradients are terms of a sum; expected gradients that are summed");
      if (strategy.axes.has_replicas() && !strategy.trainer.has_terms())
        refuse(
            "shares tokens in replicas, whose gradients are summed over all; expected losses that are terms of one "
            "mean; set trainer.is_term");
      break;
  }
  if (strategy.axes.has_replicas() && strategy.shares == Shares::nothing)
    refuse("has replicas, and shares nothing; leave axes out");
  if (strategy.gathers != parallel::Gathers::any_memory && strategy.shares != Shares::blocks && !update)
    refuse("gathers no parameters; leave gathers out");
}

}  // namespace assay::mesh
