#include "assay/verification/experts_check.hpp"

#include <algorithm>
#include <cmath>

namespace assay::verification {

using compute::Tensor;

namespace {

std::vector<std::int32_t> numbers_of(compute::Backend& backend, const Tensor& t) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(t.elements()));
  backend.download(numbers.data(), t);
  return numbers;
}

}  // namespace

ChosenExperts chosen_experts(compute::Backend& backend, const models::DecoderModel& model) {
  ChosenExperts chosen;
  for (std::int64_t l = 0; l < model.config().layers; ++l)
    chosen.by_layer.push_back(model.config().has_experts(l) ? numbers_of(backend, model.experts_of(l))
                                                            : std::vector<std::int32_t>());
  return chosen;
}

std::string check_routing(const models::DecoderTrainer& trainer) {
  const models::DecoderConfig& c = trainer.config().model;
  const auto k = static_cast<std::size_t>(c.experts.per_token);
  compute::Backend& backend = trainer.backend();
  const ChosenExperts chosen = chosen_experts(backend, trainer.model());
  if (c.experts.routing == models::Routing::learned && trainer.model().has_given_experts())
    throw Error(ASSAY_WRONG_RESULT, "experts come from a table, and the router was to choose them");
  std::vector<std::int32_t> drawn;
  if (c.experts.routing != models::Routing::learned)
    drawn = models::drawn_experts(c.experts, c.rows(), c.accumulation_steps, trainer.config().seed);
  for (std::int64_t l = c.experts.first_dense_layers; l < c.layers; ++l) {
    const auto refuse = [&](const std::string& text) {
      throw Error(ASSAY_WRONG_RESULT, "layer " + std::to_string(l) + ": " + text);
    };
    const std::vector<std::int32_t>& experts = chosen.by_layer[static_cast<std::size_t>(l)];
    for (std::size_t i = 0; i < experts.size(); ++i) {
      const std::string token = "token " + std::to_string(i / k);
      const std::string expert = "expert " + std::to_string(experts[i]);
      if (experts[i] < 0 || experts[i] >= c.experts.count)
        refuse(token + " goes to " + expert + " of " + std::to_string(c.experts.count));
      const auto begin = experts.begin() + static_cast<std::ptrdiff_t>(i / k * k);
      if (std::find(begin, experts.begin() + static_cast<std::ptrdiff_t>(i), experts[i]) !=
          experts.begin() + static_cast<std::ptrdiff_t>(i))
        refuse(token + " goes to " + expert + " twice");
      if (!drawn.empty() && experts[i] != drawn[i])
        refuse(token + " goes to " + expert + ", and was to go to " + std::to_string(drawn[i]));
    }
    std::vector<std::int32_t> expected(static_cast<std::size_t>(c.experts.count));
    const auto last = static_cast<std::ptrdiff_t>(c.rows() * c.experts.per_token);
    for (auto e = experts.end() - last; e != experts.end(); ++e) ++expected[static_cast<std::size_t>(*e)];
    const std::vector<std::int32_t> counts = numbers_of(backend, trainer.model().expert_counts(l));
    for (std::size_t e = 0; e < counts.size(); ++e)
      if (counts[e] != expected[e])
        refuse("expert " + std::to_string(e) + " has a count of " + std::to_string(counts[e]) + ", and " +
               std::to_string(expected[e]) + " tokens chose it");
  }
  return "each token has " + std::to_string(k) + " distinct experts of " + std::to_string(c.experts.count) +
         (drawn.empty() ? "" : ", those that were drawn") + ", and counts add up to " +
         std::to_string(c.rows() * c.experts.per_token) + " in " + std::to_string(c.expert_layers()) + " layers; ";
}

RoutingFigures routing_figures(compute::Backend& backend, const models::DecoderModel& model) {
  const models::DecoderConfig& c = model.config();
  RoutingFigures figures;
  std::vector<double> counts;
  for (std::int64_t l = c.experts.first_dense_layers; l < c.layers; ++l)
    for (const std::int32_t count : numbers_of(backend, model.expert_counts(l)))
      counts.push_back(static_cast<double>(count));
  if (counts.empty()) return figures;
  figures.least = *std::min_element(counts.begin(), counts.end());
  figures.most = *std::max_element(counts.begin(), counts.end());
  double sum = 0, squares = 0;
  for (const double count : counts) sum += count;
  figures.mean = sum / static_cast<double>(counts.size());
  for (const double count : counts) squares += (count - figures.mean) * (count - figures.mean);
  figures.variation = std::sqrt(squares / static_cast<double>(counts.size())) / figures.mean;
  std::vector<float> losses(static_cast<std::size_t>(2 * c.expert_layers()));
  backend.download(losses.data(), model.routing_losses());
  for (std::size_t i = 0; i < losses.size(); i += 2)
    figures.balance += double{losses[i]} / static_cast<double>(c.expert_layers()),
        figures.z += double{losses[i + 1]} / static_cast<double>(c.expert_layers());
  return figures;
}

}  // namespace assay::verification
