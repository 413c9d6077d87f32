#include <gtest/gtest.h>
#include <unistd.h>
#include <assay/plugin.hpp>
#include <assay/train/safetensors.hpp>

#include <cstring>
#include <fstream>

namespace assay::train {
namespace {

using compute::DType;

class Safetensors : public testing::Test {
 protected:
  Safetensors() : folder_(std::filesystem::temp_directory_path() / ("assay_safetensors_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Safetensors() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }
  std::filesystem::path write_raw(const std::string& header, const std::string& data) const {
    std::ofstream out(file("raw"), std::ios::binary);
    const std::uint64_t n = header.size();
    for (int i = 0; i < 8; ++i) out.put(static_cast<char>(n >> (8 * i) & 0xff));
    out << header << data;
    return file("raw");
  }
  static std::string message_of(const std::filesystem::path& path) {
    try {
      const SafetensorsReader reader(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
      return e.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::int64_t b = 7;
  SafetensorsWriter writer(file("x.safetensors"));
  writer.declare("a", DType::f32, {2, 3});
  writer.declare("b", DType::i64, {});
  writer.write("a", a.data(), 24);
  writer.write("b", &b, 8);
  writer.finish();
  const SafetensorsReader reader(file("x.safetensors"));
  EXPECT_EQ(reader.at("a").dims, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(reader.at("b").dims.empty());
  const auto bytes = reader.read("a");
  EXPECT_EQ(std::memcmp(bytes.data(), a.data(), 24), 0);
  EXPECT_THROW((void)reader.at("c"), Error);
}

// Two files with a and b, c, and what an index may say of them.
TEST_F(Safetensors, AnIndexStandsForSeveralFiles) {
  const auto write = [this](const char* name, std::vector<std::pair<const char*, float>> tensors) {
    SafetensorsWriter writer(file(name));
    for (const auto& [tensor, value] : tensors) writer.declare(tensor, DType::f32, {1});
    for (const auto& [tensor, value] : tensors) writer.write(tensor, &value, 4);
    writer.finish();
  };
  write("m-1.safetensors", {{"a", 1}});
  write("m-2.safetensors", {{"b", 2}, {"c", 3}});
  const auto index = [this](const std::string& map) {
    std::ofstream(file("m.safetensors.index.json"))
        << R"({"metadata": {"total_size": 12}, "weight_map": {)" << map << "}}";
    return file("m.safetensors.index.json");
  };
  const std::string a = R"("a": "m-1.safetensors")", bc = R"("b": "m-2.safetensors", "c": "m-2.safetensors")";
  const SafetensorsReader reader(index(a + ", " + bc));
  EXPECT_EQ(reader.tensors().size(), 3u);
  float read = 0;
  for (const auto& [name, value] : {std::pair{"a", 1.0F}, {"b", 2.0F}, {"c", 3.0F}}) {
    std::memcpy(&read, reader.read(name).data(), 4);
    EXPECT_EQ(read, value) << name;
  }
  const auto has = [&](const std::string& map, const char* text) {
    const std::string message = message_of(index(map));
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  has(a + R"(, "b": "m-2.safetensors")", "has no tensor 'c', which m-2.safetensors has");
  has(a + ", " + bc + R"(, "d": "m-1.safetensors")", "tensor 'd' is in m-1.safetensors, which has none of this name");
  has(R"("a": "m-2.safetensors", )" + bc + R"(, "x": "m-1.safetensors")", "'a' is in m-2.safetensors, which has none");
  has(a + ", " + bc + R"(, "d": "m-3.safetensors")", "m-3.safetensors: cannot be opened");
  has(a + ", " + bc + R"(, "d": "../m-1.safetensors")", "expected the name of one beside the index");
  has(a + ", " + a, "names tensor 'a' twice");
  write("m-3.safetensors", {{"a", 4}, {"d", 5}});
  has(a + ", " + bc + R"(, "d": "m-3.safetensors")", "tensor 'a' is in two files, m-1.safetensors and m-3.safetensors");
  std::ofstream(file("m.safetensors.index.json")) << "{}";
  EXPECT_NE(message_of(file("m.safetensors.index.json")).find("expected JSON with \"weight_map\""), std::string::npos);
}

TEST_F(Safetensors, NumbersThatWrapAreRefused) {
  const auto message = [this](const std::string& shape, const std::string& begin, const std::string& end) {
    return message_of(
        write_raw(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[)" + begin + "," + end + "]}}",
                  std::string(16, 'x')));
  };
  const std::string does_not_fit = "which does not fit its shape or the file's size";
  // 4 bytes times 2^62 elements are 2^64 bytes, which is 0.
  EXPECT_NE(message("[4611686018427387904]", "0", "0").find(does_not_fit), std::string::npos);
  EXPECT_NE(message("[2147483648,2147483648,4]", "0", "0").find(does_not_fit), std::string::npos);
  EXPECT_NE(message("[9223372036854775809]", "0", "16").find(does_not_fit), std::string::npos);
  EXPECT_NE(message("[-1,-4]", "0", "16").find("malformed header entry"), std::string::npos);
  // The end of the header and this are 0 again.
  EXPECT_NE(message("[4]", "18446744073709551544", "18446744073709551560").find(does_not_fit), std::string::npos);
  EXPECT_EQ(message("[4]", "0", "16"), "");
  EXPECT_EQ(message_of(write_raw(R"({"a":{"dtype":"F32","shape":[0,4611686018427387904],"data_offsets":[0,0]}})", "")),
            "");
}

// As the format says: whole numbers, two offsets, names that stand once, and every byte of one tensor.
TEST_F(Safetensors, WhatTheFormatDoesNotHaveIsRefused) {
  const auto of = [this](const std::string& header) { return message_of(write_raw(header, std::string(16, 'x'))); };
  const auto one = [&](const std::string& shape, const std::string& offsets) {
    return of(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}");
  };
  for (const auto& [shape, offsets] : std::vector<std::pair<std::string, std::string>>{
           {"[4.9]", "[0,16]"}, {"[4]", "[0.9,16.2]"}, {"[4]", "[0,16,16]"}, {"[4]", "[0]"}})
    EXPECT_NE(one(shape, offsets).find("malformed header entry"), std::string::npos) << shape << offsets;
  const std::string first = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_NE(of("{" + first + "," + first + "}").find("names tensor 'a' twice"), std::string::npos);
  const auto with_b = [&](const std::string& shape, const std::string& offsets) {
    return of("{" + first + R"(,"b":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}");
  };
  EXPECT_EQ(with_b("[2]", "[8,16]"), "");
  for (const auto& [shape, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"[2]", "[4,12]"}, {"[1]", "[12,16]"}, {"[1]", "[8,12]"}})
    EXPECT_NE(with_b(shape, offsets).find("its tensors overlap, or leave bytes"), std::string::npos) << offsets;
}

TEST_F(Safetensors, ADeeplyNestedHeaderEndsNothing) {
  const std::string deep = "{\"a\":" + std::string(3'000'000, '[') + std::string(3'000'000, ']') + "}";
  for (const std::string& header : {deep, std::string(R"({"a":{"dtype":"F32","shape":[[4]],"data_offsets":[0,4]}})")})
    EXPECT_NE(message_of(write_raw(header, "xxxx")).find("values within each other"), std::string::npos);
}

TEST_F(Safetensors, AnUnfinishedFileDoesNotAppear) {
  {
    SafetensorsWriter writer(file("y.safetensors"));
    writer.declare("a", DType::f32, {4});
    writer.declare("b", DType::f32, {4});
    const float zeros[4] = {};
    writer.write("a", zeros, 16);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Safetensors, AFolderInTheWayLeavesNothingBehind) {
  const float zeros[4] = {};
  std::filesystem::create_directory(file("before"));
  SafetensorsWriter early(file("before"));
  early.declare("a", DType::f32, {4});
  try {
    early.write("a", zeros, 16);
    FAIL() << "a folder was written";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_INVALID_ARGUMENT);
    EXPECT_EQ(e.what(), file("before").string() + ": is a folder; name another file, or remove the folder");
  }
  {
    SafetensorsWriter late(file("meanwhile"));
    late.declare("a", DType::f32, {4});
    late.write("a", zeros, 16);
    std::filesystem::create_directory(file("meanwhile"));
    EXPECT_THROW(late.finish(), Error);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) EXPECT_TRUE(entry.is_directory()) << entry;
}

TEST_F(Safetensors, BrokenFilesAreNamed) {
  EXPECT_NE(message_of(file("absent")).find("cannot be opened"), std::string::npos);
  std::ofstream(file("short")) << "abc";
  EXPECT_NE(message_of(file("short")).find("shorter than 8 bytes"), std::string::npos);
  std::ofstream(file("index")) << R"({"weight_map": {}})";
  EXPECT_NE(message_of(file("index")).find("index of a model in several files"), std::string::npos);
  EXPECT_NE(message_of(write_raw("{nonsense", "")).find("no JSON object"), std::string::npos);
  EXPECT_NE(
      message_of(write_raw(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234")).find("cut short"),
      std::string::npos);
  EXPECT_NE(
      message_of(write_raw(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "1234")).find("dtype F31"),
      std::string::npos);
  EXPECT_NE(message_of(write_raw(R"({"a":{"dtype":"F32"}})", "")).find("malformed header entry"), std::string::npos);
}

}  // namespace
}  // namespace assay::train
