// What the GPU's library takes by itself, as the host learns it.
#include "memory_account.hpp"

#include <assay/memory_account.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace assay::cuda {
namespace {

class MemoryAccount : public ::testing::Test {
 protected:
  MemoryAccount() {
    account_.impl = this;
    account_.report = [](const assay_memory* m, assay_memory_kind kind, std::int64_t delta, assay_str) noexcept {
      EXPECT_EQ(kind, ASSAY_MEMORY_WORKSPACE);
      auto& self = *static_cast<MemoryAccount*>(m->impl);
      self.held_ += delta;
      self.most_ = std::max(self.most_, self.held_);
    };
    tell(&account_);
  }
  ~MemoryAccount() override { tell(nullptr); }
  static void tell(const assay_memory* account) {
    static_cast<const assay_memory_account*>(memory_account_extension(ASSAY_EXT_MEMORY_ACCOUNT))
        ->tell(nullptr, account);
  }
  assay_memory account_{sizeof(assay_memory), nullptr, nullptr, nullptr, nullptr, nullptr};
  std::int64_t held_ = 0, most_ = 0;
};

TEST_F(MemoryAccount, HoldsWhatIsTakenAsLongAsItIs) {
  {
    AccountedBytes pool(1000, "pool");
    EXPECT_EQ(held_, 1000);
    pool = AccountedBytes(3000, "pool");
    EXPECT_EQ(held_, 3000);
    AccountedBytes moved = std::move(pool);
    EXPECT_EQ(held_, 3000);
    moved = AccountedBytes();
    EXPECT_EQ(held_, 0);
    std::vector<AccountedBytes> trials;
    for (int i = 0; i < 10; ++i) trials.emplace_back(100, "trial");
    EXPECT_EQ(held_, 1000);
  }
  EXPECT_EQ(held_, 0);
  EXPECT_GE(most_, 3000);
}

TEST_F(MemoryAccount, NobodyIsToldWithoutAnAccount) {
  tell(nullptr);
  const AccountedBytes taken(1000, "pool");
  EXPECT_EQ(held_, 0);
  EXPECT_EQ(memory_account_extension("assay.other/1"), nullptr);
}

}  // namespace
}  // namespace assay::cuda
