#include "assay/workload/unread_settings.hpp"

#include <algorithm>
#include <assay/workload/text.hpp>
#include <string>
#include <vector>

namespace assay::workload {

namespace {

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

// As an experiment writes it.
std::string written(assay_type type, std::int64_t integer, double real, std::string_view text) {
  if (type == ASSAY_TYPE_BOOL) return integer != 0 ? "true" : "false";
  if (type == ASSAY_TYPE_INT) return std::to_string(integer);
  return type == ASSAY_TYPE_FLOAT ? number(real, "%.12g") : quoted(text);
}

std::string value_of(const Case& c, const assay_param& p) {
  if (p.type == ASSAY_TYPE_BOOL) return written(p.type, c.get<bool>(p.name) ? 1 : 0, 0, {});
  if (p.type == ASSAY_TYPE_INT) return written(p.type, c.get<std::int64_t>(p.name), 0, {});
  if (p.type == ASSAY_TYPE_FLOAT) return written(p.type, 0, c.get<double>(p.name), {});
  return written(p.type, 0, 0, c.get<std::string_view>(p.name));
}

bool is_of_preset(const Case& c, const Preset& p, std::string_view param, const std::string& value) {
  const assay_preset& row = p.row;
  return param == row.param && c.get<std::string_view>(row.when) == row.choice &&
         value == written(p.type, row.int_value, row.float_value, row.string_value);
}

// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& texts, const char* last = " and ") {
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) all += (i == 0 ? "" : i + 1 == texts.size() ? last : ", ") + texts[i];
  return all;
}

}  // namespace

void require_read(const Case& c, const char* choice, std::span<const ChoiceSetting> settings,
                  std::span<const Param> table, std::span<const Preset> presets) {
  const auto chosen = c.get<std::string_view>(choice);
  std::vector<std::string> unread, defaults;
  for (const ChoiceSetting& setting : settings) {
    std::vector<std::string> readers;
    for (const char* reader : setting.read_by)
      if (reader) readers.push_back(quoted(reader));
    if (std::find(readers.begin(), readers.end(), quoted(chosen)) != readers.end()) continue;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const Param& p) { return std::string_view(p.row.name) == setting.param; });
    if (found == table.end())
      throw Error(ASSAY_INTERNAL, std::string(setting.param) + " is in no table of those that " + choice + " reads");
    const assay_param& row = found->row;
    const std::string value = value_of(c, row), name = std::string(setting.param) + " = ",
                      at_default = written(row.type, row.default_int, row.default_float, row.default_string);
    if (value == at_default || std::any_of(presets.begin(), presets.end(),
                                           [&](const Preset& p) { return is_of_preset(c, p, setting.param, value); }))
      continue;
    unread.push_back(name + value + ", which is of " + listed(readers));
    defaults.push_back(name + at_default);
  }
  if (unread.empty()) return;
  const bool is_one = unread.size() == 1;
  throw Error(ASSAY_INVALID_ARGUMENT, std::string(choice) + " = " + quoted(chosen) + " does not read " +
                                          listed(unread, ", and ") + "; leave " + (is_one ? "it" : "them") +
                                          " out, or set " + (is_one ? "its default, " : "their defaults, ") +
                                          listed(defaults));
}

}  // namespace assay::workload
