// The border's layout, frozen: the headers of this tree are what border.table says, and border.table has all that the
// tables of the releases have, unchanged. A table says what plugins in the field were compiled against.
#include <assay/abi.h>
#include <assay/algorithms.h>
#include <assay/cache.h>
#include <assay/comm.h>
#include <assay/device.h>
#include <assay/graph_events.h>
#include <assay/memory_account.h>
#include <assay/observation.h>
#include <assay/planning.h>
#include <assay/probe.h>
#include <assay/profiling.h>
#include <assay/telemetry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "the numbers of the table are those of LP64");

#define SIZE(bytes, owner)                                                                      \
  static_assert(sizeof(owner) == (bytes), "the size of " #owner " has changed");                \
  static_assert(alignof(owner) == 8, "the alignment of " #owner " has changed");                \
  static_assert(std::is_standard_layout_v<owner> && std::is_trivially_copyable_v<owner>, #owner \
                " is no longer plain "                                                          \
                "C");
#define FIELD(at, owner, field, ...)                                             \
  static_assert(offsetof(owner, field) == (at), #owner "." #field " has moved"); \
  static_assert(std::is_same_v<decltype(owner::field), __VA_ARGS__>, #owner "." #field " has another type");
#define VALUE(constant, number) static_assert((constant) == (number), "the value of " #constant " has changed");
#define TEXT(constant, text) \
  static_assert(std::string_view(constant) == (text), "the text of " #constant " has changed");
#include "border.table"
#undef SIZE
#undef FIELD
#undef VALUE
#undef TEXT

static_assert(std::is_same_v<assay_status, int32_t> && std::is_same_v<assay_type, int32_t> &&
              std::is_same_v<assay_direction, int32_t> && std::is_same_v<assay_scope, int32_t> &&
              std::is_same_v<assay_arithmetic, int32_t> && std::is_same_v<assay_stage, int32_t> &&
              std::is_same_v<assay_memory_kind, int32_t> && std::is_same_v<assay_traced_kind, int32_t> &&
              std::is_same_v<assay_telemetry_moment, int32_t>);

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << file << " cannot be read";
  return lines;
}

// A row of a table: what it is of ("FIELD assay_work.flops", "SIZE assay_work", "VALUE ASSAY_OK"), and the whole of it.
struct Row {
  std::string line;
  std::string owner;  // of a size or a field
  std::int64_t number = 0;
};
using Table = std::map<std::string, Row>;

// What stands between two texts, or nothing.
std::string between(const std::string& line, const std::string& begin, const std::string& end) {
  const std::size_t from = line.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t to = line.find(end, from + begin.size());
  return to == std::string::npos ? "" : line.substr(from + begin.size(), to - from - begin.size());
}

Table table_of(const fs::path& file) {
  Table table;
  for (const std::string& line : lines_of(file)) {
    if (line.empty() || line.starts_with("//")) continue;
    const std::string kind = line.substr(0, line.find('('));
    Row row{line, "", 0};
    std::string key = kind + " ";
    if (kind == "SIZE" || kind == "FIELD") {
      row.number = std::atoll(between(line, "(", ",").c_str());
      row.owner = between(line, ", ", kind == "SIZE" ? ")" : ",");
      key += row.owner;
      if (kind == "FIELD") key += "." + between(line, ", " + row.owner + ", ", ",");
    } else {
      EXPECT_TRUE(kind == "VALUE" || kind == "TEXT") << file << ": '" << line << "' is no row";
      key += between(line, "(", ",");
      if (kind == "VALUE") row.number = std::atoll(between(line, ", ", ")").c_str());
    }
    EXPECT_TRUE(line.ends_with(")") && !key.ends_with(" ") && !key.ends_with("."))
        << file << ": '" << line << "' is no whole row; expected SIZE, FIELD, VALUE or TEXT on one line";
    EXPECT_TRUE(table.emplace(key, std::move(row)).second) << file << " has a second row for " << key;
  }
  return table;
}

const Row* find(const Table& table, const std::string& key) {
  const auto found = table.find(key);
  return found == table.end() ? nullptr : &found->second;
}

// A struct's size, and what counts something, may grow. Nothing else of a release may differ.
bool may_grow(const std::string& key) {
  return key.starts_with("SIZE ") || key.ends_with("_MINOR") || key.ends_with("_COUNT");
}

// What of a release is not as it was in a later table; one line each.
std::vector<std::string> changes(const Table& released, const Table& now) {
  std::vector<std::string> found;
  bool has_grown = false, has_higher_minor = false;
  for (const auto& [key, row] : released) {
    const Row* const today = find(now, key);
    if (!today)
      found.push_back(key + " is gone: '" + row.line + "'");
    else if (may_grow(key) ? today->number < row.number : today->line != row.line)
      found.push_back(key + " was released as '" + row.line + "', and is '" + today->line + "'");
    if (today && key.ends_with("ABI_MINOR")) has_higher_minor |= today->number > row.number;
  }
  for (const auto& [key, row] : now) {
    if (find(released, key)) continue;
    has_grown = true;
    const Row* const size = row.owner.empty() ? nullptr : find(released, "SIZE " + row.owner);
    if (size && row.number < size->number)
      found.push_back(key + " is new, and lies within the " + std::to_string(size->number) + " bytes that " +
                      row.owner + " was released with; append it at the end");
  }
  if (has_grown && !has_higher_minor)
    found.push_back(
        "there are rows that the release did not have; raise ASSAY_ABI_MINOR, or ASSAY_DEVICE_ABI_MINOR for what a "
        "device backend offers");
  return found;
}

Table border() { return table_of(fs::path(ABI_TEST_FOLDER) / "border.table"); }

// What a release has said stays so, whatever is added.
TEST(Layout, NothingOfAReleaseHasChanged) {
  std::size_t releases = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ABI_TEST_FOLDER) / "released")) {
    if (entry.path().extension() != ".table") continue;
    ++releases;
    for (const std::string& change : changes(table_of(entry.path()), border()))
      ADD_FAILURE() << entry.path().filename() << ": " << change << "; released rows are never edited, only added to";
  }
  EXPECT_GE(releases, 1u);
}

// Nor is what it has said edited beside border.table.
TEST(Layout, TheTablesOfTheReleasesAreAsTheyWere) {
  EXPECT_EQ(std::system("cd '" ABI_TEST_FOLDER "/released' && sha256sum --quiet -c SHA256SUMS"), 0);
}

TEST(Layout, WhatChangesIsTold) {
  const Table released = border();
  EXPECT_TRUE(changes(released, released).empty());

  Table moved = released;
  moved.at("FIELD assay_work.items").line = "FIELD(32, assay_work, items, uint64_t)";
  moved.erase("VALUE ASSAY_OK");
  ASSERT_EQ(changes(released, moved).size(), 2u);
  EXPECT_EQ(changes(released, moved).back(), "VALUE ASSAY_OK is gone: 'VALUE(ASSAY_OK, 0)'");

  Table grown = released;
  grown["FIELD assay_work.more"] = {"FIELD(40, assay_work, more, uint64_t)", "assay_work", 40};
  grown.at("SIZE assay_work").number = 48;
  EXPECT_EQ(changes(released, grown).size(), 1u);  // of the same minor
  ++grown.at("VALUE ASSAY_ABI_MINOR").number;
  EXPECT_TRUE(changes(released, grown).empty());
  grown["FIELD assay_work.inside"] = {"FIELD(36, assay_work, inside, int32_t)", "assay_work", 36};
  ASSERT_EQ(changes(released, grown).size(), 1u);
  EXPECT_NE(changes(released, grown).front().find("append it at the end"), std::string::npos);

  Table shrunk = released;
  --shrunk.at("SIZE assay_work").number;
  EXPECT_EQ(changes(released, shrunk).size(), 1u);
}

// Every struct and constant of the headers stands in the table: what is left out is not frozen.
TEST(Layout, TheTableHasAllOfTheHeaders) {
  const std::set<std::string> of_the_compiler{"ASSAY_EXPORT", "ASSAY_NOEXCEPT"};
  const Table table = border();
  std::size_t structs = 0;
  for (const auto& header : fs::directory_iterator(SDK_INCLUDE_FOLDER "/assay")) {
    if (header.path().extension() != ".h") continue;
    for (const std::string& line : lines_of(header.path())) {
      const std::string owner = between(line, "typedef struct ", " {");
      std::string constant = line.starts_with("#define ASSAY_") ? between(line + " ", "#define ", " ") : "";
      // A header's own guard has no value, and a macro with arguments is for the compiler alone.
      if (constant.find('(') != std::string::npos || line == "#define " + constant) constant.clear();
      if (!owner.empty()) {
        ++structs;
        EXPECT_TRUE(find(table, "SIZE " + owner)) << header.path().filename() << ": " << owner;
      }
      if (!constant.empty() && !of_the_compiler.contains(constant)) {
        EXPECT_TRUE(find(table, "VALUE " + constant) || find(table, "TEXT " + constant))
            << header.path().filename() << ": " << constant;
      }
    }
  }
  EXPECT_GE(structs, 31u);
}

// The fields of a struct stand in the table one behind the other, without a gap, up to the struct's end.
TEST(Layout, TheTableHasAllFields) {
  struct Field {
    std::size_t at, bytes;
    std::string name;
  };
  std::map<std::string, std::vector<Field>> fields;
  std::map<std::string, std::size_t> sizes;
#define SIZE(bytes, owner) sizes[#owner] = (bytes);
#define FIELD(at, owner, field, ...) fields[#owner].push_back({at, sizeof(owner::field), #field});
#define VALUE(constant, number)
#define TEXT(constant, text)
#include "border.table"
#undef SIZE
#undef FIELD
#undef VALUE
#undef TEXT
  for (auto& [owner, list] : fields) {
    std::sort(list.begin(), list.end(), [](const Field& a, const Field& b) { return a.at < b.at; });
    std::size_t end = 0;
    for (const Field& field : list) {
      EXPECT_EQ(field.at, end) << owner << " before " << field.name;
      end = field.at + field.bytes;
    }
    EXPECT_EQ(end, sizes.at(owner)) << owner << " behind its last field";
    if (owner != "assay_str") {
      EXPECT_EQ(list.front().name, "struct_size") << owner << " cannot grow";
    }
  }
}

// A symbol's number is the major version: the two rise together, or a host finds a plugin it does not understand.
TEST(Layout, SymbolsCarryTheMajorVersion) {
  EXPECT_EQ(std::string(ASSAY_ENTRY_SYMBOL), "assay_entry_v" + std::to_string(ASSAY_ABI_MAJOR));
  EXPECT_EQ(std::string(ASSAY_DEVICE_SYMBOL), "assay_device_v" + std::to_string(ASSAY_DEVICE_ABI_MAJOR));
}

// The size alone says what a struct of another age holds.
TEST(Layout, HasCountsAFieldOnlyWhenAllOfItIsThere) {
  assay_work work{};
  work.struct_size = sizeof(assay_work);
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, items));
  work.struct_size = offsetof(assay_work, arithmetic) - 1;
  EXPECT_FALSE(ASSAY_HAS(&work, assay_work, items));
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, bytes));
  work.struct_size = offsetof(assay_work, bytes);
  EXPECT_FALSE(ASSAY_HAS(&work, assay_work, bytes));
  EXPECT_TRUE(ASSAY_HAS(&work, assay_work, flops));
}

}  // namespace
