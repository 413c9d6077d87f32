// What a session does when a rank, NCCL or the GPU fails it. No test waits for a time: each for what has to come of it.
#include "session_fixture.hpp"

namespace assay::comm::nccl {
namespace {

TEST_F(SessionTest, AnErrorOfNcclEndsASynchronisationWithItsText) {
  open();
  world->hold_collectives(true);
  (void)session->launch(all_reduce(100), 400);
  world->set_async_error("remote process exited or there was a network error");
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) failed on rank 1")) << error;
  EXPECT_TRUE(has(error, "remote process exited")) << error;
  EXPECT_EQ(world->aborts, 1);
  // The same error for all that follows.
  EXPECT_EQ(error_of([&] { (void)session->launch(all_reduce(1), 4); }), error);
  EXPECT_EQ(error_of([&] { session->wait(1); }), error);
  EXPECT_EQ(error_of([&] { session->barrier(); }), error);
  EXPECT_EQ(error_of([&] { (void)session->take_totals(); }), error);
  EXPECT_EQ(error_of([&] {
              int memory = 0;
              (void)session->register_memory(&memory, 4);
            }),
            error);
}

// The user's thread is in the device library, waiting for a stream that waits for the collective.
TEST_F(SessionTest, TheEndOfTheCaseLetsTheStreamsGo) {
  open();
  world->hold_collectives(true);
  session->wait(session->launch(all_reduce(100), 400));
  ranks->aborted = true;
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) was given up on rank 1")) << error;
}

TEST_F(SessionTest, TheEndOfTheCaseIsSeenWithNothingInFlight) {
  open();
  ranks->aborted = true;
  EXPECT_TRUE(has(error_of([&] { (void)session->launch(all_reduce(1), 4); }), "another rank failed"));
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
}

TEST_F(SessionTest, ACollectiveThatDoesNotFinishIsLate) {
  world->polls_to_start = world->polls_to_split = 0;
  open(100);
  world->hold_collectives(true);
  (void)session->launch(all_reduce(100), 400);
  (void)session->launch(all_reduce(1), 4);
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) did not finish on rank 1 within 100 ms")) << error;
}

TEST_F(SessionTest, ABarrierThatDoesNotFinishIsLate) {
  world->polls_to_start = world->polls_to_split = 0;
  open(100);
  world->hold_collectives(true);
  EXPECT_TRUE(has(error_of([&] { session->barrier(); }), "7: barrier (collective 1, 4 bytes) did not finish"));
}

TEST_F(SessionTest, TheTimeBeforeACollectiveCanStartDoesNotCount) {
  world->polls_to_start = world->polls_to_split = 0;
  open(50);
  world->hold_streams(true);  // the compute stream works on
  (void)session->launch(all_reduce(1), 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(world->aborts, 0);
  world->hold_streams(false);
  session->synchronize();
}

TEST_F(SessionTest, ManyShortCollectivesAreNotOneLateOne) {
  world->polls_to_start = world->polls_to_split = 0;
  open(1000);
  for (int i = 0; i < 60; ++i) {
    world->hold_collectives(true);
    (void)session->launch(all_reduce(1), 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    world->hold_collectives(false);
  }
  session->synchronize();
  EXPECT_EQ(world->aborts, 0);
}

TEST_F(SessionTest, OneOfASeriesThatDoesNotFinishIsLate) {
  open(100);
  session->begin_series();
  for (int i = 0; i < 30; ++i) {  // longer than the time of one
    (void)session->launch(all_reduce(100), 400);
    session->synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(world->aborts, 0);
  world->hold_collectives(true);
  (void)session->launch(all_reduce(100), 400);
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) did not finish on rank 1 within 100 ms")) << error;
  EXPECT_EQ(world->aborts, 1);
}

TEST_F(SessionTest, AnErrorOfNcclOrTheEndOfTheCaseEndsAWaitInASeries) {
  open();
  session->begin_series();
  world->hold_collectives(true);
  (void)session->launch(all_reduce(100), 400);
  world->set_async_error("remote process exited or there was a network error");
  EXPECT_TRUE(has(error_of([&] { session->synchronize(); }), "failed on rank 1: NCCL: remote process exited"));
  session->close();
  world = std::make_shared<World>();
  open();
  session->begin_series();
  world->hold_collectives(true);
  (void)session->launch(all_reduce(100), 400);
  ranks->aborted = true;
  EXPECT_TRUE(has(error_of([&] { session->synchronize(); }), "was given up on rank 1"));
}

// NCCL connects at the first collective of a kind, and the caller waits for the other ranks inside it.
TEST_F(SessionTest, ACallThatHangsInsideNcclIsLate) {
  world->enqueue_hangs = true;
  open(50);
  const std::string error = error_of([&] { (void)session->launch(all_reduce(100), 400); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) did not finish on rank 1 within 50 ms")) << error;
  EXPECT_EQ(world->aborts, 1);
  EXPECT_EQ(world->child_aborts, 1);
}

TEST_F(SessionTest, TheEndOfTheCaseLetsACallInsideNcclGo) {
  world->enqueue_hangs = true;
  open();
  std::thread ender([&] {
    EXPECT_TRUE(eventually([&] { return world->inside_nccl(); }));
    ranks->aborted = true;
  });
  const std::string error = error_of([&] { (void)session->launch(all_reduce(100), 400); });
  ender.join();
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) was given up on rank 1")) << error;
  EXPECT_EQ(world->aborts, 1);
  EXPECT_EQ(world->child_aborts, 1);
}

TEST_F(SessionTest, TheChildIsAbortedWhenNobodyIsInside) {
  world->enqueue_never_ends = true;
  open();
  std::string error;
  std::thread user([&] { error = error_of([&] { (void)session->launch(all_reduce(1), 4); }); });
  EXPECT_TRUE(eventually([&] { return world->inside_nccl(); }));
  ranks->aborted = true;
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // many looks of the caretaker
  EXPECT_EQ(world->child_aborts, 0);
  world->enqueue_never_ends = false;
  user.join();
  EXPECT_TRUE(has(error, "another rank failed")) << error;
  EXPECT_TRUE(eventually([&] { return world->child_aborts == 1; }));
}

TEST_F(SessionTest, ManyCallsAreNotOneLongOne) {
  open(200);
  for (int i = 0; i < 40; ++i) {
    (void)session->launch(all_reduce(1), 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  session->synchronize();
  EXPECT_EQ(world->aborts, 0);
}

// With NCCL_COMM_BLOCKING=0 the child's calls return at once, too.
TEST_F(SessionTest, AChildThatDoesNotBlockIsPolled) {
  world->polls_to_enqueue = 2;
  open();
  (void)session->launch(all_reduce(1), 4);
  (void)session->launch(all_reduce(1), 4);
  EXPECT_EQ(session->take_totals().collectives, 2U);
}

TEST_F(SessionTest, AChildThatIsNeverReadyIsLate) {
  world->polls_to_enqueue = -1;
  open(50);
  const std::string error = error_of([&] { (void)session->launch(all_reduce(100), 400); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) did not finish")) << error;
  EXPECT_EQ(world->aborts, 1);
}

TEST_F(SessionTest, TheEndOfTheCaseReachesAChildThatIsNeverReady) {
  world->polls_to_enqueue = -1;
  open();
  std::thread ender([&] {
    EXPECT_TRUE(eventually([&] { return world->enqueued == 1; }));
    ranks->aborted = true;
  });
  const std::string error = error_of([&] { (void)session->launch(all_reduce(100), 400); });
  ender.join();
  EXPECT_TRUE(has(error, "was given up on rank 1")) << error;
  EXPECT_EQ(world->aborts, 1);
}

TEST_F(SessionTest, AnErrorOfTheGpuStaysOne) {
  open();
  (void)session->launch(all_reduce(1), 4);
  world->set_cuda_error(true);
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "4: an illegal memory access")) << error;
  world->set_cuda_error(false);
  EXPECT_EQ(error_of([&] { (void)session->launch(all_reduce(1), 4); }), error);
}

TEST_F(SessionTest, AWireUpThatFailsSaysWhy) {
  world->start_error = "Duplicate GPU detected";
  const std::string error = error_of([&] { open(); });
  EXPECT_TRUE(has(error, "7: the wire-up of 2 ranks through NCCL failed on rank 1")) << error;
  EXPECT_TRUE(has(error, "Duplicate GPU detected")) << error;
  EXPECT_EQ(world->aborts, 1);
}

TEST_F(SessionTest, AWireUpThatNobodyJoinsIsLate) {
  world->polls_to_start = -1;
  const std::string error = error_of([&] { open(50); });
  EXPECT_TRUE(has(error, "the wire-up of 2 ranks through NCCL did not finish on rank 1 within 50 ms")) << error;
  EXPECT_EQ(world->aborts, 1);
}

TEST_F(SessionTest, ASplitThatFailsSaysWhy) {
  world->split_error = "unhandled cuda error";
  const std::string error = error_of([&] { open(); });
  EXPECT_TRUE(has(error, "7: the wire-up of 2 ranks through NCCL failed on rank 1: NCCL: unhandled cuda error"))
      << error;
  EXPECT_EQ(world->aborts, 1);
  EXPECT_EQ(world->child_aborts, 0);
}

TEST_F(SessionTest, ASplitThatNobodyJoinsIsLate) {
  world->polls_to_split = -1;
  const std::string error = error_of([&] { open(50); });
  EXPECT_TRUE(has(error, "the wire-up of 2 ranks through NCCL did not finish on rank 1 within 50 ms")) << error;
  EXPECT_EQ(world->aborts, 1);
  EXPECT_EQ(world->child_aborts, 0);
}

TEST_F(SessionTest, ClosingWithACollectiveInFlightAborts) {
  open(60000, quick);
  world->hold_collectives(true);
  (void)session->launch(all_reduce(1), 4);
  session->close();
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
  EXPECT_EQ(world->finalized, 0);
}

TEST_F(SessionTest, AFinalizeThatHangsIsAborted) {
  world->polls_to_finalize = -1;
  open(60000, quick);
  session->close();
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
  EXPECT_EQ(world->finalized, 2);
  EXPECT_EQ(world->destroyed, 1);
}

TEST_F(SessionTest, AnAbortThatHangsHoldsNobodyUp) {
  world->abort_hangs = true;
  open(60000, quick);
  world->hold_collectives(true);
  (void)session->launch(all_reduce(1), 4);
  ranks->aborted = true;
  EXPECT_TRUE(has(error_of([&] { session->synchronize(); }), "another rank failed"));
  session->close();
  session.reset();
  EXPECT_TRUE(world->library_alive) << "what the hanging call uses has to stay";
  world->abort_hangs = false;
}

}  // namespace
}  // namespace assay::comm::nccl
