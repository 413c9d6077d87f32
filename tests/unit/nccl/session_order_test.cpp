// Order, times and bookkeeping of a session whose ranks are all well.
#include "session_fixture.hpp"

namespace assay::comm::nccl {
namespace {

TEST_F(SessionTest, CollectiveComesAfterTheComputeStreamAndRunsBesideWhatFollows) {
  open();
  world->hold_streams(true);
  world->add_kernel(World::compute(), 3);
  const Ticket ticket = session->launch(all_reduce(8), 32);
  world->add_kernel(World::compute(), 2);
  session->wait(ticket);
  world->add_kernel(World::compute(), 1);
  world->hold_streams(false);
  // The collective runs from 3 to 8; the compute stream comes to the wait at 5.
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 1U);
  EXPECT_EQ(totals.bytes, 32U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 5);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 3);
}

TEST_F(SessionTest, AWaitForAFinishedCollectiveHoldsUpNothing) {
  open();
  world->hold_streams(true);
  const Ticket ticket = session->launch(all_reduce(8), 32);
  world->add_kernel(World::compute(), 20);
  session->wait(ticket);
  world->hold_streams(false);
  const Totals totals = session->take_totals();
  EXPECT_DOUBLE_EQ(totals.busy_ms, 5);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 0);
}

TEST_F(SessionTest, AWaitCoversAllBeforeIt) {
  open();
  world->hold_streams(true);
  const Ticket first = session->launch(all_reduce(1), 4);
  const Ticket second = session->launch(all_reduce(1), 4);
  EXPECT_LT(first, second);
  session->wait(second);
  session->wait(first);   // nothing left to wait for
  session->wait(second);  // nor a second time
  world->hold_streams(false);
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 2U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 10);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 10);
}

TEST_F(SessionTest, TotalsBeginAnewAndLeaveBarriersOut) {
  open();
  (void)session->launch(all_reduce(1), 4);
  session->barrier();
  EXPECT_EQ(session->take_totals().collectives, 1U);
  const Totals none = session->take_totals();
  EXPECT_EQ(none.collectives, 0U);
  EXPECT_EQ(none.bytes, 0U);
  EXPECT_DOUBLE_EQ(none.busy_ms, 0);
  session->wait(1);  // done long ago
  const Totals after = session->take_totals();
  EXPECT_DOUBLE_EQ(after.exposed_ms, 0);
  EXPECT_EQ(world->collectives.size(), 2U);
  EXPECT_EQ(world->collectives[1].count, 1U);
}

// As a program that measures collectives alone enqueues them: no stream waits for another.
TEST_F(SessionTest, OnTheComputeStreamItsOrderIsEnough) {
  open(60000, {.interval = std::chrono::milliseconds(1)}, true);
  EXPECT_EQ(world->streams_alive, 0) << "it makes no stream of its own";
  world->hold_streams(true);
  world->add_kernel(World::compute(), 3);
  session->wait(session->launch(all_reduce(8), 32));
  session->wait(session->launch(all_reduce(8), 32));
  world->add_kernel(World::compute(), 2);
  world->hold_streams(false);
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 2U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 10);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 0);
  EXPECT_EQ(session->take_totals().collectives, 0U);
}

TEST_F(SessionTest, EmptyCollectivesHaveTickets) {
  open();
  const Ticket ticket = session->launch(all_reduce(0), 0);
  session->wait(ticket);
  session->synchronize();
  EXPECT_EQ(session->take_totals().collectives, 1U);
}

TEST_F(SessionTest, ATicketThatWasNeverGivenIsRefused) {
  open();
  (void)session->launch(all_reduce(1), 4);
  EXPECT_TRUE(has(error_of([&] { session->wait(2); }), "1: wait for collective 2"));
  EXPECT_TRUE(has(error_of([&] { session->wait(0); }), "1: wait for collective 0"));
  session->synchronize();  // the communicator is none the worse
}

TEST_F(SessionTest, TheRingGrowsInTheFirstStepsOnly) {
  open();
  int after_first_step = 0;
  for (int step = 0; step < 3; ++step) {
    world->hold_streams(true);
    Ticket last = 0;
    for (int i = 0; i < 200; ++i) {
      last = session->launch(all_reduce(1), 4);
      session->wait(last);
    }
    if (step == 0) after_first_step = world->events_made;
    world->hold_streams(false);
    // Steps follow each other without a take_totals(): places are taken again as the GPU has passed them.
  }
  EXPECT_EQ(world->events_made, after_first_step);
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 600U);
  EXPECT_EQ(totals.bytes, 2400U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 3000);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 3000);
}

TEST_F(SessionTest, ARetiredTicketNeedsNoWait) {
  open();
  const Ticket first = session->launch(all_reduce(1), 4);
  for (int i = 0; i < 100; ++i) (void)session->launch(all_reduce(1), 4);
  session->wait(first);
  EXPECT_EQ(session->take_totals().collectives, 101U);
}

TEST_F(SessionTest, ASeriesIsOneFlight) {
  open();
  world->hold_streams(true);
  world->add_kernel(World::compute(), 3);
  session->begin_series();
  for (int i = 0; i < 100; ++i) (void)session->launch(all_reduce(8), 32);
  const int events = world->events_made;
  const Ticket ticket = session->end_series();
  session->wait(ticket);
  world->hold_streams(false);
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 100U);
  EXPECT_EQ(totals.bytes, 3200U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 500);
  EXPECT_DOUBLE_EQ(totals.exposed_ms, 500);
  EXPECT_EQ(world->events_made, events);
  EXPECT_EQ(session->launch(all_reduce(8), 32), ticket + 1);
}

// No event is recorded for it, and what is in the way of the series is waited for, too.
TEST_F(SessionTest, EachOfASeriesCanBeWaitedFor) {
  open(60000, {.interval = std::chrono::milliseconds(1)}, true);
  session->begin_series();
  for (int i = 0; i < 3; ++i) {
    (void)session->launch(all_reduce(8), 32);
    session->synchronize();
  }
  world->hold_streams(true);
  world->add_kernel(World::compute(), 3);
  (void)session->launch(all_reduce(8), 32);
  std::atomic<bool> waited = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(waited);
    world->hold_streams(false);
  });
  session->synchronize();
  waited = true;
  other.join();
  (void)session->end_series();
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 4U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 23) << "between the two events of the series, and what the host does there";
}

TEST_F(SessionTest, ASeriesHasABeginAndAnEnd) {
  open();
  EXPECT_TRUE(has(error_of([&] { (void)session->end_series(); }), "1: end_series() of no collective"));
  session->begin_series();
  EXPECT_TRUE(has(error_of([&] { session->begin_series(); }), "expected end_series() first"));
  (void)session->launch(all_reduce(8), 32);
  (void)session->end_series();
  EXPECT_EQ(session->take_totals().collectives, 1U);
}

TEST_F(SessionTest, EndsPolitelyWhenAllIsWell) {
  open();
  int memory = 0;
  EXPECT_TRUE(session->register_memory(&memory, sizeof memory));
  (void)session->launch(all_reduce(1), 4);
  session->close();
  EXPECT_EQ(world->finalized, 2);
  EXPECT_EQ(world->destroyed, 2);
  EXPECT_EQ(world->aborts + world->child_aborts, 0);
  EXPECT_EQ(world->registered_alive, 0);
}

TEST_F(SessionTest, MemoryThatCannotBeRegisteredIsNoError) {
  world->registers = false;
  open();
  int memory = 0;
  EXPECT_FALSE(session->register_memory(&memory, sizeof memory));
  (void)session->launch(all_reduce(1), 4);
  session->synchronize();
}

}  // namespace
}  // namespace assay::comm::nccl
