#include "assay/verification/other_path.hpp"

#include <assay/plugin.hpp>

#include <assay/workload/text.hpp>
#include <cmath>

namespace assay::verification {

using workload::number;

std::string check_starting_loss(double loss, const StartingLoss& of_random_weights, bool weights_are_random) {
  const std::string found = "starting loss " + number(loss, "%.5g");
  if (!weights_are_random) return found + " (weights from a file); ";
  const std::string text = found + ", expected " + number(of_random_weights.expected, "%.5g") + " +- " +
                           number(of_random_weights.allowed, "%.2g") + " for random weights";
  if (!(std::abs(loss - of_random_weights.expected) <= of_random_weights.allowed))
    throw Error(ASSAY_WRONG_RESULT, text);
  return text + "; ";
}

std::string against_the_other_path(bool timed_is_fused) {
  return timed_is_fused ? "fused path against the unfused one" : "unfused path against the fused one";
}

bool make_other_path(compute::Backend& backend, const Outcome& timed,
                     const std::vector<std::function<void()>>& attempts) {
  compute::inspector_of(backend)->release_memory();
  for (std::size_t i = 0; i < attempts.size(); ++i) try {
      with_room_of(backend, timed, attempts[i]);
      return true;
    } catch (const Error& e) {
      if (e.status() == ASSAY_OUT_OF_MEMORY) return false;
      if (e.status() != ASSAY_UNSUPPORTED || i + 1 == attempts.size()) throw;
    }
  return false;
}

std::string no_room_text(const std::string& what, const train::Model& other) {
  return "not checked: " + what + ", for whose " + std::to_string(other.activation_bytes() >> 20) +
         " MiB of activations there is no room";
}

}  // namespace assay::verification
