#include "settings.hpp"

#include <string>

namespace mixed_precision {
namespace {

bool is_default(const assay::Case& c, const assay_param& row) {
  switch (row.type) {
    case ASSAY_TYPE_BOOL: return c.get<bool>(row.name) == (row.default_int != 0);
    case ASSAY_TYPE_INT: return c.get<std::int64_t>(row.name) == row.default_int;
    case ASSAY_TYPE_FLOAT: return c.get<double>(row.name) == row.default_float;
    default: return c.get<std::string_view>(row.name) == row.default_string;
  }
}

template <class Table>
void refuse_changed(const assay::Case& c, const Table& table, StudyKind study, StudyKind owner) {
  for (const Param& param : table)
    if (!is_default(c, param.row))
      throw assay::Error(ASSAY_INVALID_ARGUMENT, "'" + std::string(param.row.name) + "' is a parameter of study = \"" +
                                                     studies.name_of(owner) + "\" and does nothing in \"" +
                                                     studies.name_of(study) + "\"; leave it out");
}

}  // namespace

void refuse_parameters_of_others(const assay::Case& c, StudyKind study) {
  using enum StudyKind;
  if (study != accumulation) refuse_changed(c, accumulation_params, study, accumulation);
  if (study != speed_accuracy) refuse_changed(c, speed_accuracy_params, study, speed_accuracy);
  if (study != dtypes) refuse_changed(c, dtypes_params, study, dtypes);
  if (study == accumulation) refuse_changed(c, precision_params, study, dtypes);
}

}  // namespace mixed_precision
