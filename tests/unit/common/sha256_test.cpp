#include "common/sha256.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <system_error>

#include "support/temporary_folder.hpp"

namespace assay::host::test {
namespace {

// The examples of FIPS 180-4, and of nothing at all.
TEST(Sha256, IsThatOfTheStandard) {
  Sha256 of_abc;
  of_abc.add("a");
  of_abc.add("bc");
  EXPECT_EQ(of_abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const assay::test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  std::ofstream(file) << "";
  EXPECT_EQ(sha256_of_file(file), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  std::ofstream(file) << std::string(1000000, 'a');
  EXPECT_EQ(sha256_of_file(file), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// One byte at a time, no block comes whole: the library takes all of it. Whole blocks go through the processor's
// instructions where it has them.
TEST(Sha256, DoesNotDependOnThePiecesThatComeTogether) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i % 251);
  const auto in_pieces_of = [](const std::string& all, std::size_t size) {
    Sha256 hash;
    for (std::size_t i = 0; i < all.size(); i += size) hash.add(std::string_view(all).substr(i, size));
    return hash.hex();
  };
  for (const std::size_t length : {1, 55, 56, 63, 64, 65, 127, 128, 129, 512, 1000}) {
    const std::string part = text.substr(0, length);
    for (const std::size_t size : {7, 63, 64, 65, 100, 128, 200, 1000})
      EXPECT_EQ(in_pieces_of(part, size), in_pieces_of(part, 1)) << length << " bytes in pieces of " << size;
  }
}

TEST(Sha256, AFileThatCannotBeReadIsNamed) {
  const assay::test::TemporaryFolder folder;
  for (const std::filesystem::path& path : {folder.path() / "none", folder.path()}) {
    try {
      sha256_of_file(path);
      ADD_FAILURE() << path;
    } catch (const std::system_error& e) {
      EXPECT_NE(std::string(e.what()).find("cannot read " + path.string()), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace assay::host::test
