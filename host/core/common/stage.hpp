// Where in its life a case is.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::host {

enum class Stage : std::int32_t { load, create, setup, warmup, measure, finish, verify, destroy, deinit, done };
const char* name_of(Stage stage);
std::optional<Stage> stage_of(std::string_view name);

}  // namespace assay::host
