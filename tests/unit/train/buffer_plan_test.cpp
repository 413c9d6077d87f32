#include <gtest/gtest.h>
#include <assay/train/buffer_plan.hpp>
#include <assay/train/parameters.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace assay::train {
namespace {

using compute::DType;

// No two buffers that are alive together share a byte.
void expect_sound(const BufferPlan& plan) {
  EXPECT_FALSE(plan.buffers().empty());
  for (const auto& a : plan.buffers()) {
    EXPECT_LE(a.offset + a.bytes, plan.total_bytes());
    EXPECT_EQ(a.offset % BufferPlan::alignment, 0u);
    for (const auto& b : plan.buffers()) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << a.name << " and " << b.name;
    }
  }
}

TEST(BufferPlan, LivesThatDoNotMeetShareMemory) {
  BufferPlan plan;
  plan.add("a", DType::f32, {64}, 0, 1);
  plan.add("b", DType::f32, {64}, 2, 3);
  plan.solve();
  EXPECT_EQ(plan.total_bytes(), 256u);
  expect_sound(plan);
}

TEST(BufferPlan, WhatIsAliveLeavesOutWhatIsReserved) {
  BufferPlan plan;
  plan.add("a", DType::f32, {64}, 0, 2);   // 256 bytes
  plan.add("b", DType::f32, {128}, 2, 3);  // 512 bytes
  plan.add("c", DType::f32, {64}, 3, 4);
  plan.reserve(0, 4096, 0, 4);
  plan.solve();
  EXPECT_EQ(plan.peak_live_bytes(), 768u);
  EXPECT_EQ(plan.lower_bound_bytes(), 4096u + 768u);
}

TEST(BufferPlan, BothEndsOfALifeCount) {
  BufferPlan plan;
  plan.add("a", DType::f32, {64}, 0, 2);
  plan.add("b", DType::f32, {64}, 2, 3);
  plan.solve();
  EXPECT_EQ(plan.total_bytes(), 512u);
  expect_sound(plan);
}

TEST(BufferPlan, RandomLivesAreSoundAndNearTheLowerBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    BufferPlan plan;
    for (int i = 0; i < 120; ++i) {
      const int first = static_cast<int>(random() % 60);
      plan.add(std::to_string(i), DType::f32, {static_cast<std::int64_t>(1 + random() % 5000)}, first,
               first + static_cast<int>(random() % 20));
    }
    plan.solve();
    expect_sound(plan);
    EXPECT_GE(plan.total_bytes(), plan.lower_bound_bytes());
    EXPECT_LE(static_cast<double>(plan.total_bytes()), 1.25 * static_cast<double>(plan.lower_bound_bytes()));
  }
}

// Thousands of layers: the lives of a forward and a backward, nested, with something short between them.
TEST(BufferPlan, ManyBuffersArePlacedInTheOrderOfTime) {
  BufferPlan plan;
  plan.borrow(1000);
  plan.reserve(0, 1000, 40'000, 47'999);
  std::mt19937 random(7);
  for (int i = 0; i < 12'000; ++i) {
    plan.add("saved", DType::f32, {static_cast<std::int64_t>(1 + random() % 500)}, 2 * i, 47'999 - 2 * i);
    plan.add("short", DType::f32, {static_cast<std::int64_t>(1 + random() % 500)}, 2 * i, 2 * i + 1);
  }
  plan.solve();
  EXPECT_GE(plan.total_bytes(), plan.lower_bound_bytes());
  EXPECT_LE(static_cast<double>(plan.total_bytes()), 1.1 * static_cast<double>(plan.lower_bound_bytes()));
  // Sound: at each moment no two of those that are alive overlap. Looked at by moments, of which there are fewer than
  // pairs.
  std::vector<const BufferPlan::Buffer*> by_offset;
  for (const auto& b : plan.buffers()) by_offset.push_back(&b);
  std::sort(by_offset.begin(), by_offset.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (int moment = 0; moment < 48'000; moment += 997) {
    std::size_t end = 1024;  // of what is borrowed
    for (const auto* b : by_offset) {
      if (b->first > moment || b->last < moment) continue;
      ASSERT_GE(b->offset, end) << moment;
      end = b->offset + b->bytes;
    }
  }
}

TEST(BufferPlan, ReservedBytesAreFreeBeforeTheirTime) {
  BufferPlan plan;
  plan.reserve(100, 1000, 5, 9);
  const auto before = plan.add("before", DType::u8, {512}, 0, 4);
  const auto across = plan.add("across", DType::u8, {512}, 4, 5);
  plan.solve();
  EXPECT_EQ(plan.buffers()[before].offset, 0u);
  EXPECT_EQ(plan.buffers()[across].offset, 1280u);  // the next aligned place after the reservation's end at 1100
  EXPECT_EQ(plan.total_bytes(), 1792u);
  EXPECT_EQ(plan.lower_bound_bytes(), 1512u);
}

TEST(BufferPlan, NoBufferCrossesTheEndOfWhatIsBorrowed) {
  BufferPlan plan;
  plan.borrow(1000);
  const auto fits = plan.add("fits", DType::u8, {768}, 0, 1);
  const auto crosses = plan.add("would cross", DType::u8, {512}, 1, 2);
  plan.solve();
  EXPECT_EQ(plan.buffers()[fits].offset, 0u);
  EXPECT_EQ(plan.buffers()[crosses].offset, 1024u);
  EXPECT_EQ(plan.own_bytes(), 512u);
  std::vector<char> borrowed(1000), own(512);
  plan.bind(borrowed.data(), own.data());
  EXPECT_EQ(plan[fits].data, borrowed.data());
  EXPECT_EQ(plan[crosses].data, own.data());
}

TEST(BufferPlan, BindPlacesTensors) {
  BufferPlan plan;
  const auto a = plan.add("a", DType::bf16, {3, 5}, 0, 0);
  const auto b = plan.add("b", DType::f32, {2}, 0, 0);
  plan.solve();
  std::vector<char> memory(plan.total_bytes());
  plan.bind(nullptr, memory.data());
  EXPECT_NE(plan[a].data, plan[b].data);
  EXPECT_EQ(plan[a].elements(), 15);
}

template <class F>
std::string refusal_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_OUT_OF_MEMORY);
    return e.what();
  }
  return "";
}

// 2^80 elements: a product of 64 bits is 0, and such a buffer would have fitted anywhere.
TEST(BufferPlan, SizesBeyond64BitsAreRefusedByName) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  BufferPlan unused;
  unused.leave_out(unused.add("logits", DType::f32, {large, large}));
  EXPECT_EQ(refusal_of([&] { unused.solve(); }), "");
  BufferPlan used;
  used.add("logits", DType::f32, {large, large}, 0, 0);
  EXPECT_EQ(refusal_of([&] { used.solve(); }),
            "the buffer 'logits' of 1099511627776 x 1099511627776 elements in fp32 has more than 2^60 bytes; choose "
            "less");
}

TEST(ParameterSet, SizesBeyond64BitsAreRefusedByName) {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ(refusal_of([] {
              ParameterSet({}).add({{"head", {large, large}}});
            }),
            "the parameter 'head' of 1099511627776 x 1099511627776 elements in fp32 has more than 2^60 bytes; choose "
            "less");
  EXPECT_EQ(refusal_of([] {
              ParameterSet({}).add({{"q", {large, 1 << 17}}, {"k", {large, 1 << 17}}, {"v", {large, 1 << 17}}});
            }),
            "a model with the parameter 'v' comes to more than 2^60 bytes; choose less");
}

}  // namespace
}  // namespace assay::train
