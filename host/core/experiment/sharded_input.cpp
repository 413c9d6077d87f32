#include "experiment/sharded_input.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>

#include "common/files.hpp"
#include "common/foreign_json.hpp"

namespace assay::host::experiment {

Shards shards_of(const std::string& input) {
  if (!input.ends_with(".safetensors.index.json")) return {};
  constexpr std::uintmax_t largest_index = std::uintmax_t{64} << 20;
  std::error_code error;
  if (const std::uintmax_t size = std::filesystem::file_size(input, error); error || size > largest_index)
    return {{}, error ? error.message() : fmt::format("{} bytes are no index of files", size)};
  const auto json = json_or_discarded(read_regular_file(input));
  const bool has_map = json.is_object() && json.contains("weight_map") && json["weight_map"].is_object();
  if (!has_map || json["weight_map"].empty())
    return {{}, "it is no index of files; expected \"weight_map\", the file of each tensor by its name"};
  std::set<std::string> names;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    const std::string name = file.is_string() ? file.template get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
      return {{},
              fmt::format("the file of tensor '{}' is {}; expected the name of one beside the index", tensor,
                          file.dump(-1, ' ', false, decltype(json)::error_handler_t::replace))};
    names.insert(name);
  }
  Shards shards;
  for (const std::string& name : names) {
    const auto path = std::filesystem::path(input).parent_path() / name;
    if (!std::filesystem::is_regular_file(path, error))
      return {{},
              fmt::format("it names '{}', and {} is no file; expected all {} files beside the index", name,
                          path.string(), names.size())};
    shards.paths.push_back(path.string());
  }
  return shards;
}

}  // namespace assay::host::experiment
