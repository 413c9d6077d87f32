// Collectives in a graph: what a capture takes up, what a replay counts, and the order in which all of it ends.
#include "nccl_communicator.hpp"
#include "session_fixture.hpp"

namespace assay::comm::nccl {
namespace {

class FakeGraph final : public compute::Graph {
 public:
  explicit FakeGraph(World& world) : world_(world) {}
  ~FakeGraph() override { world_.destroy_graphs(); }
  void launch() override { world_.replay(); }
  std::size_t node_count() const override { return 1; }

 private:
  World& world_;
};

class GraphTest : public SessionTest {
 protected:
  // A graph of two collectives, the first of which is not waited for by itself.
  std::unique_ptr<compute::Graph> capture() {
    world->begin_capture();
    (void)session->launch(all_reduce(8), 32);
    session->wait(session->launch(all_reduce(2), 8));
    world->end_capture();
    return std::make_unique<FakeGraph>(*world);
  }
  void open_on(bool compute_stream, std::int64_t timeout_ms = 60000,
               Timing timing = {.interval = std::chrono::milliseconds(1)}) {
    world->polls_to_start = world->polls_to_split = 0;
    open(timeout_ms, timing, compute_stream);
  }
};

TEST_F(GraphTest, AReplayCountsAsItsCollectivesDo) {
  open_on(true);
  const auto graph = capture();
  const CapturedCollectives captured = session->take_captured();
  EXPECT_EQ(captured.collectives, 2U);
  EXPECT_EQ(captured.bytes, 40U);
  EXPECT_EQ(session->take_totals().collectives, 0U) << "what is captured has not run";
  world->hold_streams(true);
  world->add_kernel(World::compute(), 3);
  session->replay(captured, *graph);
  session->replay(captured, *graph);
  world->hold_streams(false);
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 4U);
  EXPECT_EQ(totals.bytes, 80U);
  EXPECT_EQ(totals.untimed, 0U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 20);
}

// A graph that refuses to be replayed leaves the session as it was: nothing is under way that could be late.
TEST_F(GraphTest, AReplayThatIsRefusedIsNeverLate) {
  class Refusing final : public compute::Graph {
   public:
    void launch() override { throw Error(ASSAY_INVALID_ARGUMENT, "its memory was taken anew"); }
    std::size_t node_count() const override { return 1; }
  };
  open_on(true, 50);
  const auto graph = capture();
  const CapturedCollectives captured = session->take_captured();
  Refusing refusing;
  EXPECT_TRUE(has(error_of([&] { session->replay(captured, refusing); }), "its memory was taken anew"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // many looks of the caretaker, and six deadlines
  EXPECT_EQ(world->aborts, 0);
  session->replay(captured, *graph);
  session->synchronize();
  EXPECT_EQ(session->take_totals().collectives, 2U);
}

// The same graph holds other work: how long its collectives took nobody knows.
TEST_F(GraphTest, BesideOtherWorkAReplayIsNotTimed) {
  open_on(false);
  const auto graph = capture();
  session->replay(session->take_captured(), *graph);
  (void)session->launch(all_reduce(1), 4);  // on its own stream, and behind the replay
  const Totals totals = session->take_totals();
  EXPECT_EQ(totals.collectives, 3U);
  EXPECT_EQ(totals.untimed, 2U);
  EXPECT_DOUBLE_EQ(totals.busy_ms, 5);
}

TEST_F(GraphTest, AReplayComesAfterWhatIsOnTheOtherStream) {
  open_on(false);
  const auto graph = capture();
  world->hold_streams(true);
  (void)session->launch(all_reduce(1), 4);
  session->replay(session->take_captured(), *graph);
  world->hold_streams(false);
  EXPECT_DOUBLE_EQ(session->take_totals().exposed_ms, 5) << "the compute stream has waited for it";
}

TEST_F(GraphTest, TicketsAreOfTheirCaptureAlone) {
  open_on(false);
  const Ticket before = session->launch(all_reduce(1), 4);
  world->begin_capture();
  const Ticket captured = session->launch(all_reduce(1), 4);
  EXPECT_TRUE(has(error_of([&] { session->wait(before); }), "1: wait for collective 1 during a capture"));
  EXPECT_TRUE(has(error_of([&] { session->wait(captured + 1); }), "1: wait for collective 2 of a graph"));
  EXPECT_TRUE(has(error_of([&] { session->synchronize(); }), "2: synchronize through NCCL while"));
  EXPECT_TRUE(has(error_of([&] { session->barrier(); }), "2: barrier through NCCL while"));
  EXPECT_TRUE(has(error_of([&] { session->begin_series(); }), "2: begin_series through NCCL while"));
  session->wait(captured);
  session->wait(captured);
  world->end_capture();
  EXPECT_TRUE(has(error_of([&] { session->wait(captured); }), "1: wait for collective 1 of a graph outside"));
  world->destroy_graphs();
  EXPECT_EQ(session->take_totals().collectives, 1U);
}

TEST_F(GraphTest, ASecondCaptureBeginsAnew) {
  open_on(false);
  const auto first = capture();
  (void)session->take_captured();
  const int events = world->events_made;
  const auto second = capture();
  EXPECT_EQ(session->take_captured().collectives, 2U);
  EXPECT_EQ(session->take_captured().collectives, 0U) << "it was taken";
  EXPECT_EQ(world->events_made, events) << "events are used again";
}

TEST_F(GraphTest, TheCommunicatorWatchesAGraphThatHasItsCollectives) {
  open_on(true);
  NcclCommunicator communicator(session, 1, 2, "NCCL 2.28.9");
  auto graph = communicator.watch(capture());
  graph->launch();
  EXPECT_EQ(communicator.take_totals().collectives, 2U);
  world->begin_capture();
  world->end_capture();
  auto silent = std::make_unique<FakeGraph>(*world);
  const compute::Graph* const same = silent.get();
  EXPECT_EQ(communicator.watch(std::move(silent)).get(), same);
  EXPECT_EQ(communicator.watch(nullptr), nullptr);
  graph.reset();
}

// ---- the order of the end ------------------------------------------------------------------------------------------

// NCCL does not return from the end of a communicator before: World has it as a rule.
TEST_F(GraphTest, AHealthyEndWaitsForTheLastGraph) {
  open_on(true);
  auto graph = capture();
  session->replay(session->take_captured(), *graph);
  std::thread closer([&] { session->close(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // many looks of the caretaker
  EXPECT_EQ(world->finalized, 0);
  graph.reset();
  closer.join();
  EXPECT_EQ(world->finalized, 2);
  EXPECT_EQ(world->aborts + world->child_aborts, 0);
}

TEST_F(GraphTest, AGraphThatOutlivesItsCommunicatorHoldsNobodyUp) {
  open_on(true, 60000, quick);
  auto graph = capture();
  session->close();
  EXPECT_EQ(world->finalized, 0);
  graph.reset();
  EXPECT_TRUE(eventually([&] { return world->destroyed == 2; })) << "the caretaker has waited for it";
}

TEST_F(GraphTest, AnAbortEndsTheReplayAndThenWaitsForTheGraph) {
  open_on(true);
  auto graph = capture();
  world->hold_collectives(true);
  session->replay(session->take_captured(), *graph);
  ranks->aborted = true;
  EXPECT_TRUE(eventually([&] { return world->aborts == 1; }));
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: graph of 2 collectives (collective 1, 40 bytes) was given up on rank 1")) << error;
  EXPECT_EQ(world->aborts, 1) << "of the root: what runs has ended, and memory may be freed";
  EXPECT_EQ(world->child_aborts, 0);
  EXPECT_EQ(error_of([&] { (void)session->launch(all_reduce(1), 4); }), error);
  graph.reset();
  EXPECT_TRUE(eventually([&] { return world->child_aborts == 1; }));
}

TEST_F(GraphTest, AReplayThatDoesNotFinishIsLate) {
  open_on(true, 100);
  const auto graph = capture();
  world->hold_collectives(true);
  session->replay(session->take_captured(), *graph);
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: graph of 2 collectives (collective 1, 40 bytes) did not finish on rank 1 within 100 ms"))
      << error;
}

TEST_F(GraphTest, ASeriesThatDoesNotFinishIsLate) {
  open_on(true, 100);
  world->hold_collectives(true);
  session->begin_series();
  for (int i = 0; i < 3; ++i) (void)session->launch(all_reduce(1), 4);
  (void)session->end_series();
  const std::string error = error_of([&] { session->synchronize(); });
  EXPECT_TRUE(has(error, "7: all_reduce and 2 more (collective 1, 12 bytes) did not finish")) << error;
}

// NCCL connects while it is captured, and waits for the other ranks inside the call.
TEST_F(GraphTest, ACaptureThatHangsInsideNcclIsLate) {
  world->enqueue_hangs = true;
  open_on(false, 50);
  world->begin_capture();
  const std::string error = error_of([&] { (void)session->launch(all_reduce(100), 400); });
  EXPECT_TRUE(has(error, "7: all_reduce (collective 1, 400 bytes) did not finish on rank 1 within 50 ms")) << error;
  EXPECT_EQ(world->aborts, 1);
  EXPECT_EQ(world->child_aborts, 0) << "the graph is still being captured";
  world->end_capture();
  world->destroy_graphs();
}

// ---- registered memory ---------------------------------------------------------------------------------------------

TEST_F(GraphTest, RegisteredMemoryIsSymmetricWhereThereAreWindows) {
  open_on(true);
  std::unique_ptr<LibraryMemory> memory, asked_for, plain, none;
  {
    NcclCommunicator communicator(session, 1, 2, "NCCL 2.28.9");
    memory = communicator.allocate_registered(64, Registration::symmetric);
    EXPECT_EQ(memory->registration(), Registration::symmetric);
    EXPECT_EQ(communicator.description(), "NCCL 2.28.9; 1 of 1 registered buffers is symmetric");
    asked_for = communicator.allocate_registered(64, Registration::plain);
    EXPECT_EQ(asked_for->registration(), Registration::plain);
    world->has_windows = false;
    plain = communicator.allocate_registered(64, Registration::symmetric);
    EXPECT_EQ(plain->registration(), Registration::plain);
    world->registers = false;
    none = communicator.allocate_registered(64, Registration::symmetric);
    EXPECT_EQ(none->registration(), Registration::none);
    EXPECT_TRUE(has(communicator.description(), "1 of 4 buffers could not be registered"));
  }
  EXPECT_EQ(world->windows_alive, 0);
  EXPECT_EQ(world->shared_alive, 4) << "it outlives the communicator";
}

TEST_F(GraphTest, ARegistrationThatNobodyJoinsIsLate) {
  world->registration_hangs = true;
  open_on(true, 50);
  const std::string error = error_of([&] { (void)session->register_together(&world, 64); });
  EXPECT_TRUE(has(error, "7: the registration of memory (collective 0, 64 bytes) did not finish on rank 1")) << error;
  EXPECT_EQ(world->aborts, 1);
}

}  // namespace
}  // namespace assay::comm::nccl
