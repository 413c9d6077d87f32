#include "run/rank_place.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launch/launch_error.hpp"
#include "telemetry/contention.hpp"

namespace assay::host::run {

RankPlace place_of_this_process(std::int32_t local_rank) {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) throw launch::LaunchError::from_errno("cannot read this machine's name");
  std::string processors;
  for (const int processor : telemetry::usable_processors()) processors += fmt::format("{},", processor);
  return {name, local_rank, std::move(processors)};
}

std::string to_text(const RankPlace& place) {
  return nlohmann::json{{"host", place.host}, {"local_rank", place.local_rank}, {"processors", place.processors}}
      .dump();
}

RankPlace place_from(const std::string& text) {
  const nlohmann::json found = nlohmann::json::parse(text);
  return {found.at("host").get<std::string>(), found.at("local_rank").get<std::int32_t>(),
          found.at("processors").get<std::string>()};
}

}  // namespace assay::host::run
