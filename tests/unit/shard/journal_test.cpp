#include "shard/journal.hpp"

#include <gtest/gtest.h>

#include "common/files.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::shard {
namespace {

using Event = JournalEntry::Event;

class JournalFile : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "journal.jsonl"; }
  test::TemporaryFolder folder_;
};

TEST_F(JournalFile, WhatIsAppendedIsReadBack) {
  Journal journal(file());
  journal.append({Event::begin, 3, 1000.25, ""});
  journal.append({Event::end, 3, 1001.5, "ok"});
  journal.append({Event::left, 4, 1002, ""});
  journal.append({Event::quarantine, 5, 1003, "crashed"});
  const auto entries = read_journal(file());
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].event, Event::begin);
  EXPECT_EQ(entries[0].case_index, 3);
  EXPECT_DOUBLE_EQ(entries[0].at_s, 1000.25);
  EXPECT_EQ(entries[1].status, "ok");
  EXPECT_EQ(entries[2].event, Event::left);
  EXPECT_EQ(entries[3].event, Event::quarantine);
}

TEST_F(JournalFile, NoFileHasNoEntries) { EXPECT_TRUE(read_journal(file()).empty()); }

TEST_F(JournalFile, TornAnywhereTheWholeLinesCount) {
  {
    Journal journal(file());
    for (std::int64_t i = 0; i < 3; ++i) {
      journal.append({Event::begin, i, 1000, ""});
      journal.append({Event::end, i, 1001, "ok"});
    }
  }
  const std::string whole = read_file(file());
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const std::string torn = whole.substr(0, length);
    test::put_file(file(), torn);
    const auto lines = static_cast<std::size_t>(std::count(torn.begin(), torn.end(), '\n'));
    const auto entries = read_journal(file());
    ASSERT_EQ(entries.size(), lines) << "of " << length << " bytes";
    for (std::size_t i = 0; i < lines; ++i) {
      EXPECT_EQ(entries[i].case_index, static_cast<std::int64_t>(i / 2));
      EXPECT_EQ(entries[i].event, i % 2 == 0 ? Event::begin : Event::end);
    }
  }
}

TEST_F(JournalFile, LinesThatAreNoEntriesAreLeftOut) {
  test::put_file(
      file(),
      "\n{}\n[1]\nnonsense\n{\"case\":1,\"event\":\"later\"}\n{\"case\":\"1\",\"event\":\"begin\"}\n"
      "{\"case\":1,\"event\":7}\n{\"case\":1.5,\"event\":\"begin\"}\n{\"case\":2,\"event\":\"begin\",\"t\":\"x\"}\n");
  const auto entries = read_journal(file());
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].case_index, 2);
}

TEST_F(JournalFile, CannotBeOpenedInAFolderThatIsNotThere) {
  EXPECT_THROW(Journal(folder_ / "nowhere" / "journal.jsonl"), StorageError);
}

}  // namespace
}  // namespace assay::host::shard
