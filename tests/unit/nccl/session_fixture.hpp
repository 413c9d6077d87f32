// A session on a fake GPU, alone or as one of several ranks.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "fake_library.hpp"
#include "fake_ranks.hpp"
#include "session.hpp"

namespace assay::comm::nccl {

class SessionTest : public ::testing::Test {
 protected:
  static constexpr Timing quick{std::chrono::milliseconds(1), std::chrono::milliseconds(50),
                                std::chrono::milliseconds(50), std::chrono::milliseconds(50)};

  void open(std::int64_t timeout_ms = 60000, Timing timing = {.interval = std::chrono::milliseconds(1)},
            bool on_compute_stream = false) {
    ranks = std::make_unique<FakeRanks>(2, timeout_ms);
    UniqueId id;
    id.fill('i');
    session = Session::open(std::make_unique<FakeLibrary>(world), ranks->rank(1), Members(ranks->rank(1)),
                            World::compute(), id, 0, timing, on_compute_stream);
  }
  void TearDown() override {
    if (session) session->close();
    session.reset();
    EXPECT_EQ(world->broken_rules(), "");
    EXPECT_TRUE(eventually([&] { return !world->library_alive; })) << "the session is not gone";
    EXPECT_EQ(world->events_alive, 0);
    EXPECT_EQ(world->streams_alive, 0);
    EXPECT_EQ(world->memory_alive, 0);
    EXPECT_EQ(world->comms_alive, 0);
    EXPECT_EQ(world->windows_alive, 0);
    EXPECT_EQ(world->shared_alive, 0);
  }

  static Collective all_reduce(std::size_t count) {
    return {.operation = Operation::all_reduce, .count = count, .dtype = compute::DType::f32};
  }
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 20000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  // The status and the text of what `body` throws.
  static std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::to_string(error.status()) + ": " + error.what();
    }
    return "nothing thrown";
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  std::shared_ptr<World> world = std::make_shared<World>();
  std::unique_ptr<FakeRanks> ranks;
  std::shared_ptr<Session> session;
};

}  // namespace assay::comm::nccl
