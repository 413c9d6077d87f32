// What a note says of threads that waited for processors, and what to do about it.
#include <gtest/gtest.h>

#include "worker/findings.hpp"

namespace assay::host::worker {
namespace {

telemetry::Contention waiting(double others_share, std::uint64_t busy_threads, std::size_t processors) {
  telemetry::Contention contention;
  contention.stall_share = contention.foreign_stall_share = 0.5;
  contention.others_share = others_share;
  contention.busy_threads = busy_threads;
  contention.processors = processors;
  return contention;
}

std::string note_of(const telemetry::Contention& contention, std::int64_t threads) {
  const std::vector<std::string> notes = contention_notes(contention, threads, contention.busy_threads.value());
  return notes.empty() ? "" : notes.back();
}

constexpr const char* own_processors =
    "give the run processors that nothing else uses (taskset, or a job of whole cores)";

TEST(ContentionNotes, NameTheThreadsThatAreTooMany) {
  EXPECT_EQ(
      note_of(waiting(0.5, 2, 2), 2),
      std::string("contended: its threads waited for other processes, which took 50% of the processors, in 50% of the "
                  "measured time: 2 busy threads on 2 processors; use fewer threads ([run] threads = 1), or ") +
          own_processors);
  EXPECT_NE(note_of(waiting(0.25, 8, 8), 8).find("([run] threads = 6)"), std::string::npos);
  EXPECT_NE(note_of(waiting(0, 9, 8), 8).find("([run] threads = 7)"), std::string::npos)
      << "one of the nine is a library's own, and keeps running";
  EXPECT_NE(note_of(waiting(1, 4, 4), 4).find("([run] threads = 1)"), std::string::npos) << "there is always one";
}

TEST(ContentionNotes, OneNoteHasBothFigures) {
  EXPECT_EQ(contention_notes(waiting(0.5, 2, 2), 2, 2).size(), 1u);
  telemetry::Contention contention = waiting(0.5, 2, 2);
  contention.stall_share = contention.foreign_stall_share = 0.0;
  EXPECT_EQ(note_of(contention, 2),
            "contended: other processes took 50% of the processors while this case was measured");
}

// With one thread, or no more than there are processors for, fewer would be no remedy.
TEST(ContentionNotes, WhereFewerThreadsDoNotHelpProcessorsDo) {
  for (const std::string& note : {note_of(waiting(0.9, 1, 2), 1), note_of(waiting(0.1, 3, 4), 3)}) {
    EXPECT_EQ(note.find("use fewer threads"), std::string::npos) << note;
    EXPECT_NE(note.find(own_processors), std::string::npos) << note;
  }
}

TEST(ContentionNotes, AreNoneWhereNobodyWaited) {
  telemetry::Contention contention = waiting(0.02, 2, 2);
  contention.stall_share = contention.foreign_stall_share = 0.04;
  EXPECT_TRUE(contention_notes(contention, 2, 4).empty());
  contention.stall_share.reset(), contention.foreign_stall_share.reset();
  EXPECT_TRUE(contention_notes(contention, 2, 4).empty());
}

TEST(ContentionNotes, ThreadsThatWaitForOneAnotherAreNotContended) {
  telemetry::Contention contention = waiting(0.01, 1, 2);
  contention.foreign_stall_share = 0.02;
  EXPECT_EQ(
      contention_notes(contention, 1, 4),
      std::vector<std::string>{"the case itself keeps 4 threads busy on 2 processors, so they wait for one another; "
                               "with fewer ranks or threads each would have a processor"});
  EXPECT_TRUE(contention_notes(contention, 1, 2).empty()) << "each has one, and the scheduler did not see it at once";
  contention.foreign_stall_share.reset();
  EXPECT_NE(note_of(contention, 1).find("contended"), std::string::npos) << "nobody knows for whom they waited";
}

}  // namespace
}  // namespace assay::host::worker
