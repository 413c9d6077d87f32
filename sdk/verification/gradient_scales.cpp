#include "gradient_scales.hpp"

#include <algorithm>
#include <assay/compute/difference.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace assay::verification {
namespace {

using Id = train::ParameterSet::Id;

class Scales {
 public:
  Scales(const std::vector<BlockDifference>& differences, const train::ParameterSet& parameters,
         const PathTolerance& tolerance)
      : differences_(differences),
        all_(parameters.all()),
        tolerance_(tolerance),
        count_(std::min(differences.size(), parameters.all().size())) {}

  std::size_t count() const { return count_; }
  double mean_square(std::size_t begin, std::size_t end) const {
    double squares = 0, elements = 0;
    for (std::size_t i = begin; i < end; ++i) {
      squares += differences_[i].expected_squares();
      elements += static_cast<double>(differences_[i].elements());
    }
    return elements > 0 ? std::sqrt(squares / elements) : 0;
  }

  // Of a parameter by one beside it in the same layer, outside its group; 0: there is none.
  double by_another(Id id) const {
    for (const auto rule :
         {&Scales::of_head_norm, &Scales::of_query_latent, &Scales::of_router_bias, &Scales::of_sinks})
      if (const double scale = (this->*rule)(id); scale > 0) return scale;
    return 0;
  }

 private:
  // The parameter of the same layer whose name has `other` where that of `id` ends with `own`.
  std::optional<Id> beside(Id id, std::string_view own, std::string_view other) const {
    std::string name = all_[id].name;
    if (!name.ends_with(own)) return {};
    name.replace(name.size() - own.size(), own.size(), other);
    for (Id i = 0; i < count_; ++i)
      if (all_[i].name == name) return i;
    return {};
  }
  double mean_square_of(Id id) const { return mean_square(id, id + 1); }
  double first_dimension(Id id) const { return static_cast<double>(all_[id].dims[0]); }
  double last_dimension(Id id) const { return static_cast<double>(all_[id].dims.back()); }

  // The gradient by a norm of heads is the sum over heads of such terms as the gradients by queries and keys are made
  // of.
  double of_head_norm(Id id) const {
    for (const auto& [own, product] :
         {std::pair{"q_norm.weight", "q_proj.weight"}, {"k_norm.weight", "k_proj.weight"}}) {
      const auto matrix = beside(id, own, product), values = beside(id, own, "v_proj.weight");
      if (!matrix || !values) continue;
      const double heads = first_dimension(*matrix) / first_dimension(id);
      return tolerance_.cancelled * std::sqrt(heads) * mean_square_of(*values);
    }
    return 0;
  }

  // Latent attention's queries are a product of a normed latent, like its keys and values, and the gradients by values
  // have terms as large. They are part of what `kv_b_proj` makes; its other part belongs to keys and may also be nearly
  // zero. The gradient by a latent's norm sums the columns made of the latent; some of them are values.
  double of_query_latent(Id id) const {
    if (const auto both = beside(id, "q_b_proj.weight", "kv_b_proj.weight"))
      if (const auto out = beside(id, "q_b_proj.weight", "output_proj.weight"))
        return tolerance_.cancelled * std::sqrt(first_dimension(*both) / last_dimension(*out)) * mean_square_of(*both);
    if (const auto norm = beside(id, "q_a_norm.weight", "kv_a_norm.weight"))
      if (const auto queries = beside(id, "q_a_norm.weight", "q_b_proj.weight"))
        if (const auto out = beside(id, "q_a_norm.weight", "output_proj.weight"))
          return tolerance_.cancelled * std::sqrt(first_dimension(*queries) / last_dimension(*out)) *
                 mean_square_of(*norm);
    return 0;
  }

  // The gradient by the router's bias sums over tokens what that by its weight sums with normed states, of size one. Of
  // few experts there are few such sums, and of two that are both chosen one, with either sign: any of them may be
  // nearly zero.
  double of_router_bias(Id id) const {
    const auto weight = beside(id, "router.bias", "router.weight");
    return weight ? mean_square_of(*weight) : 0;
  }

  // The gradient by a head's sink sums, over tokens, the sink's probability times the product of the head's result with
  // its gradient: a part of <W, dW> of the weight behind attention, whose d columns have independent signs. Of few
  // heads there are few such sums.
  double of_sinks(Id id) const {
    const auto out = beside(id, "sinks", "output_proj.weight");
    if (!out) return 0;
    const double of_head = first_dimension(*out) * last_dimension(*out) / first_dimension(id);
    return tolerance_.sinks * std::sqrt(of_head) * static_cast<double>(all_[*out].init_std) * mean_square_of(*out);
  }

  const std::vector<BlockDifference>& differences_;
  const std::vector<train::Parameter>& all_;
  const PathTolerance& tolerance_;
  std::size_t count_;
};

}  // namespace

// Parameters of a group are gradients of one product's parts, made of terms as large as those of the largest. Of a
// group of biases the keys' is nearly zero at any length: it moves all scores of a query alike, but for the rotation.
std::vector<double> gradient_scales(const std::vector<BlockDifference>& differences,
                                    const train::ParameterSet& parameters, const PathTolerance& tolerance) {
  constexpr double share_of_all = 1e-2;
  const Scales found(differences, parameters, tolerance);
  const double of_all = share_of_all * found.mean_square(0, found.count());
  std::vector<double> scales(differences.size(), of_all);
  const std::vector<Id>& groups = parameters.group_begins();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t begin = std::min(groups[g], found.count());
    const std::size_t end = std::min(found.count(), g + 1 < groups.size() ? groups[g + 1] : found.count());
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = compute::worse(largest, found.mean_square(i, i + 1));
    const bool of_biases = end > begin + 1 && parameters.all()[begin].dims.size() == 1;
    const double of_group = of_biases ? found.mean_square(begin, end) : tolerance.cancelled * largest;
    for (std::size_t i = begin; i < end; ++i)
      scales[i] = compute::worse(compute::worse(of_group, of_all), found.by_another(i));
  }
  return scales;
}

}  // namespace assay::verification
