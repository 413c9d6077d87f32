#include "common/json_nodes.hpp"

#include "common/foreign_json.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/trials.hpp"

namespace assay::host {
namespace {

using Json = nlohmann::ordered_json;

// What the nodes say, as the other reader has it.
Json json_of(const JsonNodes::Value& value) {
  switch (value.kind()) {
    case JsonNodes::Kind::null: return nullptr;
    case JsonNodes::Kind::boolean: return value.boolean();
    case JsonNodes::Kind::fraction: return value.number();
    case JsonNodes::Kind::text: return value.text();
    case JsonNodes::Kind::whole_number:
      if (const auto whole = value.whole_number<std::int64_t>()) return *whole;
      return *value.whole_number<std::uint64_t>();
    case JsonNodes::Kind::list: {
      Json list = Json::array();
      value.for_each_element([&list](const JsonNodes::Value& each) { list.push_back(json_of(each)); });
      EXPECT_EQ(list.size(), value.count());
      return list;
    }
    case JsonNodes::Kind::object: break;
  }
  Json object = Json::object();
  value.for_each_member([&](const std::string& name, const JsonNodes::Value& each) {
    EXPECT_FALSE(object.contains(name)) << name;
    object[name] = json_of(each);
    std::uint32_t from = 0;
    EXPECT_EQ(json_of(*value.find(name, from)), object[name]) << name;
  });
  return object;
}

// By name: of a name that stands twice the place is another.
nlohmann::json sorted(const Json& json) { return nlohmann::json::parse(json.dump()); }

void expect_read_alike(const std::string& text) {
  const Json expected = json_or_discarded(text);
  const auto nodes = JsonNodes::parse(text);
  ASSERT_EQ(nodes.has_value(), !expected.is_discarded()) << text;
  if (nodes) {
    EXPECT_EQ(sorted(json_of(nodes->root())), sorted(expected)) << text;
  }
}

TEST(JsonNodes, AreWhatTheOtherReaderReads) {
  for (const char* text : {"",
                           " ",
                           "{}",
                           "[]",
                           " [ ] ",
                           "{ }",
                           "null",
                           "nul",
                           "true",
                           "false",
                           "True",
                           "3",
                           "-0",
                           "-",
                           "+1",
                           "01",
                           "1.",
                           ".5",
                           "1.5",
                           "-1.5e-3",
                           "1e5",
                           "1e",
                           "1e+",
                           "1E+2",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "[1e400]",
                           "9223372036854775807",
                           "9223372036854775808",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551615",
                           "18446744073709551616",
                           "123456789012345678901234567890",
                           "\"\"",
                           "\"a",
                           "\"a\" b",
                           "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                           "\"\\x\"",
                           "\"\\",
                           "\"\\u00e4\\u20ac\\ud83d\\ude00\"",
                           "\"\\ud83d\"",
                           "\"\\ude00\"",
                           "\"\\ud83d\\u0041\"",
                           "\"\\u12\"",
                           "\"\\u00g0\"",
                           "\"\\u0000\"",
                           "\"\t\"",
                           "\"\x7f\"",
                           "\"\xc3\xa4\"",
                           "\"\xc3\"",
                           "\"\xff\"",
                           "\"\xe0\x80\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xf0\x9f\x98\x80\"",
                           "\xef\xbb\xbf{}",
                           "[1,2]",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1",
                           "{\"a\":1}",
                           "{\"a\" : 1 , }",
                           "{\"a\"}",
                           "{a:1}",
                           "{\"a\":1,\"a\":2}",
                           "{\"a\":1,\"b\":2,\"\\u0061\":3}",
                           "{\"\\u0061\":3,\"a\":1}",
                           "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":[]}",
                           "{} {}",
                           "{}x",
                           "// c\n{}"})
    expect_read_alike(text);
  expect_read_alike(std::string("{}\0x", 4));
  expect_read_alike(std::string("[1\0]", 4));
}

TEST(JsonNodes, NestedTooDeeplyIsRefused) {
  for (const int levels : {deepest_json, deepest_json + 1})
    expect_read_alike(std::string(static_cast<std::size_t>(levels), '[') +
                      std::string(static_cast<std::size_t>(levels), ']'));
  EXPECT_FALSE(JsonNodes::parse(std::string(1'000'000, '[')));
}

TEST(JsonNodes, ATextWithAnyByteChangedIsReadAlike) {
  const std::string text =
      R"({"schema":1,"a":[1,-2.5e3,true,null],"b":{"name":"x\n\u00e4","name2":"y"},"c":"äö","d":18446744073709551615})";
  const std::string bytes = "{}[]\",:\\ue0-+.\x01\xc3\xa4 ntf1";
  std::mt19937 random(1);
  for (int trial = 0; trial < assay::test::that_many(20'000); ++trial) {
    std::string changed = text;
    for (int i = 0; i < 1 + trial % 3; ++i) changed[random() % changed.size()] = bytes[random() % bytes.size()];
    if (trial % 5 == 0) changed.resize(random() % changed.size());
    expect_read_alike(changed);
  }
}

TEST(JsonNodes, MembersAreFoundInAnyOrder) {
  const auto nodes = JsonNodes::parse(R"({"a":1,"b":[2,3],"c":{"a":4}})");
  std::uint32_t from = 0;
  EXPECT_EQ(nodes->root().find("b", from)->spelt(), "[2,3]");
  EXPECT_EQ(nodes->root().find("c", from)->spelt(), R"({"a":4})");
  EXPECT_FALSE(nodes->root().find("d", from));
  EXPECT_EQ(nodes->root().find("a", from)->number(), 1);
}

}  // namespace
}  // namespace assay::host
