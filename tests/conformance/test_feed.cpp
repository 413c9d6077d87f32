// Feeds: what a slot was filled with arrives, in any order of slots, and again when the slot is used anew.
#include <cstring>

#include "harness.hpp"

namespace assay::conformance {
namespace {

constexpr std::size_t slots = 3, numbers = 125, bytes = numbers * sizeof(std::int64_t);  // 1000: no multiple of 256

void fill_slot(const compute::Feed& feed, std::size_t slot, std::int64_t value) {
  std::vector<std::int64_t> content(numbers);
  for (std::size_t i = 0; i < numbers; ++i) content[i] = value + static_cast<std::int64_t>(i);
  std::memcpy(feed.host_buffer(slot), content.data(), bytes);
}
Values filled(std::int64_t value, std::size_t count = numbers) {
  Values v;
  for (std::size_t i = 0; i < count; ++i) v.push_back(static_cast<double>(value) + static_cast<double>(i));
  return v;
}

TEST(Feed, DeliversWhatTheSlotsWereFilledWith) {
  const Buffer memory(slots * 1024);
  const auto feed = backend().open_feed(slots, bytes, memory.data());
  const DeviceTensor to(DType::i64, {numbers});
  for (std::size_t slot = 0; slot < slots; ++slot) fill_slot(*feed, slot, static_cast<std::int64_t>(1000 * slot));
  for (std::size_t slot = 0; slot < slots; ++slot) feed->send(slot);
  for (const std::size_t slot : {2u, 0u, 1u}) {
    feed->deliver(slot, to);
    backend().synchronize();
    EXPECT_EQ(to.read(), filled(static_cast<std::int64_t>(1000 * slot))) << "slot " << slot;
    feed->reclaim(slot);
  }
}

TEST(Feed, ServesASlotAgainAndAgain) {
  const Buffer memory(slots * 1024);
  const auto feed = backend().open_feed(slots, bytes, memory.data());
  const DeviceTensor to(DType::i64, {numbers}), copies(DType::i64, {20, numbers});
  for (std::int64_t round = 0; round < 20; ++round) {
    const std::size_t slot = static_cast<std::size_t>(round) % slots;
    if (round >= static_cast<std::int64_t>(slots)) feed->reclaim(slot);
    fill_slot(*feed, slot, 7 * round);
    feed->send(slot);
    feed->deliver(slot, to);
    // Read by the compute stream while later slots are under way; nothing waits in between.
    backend().run(op::Copy{.to = copies->slice(0, round, 1).view({numbers}), .from = to});
  }
  backend().synchronize();
  Values expected;
  for (std::int64_t round = 0; round < 20; ++round)
    for (const double v : filled(7 * round)) expected.push_back(v);
  EXPECT_EQ(copies.read(), expected);
}

TEST(Feed, DeliversPartOfASlotAndTouchesNothingWhilePreparing) {
  const Buffer memory(1024);
  const auto feed = backend().open_feed(1, bytes, memory.data());
  const DeviceTensor to(DType::i64, {3, 5});
  fill_slot(*feed, 0, 50);
  backend().set_mode(Mode::prepare);
  feed->deliver(0, to);
  backend().set_mode(Mode::execute);
  backend().synchronize();
  EXPECT_EQ(to.read(), Values(15, -1.0)) << "every byte 0xff, as it was made";
  feed->send(0);
  feed->deliver(0, to);
  backend().synchronize();
  EXPECT_EQ(to.read(), filled(50, 15));
}

// What lies in the device's memory then is nothing, or the batch before.
TEST(Feed, RefusesToDeliverWhatWasNotSent) {
  const Buffer memory(slots * 1024);
  const auto feed = backend().open_feed(slots, bytes, memory.data());
  const DeviceTensor to(DType::i64, {numbers});
  fill_slot(*feed, 1, 5);
  std::string text;
  EXPECT_EQ(status_of([&] { feed->deliver(1, to); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("slot 1 was not sent"), std::string::npos) << text;
  feed->send(1);
  EXPECT_EQ(status_of([&] { feed->deliver(0, to); }), ASSAY_INVALID_ARGUMENT);
  feed->deliver(1, to);
  feed->reclaim(1);
  fill_slot(*feed, 1, 70);
  EXPECT_EQ(status_of([&] { feed->deliver(1, to); }), ASSAY_INVALID_ARGUMENT) << "the second round was not sent either";
  backend().synchronize();
  EXPECT_EQ(to.read(), filled(5));
}

TEST(Feed, RefusesWhatCannotBe) {
  const Buffer memory(slots * 1024);
  EXPECT_EQ(status_of([&] { backend().open_feed(0, bytes, memory.data()); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().open_feed(slots, 0, memory.data()); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().open_feed(slots, bytes, nullptr); }), ASSAY_INVALID_ARGUMENT);
  const auto feed = backend().open_feed(slots, bytes, memory.data());
  const DeviceTensor to(DType::i64, {numbers}), large(DType::i64, {numbers + 1});
  std::string text;
  EXPECT_EQ(status_of([&] { feed->send(slots); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("slot 3"), std::string::npos) << text;
  EXPECT_EQ(status_of([&] { feed->host_buffer(slots); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { feed->deliver(slots, to); }), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { feed->deliver(0, large); }), ASSAY_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace assay::conformance
