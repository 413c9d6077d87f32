#include "record/identity_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::host::record {
namespace {

using R = const CaseRecord&;

// An empty text is an absent one.
Cell known(const std::string& text) { return text.empty() ? Cell{} : text_cell(text); }

template <auto Member>
Cell of_device(R r) {
  return r.result.device ? known((*r.result.device).*Member) : Cell{};
}
template <auto Member>
Cell of_plugin(R r) {
  return r.identity.plugin ? known((*r.identity.plugin).*Member) : Cell{};
}

constexpr Column word_column(std::string_view name, Cell (*cell)(R)) {
  Column column{name, cell};
  column.is_text = true;
  return column;
}

constexpr std::array identity{word_column("device.uuid", of_device<&Device::uuid>),
                              word_column("device.driver", of_device<&Device::driver>),
                              word_column("device.libraries", of_device<&Device::libraries>),
                              word_column("device.abi", of_device<&Device::abi>),
                              word_column("device.build", of_device<&Device::build>),
                              word_column("host", [](R r) { return known(r.host); }),
                              word_column("environment", [](R r) { return known(r.environment); }),
                              word_column("plugin.id", of_plugin<&Plugin::id>),
                              word_column("plugin.version", of_plugin<&Plugin::version>),
                              word_column("plugin.build", of_plugin<&Plugin::build>),
                              word_column("plugin.file_hash", of_plugin<&Plugin::file_hash>),
                              word_column("plugin.abi", of_plugin<&Plugin::abi>)};

// The kinds of files: those that a case has once, and those that it may have several times, by name.
constexpr std::array<std::string_view, 3> single_files{"host", "plugin", "device"};
constexpr std::array<std::string_view, 3> named_files{"plugin/", "comm.", "input."};

}  // namespace

std::span<const Column> identity_columns() { return identity; }

bool is_file_column(std::string_view column) {
  if (!column.starts_with(files_prefix)) return false;
  column.remove_prefix(files_prefix.size());
  return std::find(single_files.begin(), single_files.end(), column) != single_files.end() ||
         std::any_of(named_files.begin(), named_files.end(), [column](std::string_view kind) {
           return column.starts_with(kind) && column.size() > kind.size();
         });
}

Cell file_cell(R record, std::string_view column) {
  const std::string* hash = find(record.identity.files, column.substr(files_prefix.size()));
  return hash ? text_cell(*hash) : Cell{};
}

std::vector<std::string> file_columns(const std::vector<CaseRecord>& records) {
  std::vector<std::string> columns;
  for (const CaseRecord& record : records)
    for (const auto& file : record.identity.files)
      if (std::string name = fmt::format("{}{}", files_prefix, file.first);
          std::find(columns.begin(), columns.end(), name) == columns.end())
        columns.push_back(std::move(name));
  return columns;
}

}  // namespace assay::host::record
