// Graphs with and without the events that were recorded while they were captured (assay.graph_events/1).
#include <assay/graph_events.h>

#include <memory>

#include "harness.hpp"

namespace assay::conformance {
namespace {

const assay_graph_events* graph_events() {
  return static_cast<const assay_graph_events*>(Session::get().api().get_extension(ASSAY_EXT_GRAPH_EVENTS));
}

// Three events around two sums, each of which takes what the one before has left; and as many nodes as it takes for a
// graph in one line to be cut at its events.
class CapturedSums {
 public:
  CapturedSums(std::int64_t sums, bool beside) : sums_(sums), beside_(beside) {
    for (assay_event*& event : events_) EXPECT_EQ(api().event_create(device(), &event), ASSAY_OK) << api().error_text();
    run([&] { enqueue(false); });
    a_.write(Values(count, 0.0));
    b_.write(Values(count, 0.0));
    graph_ = backend().capture([&] { enqueue(true); });
  }
  CapturedSums(const CapturedSums&) = delete;
  CapturedSums& operator=(const CapturedSums&) = delete;
  ~CapturedSums() {
    graph_.reset();
    for (assay_event* event : events_) api().event_destroy(device(), event);
  }

  explicit operator bool() const { return graph_ != nullptr; }
  void launch() const {
    graph_->launch();
    backend().synchronize();
  }
  // Each launch adds so much to every element.
  double sum() const { return a_.read()[0]; }
  double sum_beside() const { return b_.read()[0]; }
  bool is_even() const { return a_.read() == Values(count, sum()); }
  double elapsed_ns(int begin, int end) const {
    double ns = -1;
    EXPECT_EQ(api().event_elapsed_ns(device(), events_[begin], events_[end], &ns), ASSAY_OK) << api().error_text();
    return ns;
  }

 private:
  static constexpr std::int64_t count = 1000;
  static const assay_device_api& api() { return Session::get().api(); }
  static assay_device* device() { return Session::get().device(); }
  void mark(int event, bool marks) const {
    if (marks) {
      EXPECT_EQ(api().event_record(device(), events_[event], Session::get().stream()), ASSAY_OK) << api().error_text();
    }
  }
  void add(const DeviceTensor& to) const { backend().run(op::Add{.a = to, .b = one_, .out = to}); }
  void enqueue(bool marks) const {
    mark(0, marks);
    for (std::int64_t i = 0; i < sums_; ++i) add(a_);
    mark(1, marks);
    if (beside_) {
      backend().begin_side();
      add(b_);
      backend().end_side();
    }
    for (std::int64_t i = 0; i < sums_; ++i) add(a_);
    if (beside_) backend().join_side();
    mark(2, marks);
  }

  std::int64_t sums_;
  bool beside_;
  DeviceTensor a_{DType::f32, {count}, Values(count, 0.0)}, b_{DType::f32, {count}, Values(count, 0.0)},
      one_{DType::f32, {count}, Values(count, 1.0)};
  assay_event* events_[3] = {};
  std::unique_ptr<compute::Graph> graph_;
};

// A graph in one piece, one that is cut at its events, and one with work beside its main line.
TEST(GraphEvents, AGraphDoesTheSameWithAndWithoutThem) {
  if (!graph_events()) GTEST_SKIP() << "no switch for events on " << backend().kind();
  EXPECT_GT(graph_events()->event_ns, 0);
  for (const auto& [sums, beside] : {std::pair<std::int64_t, bool>(3, false), {100, false}, {3, true}, {100, true}}) {
    const CapturedSums captured(sums, beside);
    ASSERT_TRUE(captured);
    double launches = 0;
    const auto launch_with = [&, sums = sums, beside = beside](int on) {
      EXPECT_EQ(graph_events()->record(Session::get().device(), on), ASSAY_OK);
      captured.launch();
      ++launches;
      EXPECT_EQ(captured.sum(), launches * 2 * static_cast<double>(sums)) << "sums " << sums << " beside " << beside;
      EXPECT_EQ(captured.sum_beside(), beside ? launches : 0) << "sums " << sums;
      EXPECT_TRUE(captured.is_even());
    };
    launch_with(1);
    const double first_ns = captured.elapsed_ns(0, 1), second_ns = captured.elapsed_ns(1, 2);
    EXPECT_GT(first_ns, 0);
    EXPECT_GT(second_ns, 0);
    // Nothing records them, so that each has the time of the launch before.
    for (int i = 0; i < 3; ++i) {
      launch_with(0);
      EXPECT_EQ(captured.elapsed_ns(0, 1), first_ns);
      EXPECT_EQ(captured.elapsed_ns(1, 2), second_ns);
    }
    launch_with(1);
    EXPECT_GT(captured.elapsed_ns(0, 2), 0);
  }
}

TEST(GraphEvents, AGraphWithoutEventsIsOneGraph) {
  if (!graph_events()) GTEST_SKIP() << "no switch for events on " << backend().kind();
  const DeviceTensor sum(DType::f32, {10}, Values(10, 0.0)), one(DType::f32, {10}, Values(10, 1.0));
  const auto add = [&] { backend().run(op::Add{.a = sum, .b = one, .out = sum}); };
  run(add);
  sum.write(Values(10, 0.0));
  const std::unique_ptr<compute::Graph> graph = backend().capture(add);
  for (const int on : {1, 0, 1}) {
    EXPECT_EQ(graph_events()->record(Session::get().device(), on), ASSAY_OK);
    graph->launch();
  }
  backend().synchronize();
  EXPECT_EQ(sum.read(), Values(10, 3.0));
}

}  // namespace
}  // namespace assay::conformance
