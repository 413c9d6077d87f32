#include "wireup/private_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "helpers.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

namespace fs = std::filesystem;

const std::string good = "pQ7vX2mN9sKd4RtLwZ8eYb";

class PrivateFile : public testing::Test {
 protected:
  fs::path file(const std::string& text, mode_t mode) const {
    const fs::path made = folder_.path() / "token";
    fs::remove(made);
    std::ofstream(made) << text;
    EXPECT_EQ(chmod(made.c_str(), mode), 0);
    return made;
  }

  TemporaryFolder folder_;
};

TEST_F(PrivateFile, IsReadWhenItIsThisUsersAlone) {
  EXPECT_EQ(read_private_file(file("text\n", 0600)).text, "text\n");
  EXPECT_EQ(read_private_file(file("", 0400)).text, "");
  EXPECT_EQ(token_of_file(file(good + "\r\n", 0600), "X"), good);
}

TEST_F(PrivateFile, OthersMayNeitherReadNorWriteIt) {
  for (const mode_t mode : {0640, 0620, 0604, 0602, 0644, 0666}) {
    const PrivateText read = read_private_file(file(good, mode));
    EXPECT_FALSE(read.text) << mode;
    EXPECT_CONTAINS(read.problem, "chmod 600");
    EXPECT_CONTAINS(read.problem, folder_.path().string());
    EXPECT_EQ(read.problem.find(good), std::string::npos);
  }
}

TEST_F(PrivateFile, OfAnotherUserIsNotBelieved) {
  const fs::path found = file(good, 0600);
  if (geteuid() != 0 || chown(found.c_str(), 1, 1) != 0) GTEST_SKIP() << "needs root, who may give files away";
  EXPECT_CONTAINS(read_private_file(found).problem, "belongs to user 1");
}

TEST_F(PrivateFile, IsAnOrdinaryFile) {
  const fs::path target = file(good, 0600), link = folder_.path() / "link", pipe = folder_.path() / "pipe";
  fs::create_symlink(target, link);
  EXPECT_CONTAINS(read_private_file(link).problem, "is a link");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_CONTAINS(read_private_file(pipe).problem, "is no ordinary file");
  EXPECT_CONTAINS(read_private_file(folder_.path()).problem, "is no ordinary file");
  EXPECT_CONTAINS(read_private_file("/no/such").problem, "there is no such file: /no/such");
  EXPECT_CONTAINS(read_private_file(file(std::string(100'000, 'x'), 0600)).problem, "has more than 65536 bytes");
}

TEST(Token, OfAUserIsLongAndNotOneCharacter) {
  check_token(good, "X");
  check_token(random_token(), "X");
  for (const std::string& weak : {std::string("secret"), good.substr(1), std::string(64, 'a'), std::string(5000, 'a'),
                                  std::string("abababababababababababab")}) {
    const std::string text = error_of([&] { check_token(weak, "ASSAY_X"); });
    EXPECT_CONTAINS(text, "ASSAY_X has " + std::to_string(weak.size()) + " characters");
    EXPECT_CONTAINS(text, "'openssl rand -hex 16'");
    EXPECT_EQ(text.find(weak), std::string::npos) << "the token is shown";
  }
}

TEST(Token, IsRandom) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, random_token());
}

}  // namespace
}  // namespace assay::host::wireup
