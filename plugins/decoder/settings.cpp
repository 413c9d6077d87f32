#include "settings.hpp"

#include <algorithm>

namespace decoder {
namespace {

// The table's own text, which is static: an OptimizerConfig keeps a view.
template <std::size_t N>
const char* static_name(const std::array<const char*, N>& names, std::string_view name) {
  return *std::find(names.begin(), names.end(), name);
}

}  // namespace

Settings::Settings(const assay::Case& c) : seed(c.seed()) {
  const auto size_name = c.get<std::string_view>("size");
  const Size& size = *std::find_if(sizes.begin(), sizes.end(), [&](const Size& s) { return s.name == size_name; });
  const auto or_size = [&](const char* key, std::int64_t of_size) {
    const auto given = c.get<std::int64_t>(key);
    return given > 0 ? given : of_size;
  };
  model.d_model = or_size("d_model", size.d_model);
  model.d_ff = or_size("d_ff", size.d_ff);
  model.layers = or_size("layers", size.layers);
  model.heads = or_size("heads", size.heads);
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.context_length = c.get<std::int64_t>("context_length");
  model.precision = assay::train::precision_policy(c.get<std::string_view>("precision"), c.device_kind());
  model.fused = c.get<std::string_view>("execution") == "graph";
  model.flash = c.get<std::string_view>("attention") == "flash";
  const auto pass_name = c.get<std::string_view>("pass");
  pass = pass_name == "forward"            ? Pass::forward
         : pass_name == "forward_backward" ? Pass::forward_backward
                                           : Pass::train_step;
  model.backward = pass != Pass::forward;
  model.checkpointing = model.backward && c.get<bool>("activation_checkpointing");
  optimizer.name = static_name(assay::train::optimizer_names, c.get<std::string_view>("optimizer"));
  optimizer.lr = c.get<double>("lr");
  weights_file = c.get<std::string>("weights");
  inputs_file = c.get<std::string>("inputs");
  dump_file = c.get<std::string>("dump");
  model.keep_logits = !dump_file.empty();
  model.side_lane = c.get<bool>("side_lane");
  model.validate();
}

}  // namespace decoder
