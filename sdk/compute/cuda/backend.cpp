// What all operations of the CUDA backend share: mode, the two lanes, workspace, and capture into graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "attention_plans.hpp"
#include "cuda_backend.hpp"
#include "gpu_use.hpp"
#include "graph_events.hpp"
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

// A captured graph in one or both of its forms: as it was captured, and without the events that the host has recorded
// in it, which is made when it is first wanted.
class CudaGraph final : public Graph {
 public:
  CudaGraph(GraphTemplate graph, cudaStream_t stream) : stream_(stream) {
    check(cudaGraphGetNodes(graph.get(), nullptr, &nodes_), "count the nodes of a graph");
    const std::vector<GraphPiece> pieces = in_pieces(graph.get());
    as_captured_ = pieces.empty() ? instantiated(graph.get()) : instantiated(pieces);
    // Now, while the events are known: their owner may destroy them before the other form is wanted.
    if (take_out_captured_events(graph.get()) > 0) without_events_template_ = std::move(graph);
  }
  void launch() override {
    if (do_graphs_record_events()) return replay(as_captured_);
    if (without_events_template_) {
      without_events_ = instantiated(without_events_template_.get());
      without_events_template_.reset();
    }
    replay(without_events_.pieces.empty() ? as_captured_ : without_events_);
  }
  std::size_t node_count() const override { return nodes_; }

 private:
  struct Piece {
    GraphExec exec;  // null: nothing lies before the event
    cudaEvent_t event = nullptr;
  };
  struct Form {
    std::vector<Piece> pieces;
    AccountedBytes accounted;
  };

  // Calls `make`, which adds pieces to a form, and accounts for the memory that they have taken.
  template <class Make>
  static Form accounted(Make make) {
    Form form;
    const std::size_t free_before = free_bytes();
    make(form);
    const std::size_t free_after = free_bytes();
    form.accounted = AccountedBytes(free_before > free_after ? free_before - free_after : 0, "captured graph");
    return form;
  }
  Form instantiated(cudaGraph_t graph) const {
    return accounted([&](Form& form) { form.pieces.push_back({executable(graph), nullptr}); });
  }
  Form instantiated(const std::vector<GraphPiece>& pieces) const {
    return accounted([&](Form& form) {
      for (const GraphPiece& piece : pieces)
        form.pieces.push_back({piece.graph ? executable(piece.graph.get()) : GraphExec(), piece.event});
    });
  }
  GraphExec executable(cudaGraph_t graph) const {
    cudaGraphExec_t made = nullptr;
    // A collective that was captured on a stream of high priority keeps it beside the products.
    check(cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority), "instantiate a graph");
    GraphExec exec(made);
    check(cudaGraphUpload(exec.get(), stream_), "upload a graph");  // else the first launch would
    return exec;
  }
  static std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "read the free memory");
    return free;
  }
  void replay(const Form& form) const {
    for (const Piece& piece : form.pieces) {
      if (piece.exec) check(cudaGraphLaunch(piece.exec.get(), stream_), "launch a graph");
      if (piece.event) check(cudaEventRecord(piece.event, stream_), "record an event behind a graph");
    }
  }

  cudaStream_t stream_;
  Form as_captured_, without_events_;
  GraphTemplate without_events_template_;  // until it is wanted; null where nothing was taken out
  std::size_t nodes_ = 0;
};

}  // namespace

CudaBackend::CudaBackend(int ordinal, cudaStream_t stream)
    : ordinal_(ordinal), shared_([ordinal] {
        return text_of(GpuUse(ordinal).conditions(MatmulPlans::library() + ", " + AttentionPlans::library()));
      }) {
  check(cudaSetDevice(ordinal), "make the device current");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal),
        "count the multiprocessors");
  check(cudaDeviceGetAttribute(&compute_capability_, cudaDevAttrComputeCapabilityMajor, ordinal),
        "ask for the compute capability");
  side_stream_ = make_stream(priority_of_side_work);  // it gets what the main lane leaves free
  forked_ = make_event(cudaEventDisableTiming);
  joined_ = make_event(cudaEventDisableTiming);
  lanes_[0].stream = required(stream);
  lanes_[1].stream = side_stream_.get();
  matmuls_ = std::make_unique<MatmulPlans>(ordinal, shared_);
  attentions_ = std::make_unique<AttentionPlans>(ordinal, stream, shared_);
}

CudaBackend::~CudaBackend() {
  // Whatever still runs uses handles and plans that go now.
  (void)cudaSetDevice(ordinal_);
  for (const Lane& lane : lanes_) (void)cudaStreamSynchronize(lane.stream);
}

Inspector* CudaBackend::inspector() {
  if (!inspector_) inspector_ = std::make_unique<CudaInspector>(*this, lanes_[0].stream);
  return inspector_.get();
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
  try {
    attentions_->wait();
    postponed_.carry_out();
  } catch (...) {
    attentions_->forget_begun();  // the calls behind the one that failed are dropped
    throw;
  }
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
  for (const auto& [product, kernel] : grouped_products_) all.push_back({product, kernel});
  return all;
}

void CudaBackend::set_product_math(ProductMath math) { math_ = math; }

void CudaBackend::set_tuning(Tuning tuning) {
  matmuls_->set_tuning(tuning);
  attentions_->set_tuning(tuning);
}

void CudaBackend::share_tuning(AlgorithmExchange* with) { shared_.share(with); }

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
    // Ends the capture of both lanes; its own error says less than the exception in flight.
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
