// What several tests of this folder need.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>

#include "support/temporary_folder.hpp"
#include "wireup/key_value_client.hpp"
#include "wireup/key_value_server.hpp"

namespace assay::host::wireup {

using namespace std::chrono_literals;

// A deadline that a test never reaches when the code is right.
constexpr auto patient = 60s;
// One that a test is meant to reach.
constexpr auto brief = 50ms;

// The text of the WireupError that `act` throws; a failure of the test, and "", when it throws none.
inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const WireupError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no WireupError";
  return {};
}

// error_of in a separate thread.
inline std::future<std::string> error_later(std::function<void()> act) {
  return std::async(std::launch::async, [act = std::move(act)] { return error_of(act); });
}

// Gives another thread the time to get somewhere. Too short a time makes a test easier to pass, and never makes it
// fail.
inline void let_others_wait() { std::this_thread::sleep_for(30ms); }

// Until `count` calls are waiting in the store.
inline void await_waits(const KeyValueStore& store, std::size_t count) {
  while (store.waits() < count) std::this_thread::sleep_for(1ms);
}

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text) << "\nexpected: " << (part)

struct Served {
  KeyValueStore store;
  KeyValueServer server;

  explicit Served(KeyValueServer::Options options = {}) : server(store, std::move(options)) {}

  KeyValueClient::Options member(std::int32_t rank, std::string group = "case/7/") const {
    KeyValueClient::Options options;
    options.member = Member{std::move(group), rank, "node" + std::to_string(rank)};
    return options;
  }
};

using test::TemporaryFolder;

}  // namespace assay::host::wireup
