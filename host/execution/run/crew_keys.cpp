#include "run/crew_keys.hpp"

#include <nlohmann/json.hpp>

namespace assay::host::run {

std::string dismissal(int exit_code) { return nlohmann::json{{"dismissed", exit_code}}.dump(); }

std::optional<int> dismissal_in(const nlohmann::json& order) {
  const auto found = order.find("dismissed");
  return found == order.end() ? std::nullopt : std::optional(found->get<int>());
}

}  // namespace assay::host::run
