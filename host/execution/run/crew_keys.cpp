#include "run/crew_keys.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace assay::host::run {

std::string hello_request() { return fmt::format("exchange '{}': ", hello_name); }

std::string without_names(std::string text) {
  for (const auto& [name, plain] :
       {std::pair{hello_request(), ""}, std::pair{fmt::format("of '{}' ", crew_group), "of this launch "}})
    if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), plain);
  return text;
}

std::string dismissal(int exit_code) { return nlohmann::json{{"dismissed", exit_code}}.dump(); }

std::optional<int> dismissal_in(const nlohmann::json& order) {
  const auto found = order.find("dismissed");
  return found == order.end() ? std::nullopt : std::optional(found->get<int>());
}

}  // namespace assay::host::run
