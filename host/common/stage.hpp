// Where in its life a case is.
#pragma once
#include <cstdint>

namespace assay::host {

enum class Stage : std::int32_t { load, create, setup, warmup, measure, finish, verify, destroy, done };
const char* name_of(Stage stage);

}  // namespace assay::host
