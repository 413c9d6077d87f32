#include <chrono>
#include <thread>

#include "common/probe_parts.hpp"
#include "cuda_handles.hpp"
#include "probes.hpp"

namespace assay::cuda {
namespace {

void wait_for(const Stream& stream) { check(cudaStreamSynchronize(stream.get()), "wait for a probe"); }

// Of so many kernels, with an event recorded behind every `event_each`-th; 0: none.
GraphTemplate captured(const Stream& stream, int kernels, int event_each, std::vector<Event>& events) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture a probe");
  for (int i = 0; i < kernels; ++i) {
    launch_nothing(stream.get());
    if (event_each == 0 || i % event_each != 0) continue;
    events.push_back(make_event(cudaEventDefault));
    check(cudaEventRecordWithFlags(events.back().get(), stream.get(), cudaEventRecordExternal), "capture an event");
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "capture a probe");
  return GraphTemplate(graph);
}

GraphExec instantiated(const GraphTemplate& graph) {
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, graph.get(), 0), "make a graph of a probe");
  return GraphExec(exec);
}

GraphExec graph_of(const Stream& stream, int kernels, int event_each, std::vector<Event>& events) {
  return instantiated(captured(stream, kernels, event_each, events));
}

void launch(const GraphExec& graph, const Stream& stream) {
  check(cudaGraphLaunch(graph.get(), stream.get()), "launch a graph of a probe");
}

double elapsed_ns(const Event& begin, const Event& end) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time between two events");
  return static_cast<double>(ms) * 1e6;
}

// On the device, from the event before a replay to the event behind it.
double replay_us(const GraphExec& graph, const Stream& stream) {
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault);
  std::vector<double> times_us;
  for (int i = 0; i < 30; ++i) {
    check(cudaEventRecord(begin.get(), stream.get()), "time a graph");
    launch(graph, stream);
    check(cudaEventRecord(end.get(), stream.get()), "time a graph");
    wait_for(stream);
    if (i >= 5) times_us.push_back(elapsed_ns(begin, end) * 1e-3);
  }
  return compute::median(times_us);
}

double launch_after_us(std::chrono::milliseconds idle, int times, const GraphExec& graph, const Stream& stream) {
  std::vector<double> times_us;
  for (int i = 0; i < times; ++i) {
    if (idle.count() > 0) std::this_thread::sleep_for(idle);
    times_us.push_back(compute::microseconds_of([&] {
      launch(graph, stream);
      wait_for(stream);
    }));
  }
  return compute::median(times_us);
}

// What each event adds to a replay of `kernels` of which every `event_each`-th is followed by one.
double event_cost_us(const Stream& stream, int kernels, int event_each) {
  std::vector<Event> events, none;
  const GraphExec with = graph_of(stream, kernels, event_each, events);
  const GraphExec without = graph_of(stream, kernels, 0, none);
  const double more_us = replay_us(with, stream) - replay_us(without, stream);
  return more_us / static_cast<double>(events.size());
}

}  // namespace

void probe_graphs(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "graph");
  const Stream stream = make_stream(priority_of_steps);
  std::vector<Event> none;
  const GraphExec one = graph_of(stream, 1, 0, none);
  launch_after_us(std::chrono::milliseconds(0), 200, one, stream);  // the GPU wakes
  found.number("launch_us", launch_after_us(std::chrono::milliseconds(0), 1000, one, stream));
  found.number("launch_after_1ms_us", launch_after_us(std::chrono::milliseconds(1), 50, one, stream));
  found.number("launch_after_10ms_us", launch_after_us(std::chrono::milliseconds(10), 20, one, stream));
  found.number("launch_after_50ms_us", launch_after_us(std::chrono::milliseconds(50), 10, one, stream));
  constexpr int many = 1000;
  const GraphTemplate graph = captured(stream, many, 0, none);
  GraphExec large;
  found.number("instantiate_1000_us", compute::microseconds_of([&] { large = instantiated(graph); }));
  found.number("first_launch_1000_us", compute::microseconds_of([&] { launch(large, stream); }));
  wait_for(stream);
  found.number("later_launch_1000_us", compute::median([&] {
                 std::vector<double> times_us;
                 for (int i = 0; i < 20; ++i) {
                   times_us.push_back(compute::microseconds_of([&] { launch(large, stream); }));
                   wait_for(stream);
                 }
                 return times_us;
               }()));
  found.number("replay_1000_us", replay_us(large, stream));
}

void probe_events(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "event");
  const Stream stream = make_stream(priority_of_steps);
  const Event begin = make_event(cudaEventDefault), end = make_event(cudaEventDefault);
  std::vector<double> gaps_ns, all_ns;
  for (int i = 0; i < 400; ++i) {
    check(cudaEventRecord(begin.get(), stream.get()), "record an event");
    for (int kernel = 0; kernel < i / 100 * 3; ++kernel) launch_nothing(stream.get());
    check(cudaEventRecord(end.get(), stream.get()), "record an event");
    wait_for(stream);
    all_ns.push_back(elapsed_ns(begin, end));
    if (i < 100) gaps_ns.push_back(all_ns.back());
  }
  found.number("least_gap_us", *std::min_element(gaps_ns.begin(), gaps_ns.end()) * 1e-3);
  found.number("gap_us", compute::median(gaps_ns) * 1e-3);
  found.number("resolution_ns", compute::resolution_ns(all_ns));
  found.number("captured_us", event_cost_us(stream, 10, 1));
  found.number("captured_many_us", event_cost_us(stream, 1000, 1));
  found.number("captured_sparse_us", event_cost_us(stream, 1000, 10));
}

}  // namespace assay::cuda
