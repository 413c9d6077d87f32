// What all operations of the CUDA backend share: mode, the two lanes, workspace, and capture into graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "attention_plans.hpp"
#include "cuda_backend.hpp"
#include "graph_pieces.hpp"
#include "kernels/graph_fills.hpp"
#include "matmul_plans.hpp"
#include "memory_account.hpp"

namespace assay::cuda {
namespace {

constexpr std::size_t scratch_alignment = 256;

cudaStream_t required(cudaStream_t stream) {
  if (!stream)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "the GPU's compute backend was given the default stream, which cannot be captured into a graph; "
                "expected one that stream_create made");
  return stream;
}

class CudaGraph final : public Graph {
 public:
  CudaGraph(GraphTemplate graph, cudaStream_t stream) : stream_(stream) {
    check(cudaGraphGetNodes(graph.get(), nullptr, &nodes_), "count the nodes of a graph");
    const std::size_t free_before = free_bytes();
    for (const GraphPiece& piece : in_pieces(std::move(graph))) {
      cudaGraphExec_t exec = nullptr;
      // A collective that was captured on a stream of high priority keeps it beside the products.
      if (piece.graph)
        check(cudaGraphInstantiate(&exec, piece.graph.get(), cudaGraphInstantiateFlagUseNodePriority),
              "instantiate a graph");
      pieces_.push_back({GraphExec(exec), piece.event});
      if (exec) check(cudaGraphUpload(exec, stream), "upload a graph");  // else the first launch would
    }
    const std::size_t free_after = free_bytes();
    accounted_ = AccountedBytes(free_before > free_after ? free_before - free_after : 0, "captured graph");
  }
  void launch() override {
    for (const Piece& piece : pieces_) {
      if (piece.exec) check(cudaGraphLaunch(piece.exec.get(), stream_), "launch a graph");
      if (piece.event) check(cudaEventRecord(piece.event, stream_), "record an event behind a graph");
    }
  }
  std::size_t node_count() const override { return nodes_; }

 private:
  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "read the free memory");
    return free;
  }

  struct Piece {
    GraphExec exec;
    cudaEvent_t event;
  };
  cudaStream_t stream_;
  std::vector<Piece> pieces_;
  AccountedBytes accounted_;
  std::size_t nodes_ = 0;
};

}  // namespace

CudaBackend::CudaBackend(int ordinal, cudaStream_t stream) : ordinal_(ordinal) {
  check(cudaSetDevice(ordinal), "make the device current");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal),
        "count the multiprocessors");
  side_stream_ = make_stream(priority_of_side_work);  // it gets what the main lane leaves free
  forked_ = make_event(cudaEventDisableTiming);
  joined_ = make_event(cudaEventDisableTiming);
  lanes_[0].stream = required(stream);
  lanes_[1].stream = side_stream_.get();
  matmuls_ = std::make_unique<MatmulPlans>(ordinal);
  attentions_ = std::make_unique<AttentionPlans>(ordinal, stream);
}

CudaBackend::~CudaBackend() {
  // Whatever still runs uses handles and plans that go now.
  (void)cudaSetDevice(ordinal_);
  for (const Lane& lane : lanes_) (void)cudaStreamSynchronize(lane.stream);
}

void CudaBackend::set_mode(Mode mode) {
  mode_ = mode;
  lane_ = 0,
  left_multiprocessors_ = 0;  // an exception may have left the side lane in use, and multiprocessors to others
  if (mode == Mode::prepare) return;
  try {
    finish_preparing();
  } catch (...) {
    matmuls_->end_preparing();
    throw;
  }
  matmuls_->end_preparing();
}

void CudaBackend::finish_preparing() const {
  attentions_->wait();
  postponed_.carry_out();
}

void CudaBackend::run_any(const AnyOperation& operation) {
  run_checked(operation, [this](const auto& op) { execute(op); });
}

void CudaBackend::synchronize() {
  check(cudaStreamSynchronize(lanes_[0].stream), "wait for the main lane");
  if (side_in_flight_) check(cudaStreamSynchronize(lanes_[1].stream), "wait for the side lane");
}

std::vector<PrimitiveInfo> CudaBackend::primitives() const {
  finish_preparing();
  std::vector<PrimitiveInfo> all = matmuls_->primitives();
  for (PrimitiveInfo& p : attentions_->primitives()) all.push_back(std::move(p));
  return all;
}

void CudaBackend::set_product_math(ProductMath math) { math_ = math; }

void CudaBackend::leave_multiprocessors(std::int32_t count) {
  if (count < 0 || count >= multiprocessors_)
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} of {} multiprocessors to leave to others; expected 0 to {}",
                                                    count, multiprocessors_, multiprocessors_ - 1));
  left_multiprocessors_ = count;
}

// ---- workspace -----------------------------------------------------------------------------------------------------

std::size_t CudaBackend::workspace_bytes() const {
  finish_preparing();
  return lanes_[0].scratch_bytes + lanes_[1].scratch_bytes;
}

void CudaBackend::set_workspace(void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % scratch_alignment)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "the workspace on the GPU is not 256-byte aligned; expected what a device's "
                "allocate() returned");
  finish_preparing();
  if (!address) bytes = 0;
  auto* at = static_cast<char*>(address);
  for (Lane& lane : lanes_) {
    lane.given_bytes = std::min(bytes, lane.scratch_bytes);
    lane.scratch = lane.given_bytes ? at : nullptr;
    at += lane.given_bytes;
    bytes -= lane.given_bytes;
  }
}

void CudaBackend::want_scratch(std::size_t lane, std::size_t bytes) {
  lanes_[lane].scratch_bytes = std::max(lanes_[lane].scratch_bytes, round_up(bytes, scratch_alignment));
}

void* CudaBackend::scratch(std::size_t bytes) {
  if (preparing()) {
    want_scratch(lane_, bytes);
    return nullptr;
  }
  const Lane& lane = lanes_[lane_];
  if (bytes > lane.given_bytes)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("an operation on the GPU needs {} bytes of workspace, but {} were given to its lane; run "
                            "it once in prepare mode, then give workspace_bytes() to set_workspace()",
                            bytes, lane.given_bytes));
  return bytes ? lane.scratch : nullptr;
}

// ---- lanes ---------------------------------------------------------------------------------------------------------

void CudaBackend::begin_side() {
  if (lane_ != 0) throw Error(ASSAY_INVALID_ARGUMENT, "begin_side() within the side lane; expected end_side() first");
  if (!preparing()) {
    check(cudaEventRecord(forked_.get(), lanes_[0].stream), "fork the side lane");
    check(cudaStreamWaitEvent(lanes_[1].stream, forked_.get(), 0), "fork the side lane");
    side_in_flight_ = true;
  }
  lane_ = 1;
}

void CudaBackend::end_side() {
  if (lane_ != 1) throw Error(ASSAY_INVALID_ARGUMENT, "end_side() on the main lane; expected begin_side() first");
  lane_ = 0;
}

void CudaBackend::join_side() {
  if (lane_ != 0) throw Error(ASSAY_INVALID_ARGUMENT, "join_side() within the side lane; expected end_side() first");
  if (preparing() || !side_in_flight_) return;
  check(cudaEventRecord(joined_.get(), lanes_[1].stream), "join the side lane");
  check(cudaStreamWaitEvent(lanes_[0].stream, joined_.get(), 0), "join the side lane");
  side_in_flight_ = false;
}

// ---- graphs --------------------------------------------------------------------------------------------------------

std::unique_ptr<Graph> CudaBackend::capture(const std::function<void()>& enqueue) {
  if (preparing())
    throw Error(ASSAY_INVALID_ARGUMENT,
                "capture() in prepare mode; expected the operations prepared, then captured in execute mode");
  const cudaStream_t main = lanes_[0].stream;
  join_side();  // a graph may not wait for work outside it
  check(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal), "begin to capture a graph");
  cudaGraph_t captured = nullptr;
  try {
    enqueue();
    join_side();
  } catch (...) {
    // Ends the capture of both lanes; what it says of its own is less than what is thrown.
    (void)cudaStreamEndCapture(main, &captured);
    (void)GraphTemplate(captured);
    (void)cudaGetLastError();
    lane_ = 0;
    side_in_flight_ = false;
    throw;
  }
  check(cudaStreamEndCapture(main, &captured), "capture a graph");
  GraphTemplate graph(captured);
  fill_by_kernels(graph.get());
  return std::make_unique<CudaGraph>(std::move(graph), main);
}

}  // namespace assay::cuda
