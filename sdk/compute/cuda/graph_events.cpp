#include "graph_events.hpp"

#include <assay/graph_events.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "cuda_error.hpp"
#include "graph_nodes.hpp"

namespace assay::cuda {
namespace {

// On an H200 an event-record node made a replay 2.5 us longer where ten kernels had one each, and 3.5 us where each of
// a thousand had one.
constexpr double captured_event_ns = 2500;

std::atomic<bool> are_recorded = true;
std::mutex captured_mutex;
std::unordered_set<cudaEvent_t> captured_events;
compute::StatusGuard events_guard = nullptr;

constexpr assay_graph_events events_switch{
    sizeof(assay_graph_events),
    captured_event_ns,
    [](assay_device*, std::int32_t on) noexcept {
      return compute::guarded(events_guard, [&] { let_graphs_record_events(on != 0); });
    },
};

bool records_captured_event(cudaGraphNode_t node) {
  if (type_of(node) != cudaGraphNodeTypeEventRecord) return false;
  cudaEvent_t event = nullptr;
  check(cudaGraphEventRecordNodeGetEvent(node, &event), "read an event of a graph");
  const std::lock_guard lock(captured_mutex);
  return captured_events.contains(event);
}

bool may_be_edited(cudaGraphNode_t node) {
  const auto type = type_of(node);
  return type != cudaGraphNodeTypeMemAlloc && type != cudaGraphNodeTypeMemFree && type != cudaGraphNodeTypeConditional;
}

// The edges that take the place of those of a node.
struct NewEdges {
  std::vector<cudaGraphNode_t> from, to;
  bool are_plain = true;  // and so are those that they replace
};

NewEdges edges_past(cudaGraphNode_t node) {
  NewEdges edges;
  const NodeEdges before = dependencies_of(node), after = dependents_of(node);
  edges.are_plain = before.are_plain && after.are_plain;
  for (const cudaGraphNode_t from : before.nodes) {
    const NodeEdges existing = dependents_of(from);
    edges.are_plain = edges.are_plain && existing.are_plain;
    for (const cudaGraphNode_t to : after.nodes)
      if (std::find(existing.nodes.begin(), existing.nodes.end(), to) == existing.nodes.end()) {
        edges.from.push_back(from);
        edges.to.push_back(to);
      }
  }
  return edges;
}

}  // namespace

const void* graph_events_extension(const char* id, compute::StatusGuard guard) noexcept {
  events_guard = guard;
  return std::strcmp(id, ASSAY_EXT_GRAPH_EVENTS) == 0 ? &events_switch : nullptr;
}

void let_graphs_record_events(bool on) noexcept { are_recorded = on; }
bool do_graphs_record_events() noexcept { return are_recorded; }

void add_captured_event(cudaEvent_t event) {
  const std::lock_guard lock(captured_mutex);
  captured_events.insert(event);
}

void forget_captured_event(cudaEvent_t event) noexcept {
  const std::lock_guard lock(captured_mutex);
  captured_events.erase(event);
}

std::size_t take_out_captured_events(cudaGraph_t graph) {
  std::size_t taken_out = 0;
  const std::vector<cudaGraphNode_t> nodes = nodes_of(graph);
  if (!std::all_of(nodes.begin(), nodes.end(), may_be_edited)) return 0;
  for (const cudaGraphNode_t node : nodes) {
    if (!records_captured_event(node)) continue;
    const NewEdges edges = edges_past(node);
    if (!edges.are_plain) continue;
    if (!edges.from.empty())
      check(cudaGraphAddDependencies(graph, edges.from.data(), edges.to.data(), nullptr, edges.from.size()),
            "order what lies around an event of a graph");
    check(cudaGraphDestroyNode(node), "take an event out of a graph");
    ++taken_out;
  }
  return taken_out;
}

}  // namespace assay::cuda
