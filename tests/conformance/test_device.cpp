// The device table itself: identity, memory, events, caches, refusals; and the backend's contract of modes and
// workspace.
#include <assay/cache.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <thread>

#include "harness.hpp"

namespace assay::conformance {
namespace {

const assay_device_api& api() { return Session::get().api(); }
assay_device* device() { return Session::get().device(); }

TEST(Device, SaysWhatItIs) {
  EXPECT_EQ(api().struct_size, sizeof(assay_device_api));
  EXPECT_STREQ(api().kind, backend().kind());
  EXPECT_NE(std::string(api().build), "");
  std::int32_t count = 0;
  ASSERT_EQ(api().count(&count), ASSAY_OK);
  EXPECT_GE(count, 1);

  assay_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(api().info(device(), &info), ASSAY_OK) << api().error_text();
  EXPECT_NE(std::string(info.name), "");
  EXPECT_NE(std::string(info.libraries), "");
  EXPECT_GE(info.compute_units, 1);
  EXPECT_GT(info.memory_free_bytes, 0u);
  EXPECT_LE(info.memory_free_bytes, info.memory_total_bytes);
}

TEST(Device, RefusesAnOrdinalThatIsNot) {
  std::int32_t count = 0;
  ASSERT_EQ(api().count(&count), ASSAY_OK);
  assay_device* none = nullptr;
  EXPECT_EQ(api().open(count, &none), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(std::string(api().error_text()).find(std::to_string(count)), std::string::npos) << api().error_text();
}

TEST(Device, RefusesAnInfoThatIsTooShort) {
  assay_device_info info{};
  info.struct_size = sizeof(std::size_t);
  EXPECT_EQ(api().info(device(), &info), ASSAY_INVALID_ARGUMENT);
}

// Of this process, in bytes.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages_in_all = 0, pages = 0;
  statm >> pages_in_all >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Of the processor on which this runs; 0 where the kernel does not say.
std::size_t largest_cache_bytes() {
  std::size_t largest = 0;
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(sched_getcpu()) + "/cache/index";
  for (int index = 0; index < 8; ++index) {
    std::ifstream size(folder + std::to_string(index) + "/size");
    std::size_t value = 0;
    char unit = 0;
    if (size >> value >> unit) largest = std::max(largest, value << (unit == 'M' ? 20 : 10));
  }
  return largest;
}

// What it walks through must be memory, and more of it than the caches hold: of pages that nobody has ever written
// there is one, and it would fit.
TEST(Device, AFlushOfTheCachesGoesThroughMoreThanTheyHold) {
  if (is_cuda()) GTEST_SKIP() << "a GPU's memory is not seen from here";
  const auto* const cache = static_cast<const assay_cache*>(api().get_extension(ASSAY_EXT_CACHE));
  ASSERT_NE(cache, nullptr);
  const std::size_t largest = largest_cache_bytes();
  if (largest == 0) GTEST_SKIP() << "the kernel does not report how large the caches are";
  assay_device* own = nullptr;
  ASSERT_EQ(api().open(0, &own), ASSAY_OK) << api().error_text();
  const std::size_t before = resident_bytes();
  ASSERT_EQ(cache->flush(own, nullptr), ASSAY_OK) << api().error_text();
  const std::size_t after_first = resident_bytes();
  EXPECT_GE(after_first, before + largest);
  ASSERT_EQ(cache->flush(own, nullptr), ASSAY_OK) << api().error_text();
  EXPECT_LT(resident_bytes(), after_first + largest) << "taken again";
  api().close(own);
  EXPECT_LT(resident_bytes(), before + largest) << "kept";
}

TEST(Device, AlignsMemory) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{257}, std::size_t{5} << 20}) {
    void* address = nullptr;
    ASSERT_EQ(api().allocate(device(), bytes, &address), ASSAY_OK) << api().error_text();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 256, 0u) << bytes;
    api().release(device(), address);
  }
}

TEST(Device, SaysHowMuchWasWantedAndFree) {
  void* address = nullptr;
  const std::size_t bytes = std::size_t{1} << 50;
  EXPECT_EQ(api().allocate(device(), bytes, &address), ASSAY_OUT_OF_MEMORY);
  EXPECT_EQ(address, nullptr);
  const std::string text = api().error_text();
  EXPECT_NE(text.find(std::to_string(bytes) + " bytes wanted"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes free"), std::string::npos) << text;
}

TEST(Device, FreeMemoryFollowsAnAllocation) {
  const auto free_bytes = [] {
    assay_device_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(api().info(device(), &info), ASSAY_OK) << api().error_text();
    return info.memory_free_bytes;
  };
  const std::size_t bytes = std::size_t{512} << 20;
  if (free_bytes() < 2 * bytes) GTEST_SKIP() << "less than 1 GiB is free";
  // Other processes take and give memory too: one that ends gives back gigabytes for a second. So half of it counts as
  // seen, and one of many tries, which outlast that, must show it.
  bool seen = false;
  for (int attempt = 0; attempt < 100 && !seen; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::uint64_t before = free_bytes();
    void* address = nullptr;
    ASSERT_EQ(api().allocate(device(), bytes, &address), ASSAY_OK) << api().error_text();
    seen = free_bytes() + bytes / 2 < before;
    api().release(device(), address);
  }
  EXPECT_TRUE(seen);
}

TEST(Device, EventsAreOrdered) {
  assay_event *begin = nullptr, *end = nullptr;
  ASSERT_EQ(api().event_create(device(), &begin), ASSAY_OK);
  ASSERT_EQ(api().event_create(device(), &end), ASSAY_OK);
  double elapsed_ns = -1.0;
  EXPECT_EQ(api().event_elapsed_ns(device(), begin, end, &elapsed_ns), ASSAY_INVALID_ARGUMENT) << "never recorded";
  // A rest between the two is what they are apart, and no more than the host sees around them.
  constexpr std::chrono::nanoseconds rest = std::chrono::milliseconds(5);
  const auto host_begin = std::chrono::steady_clock::now();
  EXPECT_EQ(api().event_record(device(), begin, Session::get().stream()), ASSAY_OK);
  EXPECT_EQ(api().event_synchronize(device(), begin), ASSAY_OK);
  std::this_thread::sleep_for(rest);
  EXPECT_EQ(api().event_record(device(), end, Session::get().stream()), ASSAY_OK);
  EXPECT_EQ(api().stream_synchronize(device(), Session::get().stream()), ASSAY_OK);
  EXPECT_EQ(api().event_synchronize(device(), end), ASSAY_OK);
  const std::chrono::nanoseconds on_host = std::chrono::steady_clock::now() - host_begin;
  EXPECT_EQ(api().event_elapsed_ns(device(), begin, end, &elapsed_ns), ASSAY_OK);
  EXPECT_GE(elapsed_ns, 0.99 * static_cast<double>(rest.count()));
  EXPECT_LE(elapsed_ns, 1.01 * static_cast<double>(on_host.count()));
  api().event_destroy(device(), begin);
  api().event_destroy(device(), end);
}

TEST(Device, OffersNothingUnderAnUnknownName) { EXPECT_EQ(api().get_extension("assay.nothing/1"), nullptr); }

TEST(Backend, AsksForWorkspaceBeforeItUsesSome) {
  const std::unique_ptr<compute::Backend> fresh(Session::get().factory().create(device(), Session::get().stream()));
  const std::int64_t rows = 300, width = 40;
  const DeviceTensor dy(DType::f32, {rows, width}, random_values(DType::f32, rows * width, 1));
  const DeviceTensor dbias(DType::f32, {width});
  EXPECT_EQ(fresh->workspace_bytes(), 0u);
  fresh->set_mode(Mode::prepare);
  fresh->run(op::BiasBackward{.dy = dy, .dbias = dbias});
  fresh->set_mode(Mode::execute);
  if (fresh->workspace_bytes() == 0) GTEST_SKIP() << "this backend sums columns without workspace";
  std::string text;
  EXPECT_EQ(status_of([&] { fresh->run(op::BiasBackward{.dy = dy, .dbias = dbias}); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("workspace"), std::string::npos) << text;
  const Buffer workspace(fresh->workspace_bytes());
  fresh->set_workspace(workspace.data(), fresh->workspace_bytes());
  EXPECT_EQ(status_of([&] { fresh->run(op::BiasBackward{.dy = dy, .dbias = dbias}); }), ASSAY_OK);
  fresh->synchronize();
}

TEST(Backend, PreparingTouchesNoTensor) {
  const Values before = random_values(DType::f32, 64, 2);
  const DeviceTensor x(DType::f32, {8, 8}, before), y(DType::f32, {8, 8}, before);
  backend().set_mode(Mode::prepare);
  backend().run(op::Fill{.x = y, .value = 1.0});
  backend().run(op::Add{.a = x, .b = x, .out = y});
  backend().run(op::Matmul{.a = x, .b = x, .c = y});
  backend().run(op::RandomNormal{.x = y, .seed = 1, .stream = 2, .mean = 0.0F, .std = 1.0F});
  backend().set_mode(Mode::execute);
  EXPECT_EQ(y.read(), before);
}

}  // namespace
}  // namespace assay::conformance
