#include "launch/event_reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace assay::host::launch {
namespace {

WorkerEvents events_in(std::initializer_list<std::string_view> pieces) {
  EventReader reader({});
  for (const std::string_view piece : pieces) reader.take(piece);
  return std::move(reader).finish();
}

TEST(EventReader, JoinsLinesThatArriveInPieces) {
  const WorkerEvents events = events_in({"{\"eve", "nt\":\"note\"}\n{\"event\"", ":\"result\"}\n"});
  ASSERT_EQ(events.others.size(), 1u);
  EXPECT_EQ(events.others[0], R"({"event":"note"})");
  EXPECT_EQ(events.result, R"({"event":"result"})");
  EXPECT_EQ(events.torn, "");
}

TEST(EventReader, KeepsATornLineAside) {
  const WorkerEvents events = events_in({"{\"event\":\"note\"}\n{\"event\":\"result\",\"x\":"});
  EXPECT_EQ(events.others.size(), 1u);
  EXPECT_FALSE(events.result.has_value());
  EXPECT_EQ(events.torn, R"({"event":"result","x":)");
}

TEST(EventReader, TakesOnlyTheNameAtTheTop) {
  for (const char* line : {R"({"data":{"event":"result"}})", R"([{"event":"result"}])", R"({"event":7})",
                           R"({"event":["result"]})", R"({"event":{"event":"result"}})", R"("result")", "result"}) {
    const WorkerEvents events = events_in({line, "\n"});
    EXPECT_FALSE(events.result.has_value()) << line;
    EXPECT_TRUE(events.others.empty()) << line;
    ASSERT_EQ(events.malformed.size(), 1u) << line;
    EXPECT_EQ(events.malformed[0], line);
  }
}

TEST(EventReader, FindsTheNameBehindOtherKeys) {
  const std::string line = R"({"samples":[1,2,{"a":null}],"ok":true,"t":"result","event":"result"})";
  EXPECT_EQ(events_in({line, "\n"}).result, line);
}

TEST(EventReader, TheLastResultCounts) {
  EXPECT_EQ(events_in({"{\"event\":\"result\",\"n\":1}\n{\"event\":\"result\",\"n\":2}\n"}).result,
            R"({"event":"result","n":2})");
}

TEST(EventReader, HandsEachEventOnAsItComes) {
  std::vector<std::string> seen;
  EventReader reader([&](const std::string& line) { seen.push_back(line); });
  reader.take("{\"event\":\"a\"}\n{\"event\":");
  EXPECT_EQ(seen, std::vector<std::string>{R"({"event":"a"})"});
}

TEST(EventReader, StopsAboveItsBound) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const Fd read(ends[0]), write_end(ends[1]);
  EventReader reader({}, 100);
  const std::string text(60, 'x');
  ASSERT_EQ(write(write_end.get(), text.data(), text.size()), 60);
  EXPECT_EQ(reader.read_from(read.get()), EventReader::State::open);
  ASSERT_EQ(write(write_end.get(), text.data(), text.size()), 60);
  EXPECT_EQ(reader.read_from(read.get()), EventReader::State::overflow);
}

TEST(EventReader, SaysWhenThePipeIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const Fd read(ends[0]);
  close(ends[1]);
  EXPECT_EQ(EventReader({}).read_from(read.get()), EventReader::State::closed);
}

}  // namespace
}  // namespace assay::host::launch
