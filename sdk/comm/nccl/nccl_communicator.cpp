#include "nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <assay/plugin.hpp>
#include <utility>

namespace assay::comm::nccl {
namespace {

using compute::DType;
using compute::Tensor;

void require_contiguous(Operation operation, const Tensor& tensor) {
  if (!tensor.contiguous())
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: {}: a tensor that is not contiguous; expected a contiguous one: copy it first",
                            name_of(operation)));
}

// The checks that all have in common; `send_parts` and `receive_parts`: how many ranks' parts each has to hold.
void require_matching(Operation operation, const Tensor& send, std::int64_t send_parts, const Tensor& receive,
                      std::int64_t receive_parts) {
  require_contiguous(operation, send);
  require_contiguous(operation, receive);
  if (send.dtype != receive.dtype)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: {}: send is {}, receive is {}; expected one type", name_of(operation),
                            compute::name_of(send.dtype), compute::name_of(receive.dtype)));
  if (send.elements() * receive_parts != receive.elements() * send_parts)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: {}: {} elements in send and {} in receive; expected a ratio of {} to {}",
                            name_of(operation), send.elements(), receive.elements(), send_parts, receive_parts));
}

void require_apart(Operation operation, const Tensor& send, const Tensor& receive) {
  if (share_memory(send, receive))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: {}: send and receive share memory; expected two buffers", name_of(operation)));
}

void require_root(Operation operation, std::int32_t root, std::int32_t size) {
  if (root < 0 || root >= size)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: {} with rank {} as its root; expected 0 to {}", name_of(operation), root, size - 1));
}

void require_other_rank(Operation operation, std::int32_t other, std::int32_t rank, std::int32_t size) {
  if (other < 0 || other >= size || other == rank)
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("nccl: {} of rank {} with rank {}; expected another one, 0 to {}",
                                                    name_of(operation), rank, other, size - 1));
}

void require_reducible(Operation operation, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16)
    throw Error(ASSAY_UNSUPPORTED, fmt::format("nccl: {} of {}; expected fp32, bf16 or fp16", name_of(operation),
                                               compute::name_of(dtype)));
}

// Freed when the communicator, with which it is registered, has ended.
class SharedMemory final : public LibraryMemory {
 public:
  SharedMemory(std::shared_ptr<Session> session, std::size_t bytes, Registration best)
      : session_(std::move(session)), address_(session_->allocate_shared(std::max<std::size_t>(bytes, 1))) {
    try {
      const std::size_t taken = std::max<std::size_t>(bytes, 1);
      if (best == Registration::symmetric)
        registration_ = session_->register_together(address_, taken);
      else if (session_->register_memory(address_, taken))
        registration_ = Registration::plain;
    } catch (...) {
      session_->free_shared(address_);
      throw;
    }
  }
  ~SharedMemory() override { session_->free_shared(address_); }
  void* data() const override { return address_; }
  Registration registration() const override { return registration_; }

 private:
  const std::shared_ptr<Session> session_;
  void* const address_;
  Registration registration_ = Registration::none;
};

class WatchedGraph final : public compute::Graph {
 public:
  WatchedGraph(std::shared_ptr<Session> session, const CapturedCollectives& captured,
               std::unique_ptr<compute::Graph> graph)
      : session_(std::move(session)), captured_(captured), graph_(std::move(graph)) {}
  void launch() override { session_->replay(captured_, *graph_); }
  std::size_t node_count() const override { return graph_->node_count(); }

 private:
  const std::shared_ptr<Session> session_;
  const CapturedCollectives captured_;
  const std::unique_ptr<compute::Graph> graph_;
};

// An average over one rank is its sum. NCCL 2.28.9 left the last elements of some sizes unwritten there (seen on an
// H200: wrong from element 1048576 of 1048579 on).
Reduction reduction_over(std::int32_t size, Reduction reduction) {
  return size == 1 && reduction == Reduction::average ? Reduction::sum : reduction;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<Session> session, std::int32_t rank, std::int32_t size,
                                   std::string description)
    : session_(std::move(session)), rank_(rank), size_(size), description_(std::move(description)) {}

std::string NcclCommunicator::description() const {
  std::string text = description_;
  if (symmetric_ > 0)
    text += fmt::format("; {} of {} registered buffers {} symmetric", symmetric_, asked_to_register_,
                        symmetric_ == 1 ? "is" : "are");
  if (not_registered_ > 0)
    text += fmt::format("; {} of {} buffers could not be registered", not_registered_, asked_to_register_);
  return text;
}

void NcclCommunicator::register_memory(void* address, std::size_t bytes) {
  ++asked_to_register_;
  if (!session_->register_memory(address, bytes)) ++not_registered_;
}

std::unique_ptr<LibraryMemory> NcclCommunicator::allocate_registered(std::size_t bytes, Registration best) {
  auto memory = std::make_unique<SharedMemory>(session_, bytes, best);
  ++asked_to_register_;
  if (memory->registration() == Registration::symmetric) ++symmetric_;
  if (memory->registration() == Registration::none) ++not_registered_;
  return memory;
}

std::unique_ptr<compute::Graph> NcclCommunicator::watch(std::unique_ptr<compute::Graph> graph) {
  const CapturedCollectives captured = session_->take_captured();
  if (!graph || captured.collectives == 0) return graph;
  return std::make_unique<WatchedGraph>(session_, captured, std::move(graph));
}

Ticket NcclCommunicator::all_reduce(const Tensor& send, const Tensor& receive, Reduction reduction) {
  require_reducible(Operation::all_reduce, send.dtype);
  require_matching(Operation::all_reduce, send, 1, receive, 1);
  return session_->launch({.operation = Operation::all_reduce,
                           .send = send.data,
                           .receive = receive.data,
                           .count = static_cast<std::size_t>(send.elements()),
                           .dtype = send.dtype,
                           .reduction = reduction_over(size_, reduction)},
                          send.bytes());
}

Ticket NcclCommunicator::reduce_scatter(const Tensor& send, const Tensor& receive, Reduction reduction) {
  require_reducible(Operation::reduce_scatter, send.dtype);
  require_matching(Operation::reduce_scatter, send, size_, receive, 1);
  return session_->launch({.operation = Operation::reduce_scatter,
                           .send = send.data,
                           .receive = receive.data,
                           .count = static_cast<std::size_t>(receive.elements()),
                           .dtype = send.dtype,
                           .reduction = reduction_over(size_, reduction)},
                          send.bytes());
}

Ticket NcclCommunicator::reduce(const Tensor& x, std::int32_t root, Reduction reduction) {
  require_reducible(Operation::reduce, x.dtype);
  require_contiguous(Operation::reduce, x);
  require_root(Operation::reduce, root, size_);
  return session_->launch({.operation = Operation::reduce,
                           .send = x.data,
                           .receive = x.data,
                           .count = static_cast<std::size_t>(x.elements()),
                           .dtype = x.dtype,
                           .reduction = reduction_over(size_, reduction),
                           .root = root},
                          x.bytes());
}

Ticket NcclCommunicator::all_gather(const Tensor& send, const Tensor& receive) {
  require_matching(Operation::all_gather, send, 1, receive, size_);
  return session_->launch({.operation = Operation::all_gather,
                           .send = send.data,
                           .receive = receive.data,
                           .count = send.bytes(),
                           .dtype = DType::u8},
                          receive.bytes());
}

Ticket NcclCommunicator::broadcast(const Tensor& x, std::int32_t root) {
  require_contiguous(Operation::broadcast, x);
  require_root(Operation::broadcast, root, size_);
  return session_->launch({.operation = Operation::broadcast,
                           .send = x.data,
                           .receive = x.data,
                           .count = x.bytes(),
                           .dtype = DType::u8,
                           .root = root},
                          x.bytes());
}

Ticket NcclCommunicator::all_to_all(const Tensor& send, const Tensor& receive) {
  require_matching(Operation::all_to_all, send, 1, receive, 1);
  require_apart(Operation::all_to_all, send, receive);
  if (send.elements() % size_ != 0)
    throw Error(
        ASSAY_INVALID_ARGUMENT,
        fmt::format("nccl: all_to_all: {} elements; expected a multiple of the {} ranks", send.elements(), size_));
  return session_->launch({.operation = Operation::all_to_all,
                           .send = send.data,
                           .receive = receive.data,
                           .count = send.bytes() / static_cast<std::size_t>(size_),
                           .dtype = DType::u8,
                           .size = size_},
                          send.bytes());
}

Ticket NcclCommunicator::all_to_all_v(const Tensor& send, std::span<const std::int64_t> send_rows,
                                      const Tensor& receive, std::span<const std::int64_t> receive_rows) {
  constexpr auto operation = Operation::all_to_all_v;
  require_contiguous(operation, send);
  require_contiguous(operation, receive);
  require_apart(operation, send, receive);
  if (send.dtype != receive.dtype || row_bytes(send) != row_bytes(receive))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: all_to_all_v: rows of {} bytes of {} in send and of {} of {} in receive; expected "
                            "rows alike",
                            row_bytes(send), compute::name_of(send.dtype), row_bytes(receive),
                            compute::name_of(receive.dtype)));
  if (!counts_rows(send, send_rows, size_) || !counts_rows(receive, receive_rows, size_))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: all_to_all_v: counts that are not of the {} rows of send and {} of receive; "
                            "expected one for each of the {} ranks, which add up to these",
                            send.dim(0), receive.dim(0), size_));
  const std::vector<std::size_t> sent = bytes_of_rows(send, send_rows), received = bytes_of_rows(receive, receive_rows);
  const auto own = static_cast<std::size_t>(rank_);
  if (sent[own] != received[own])
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: all_to_all_v: {} rows to rank {} itself and {} from it; expected as many",
                            send_rows[own], rank_, receive_rows[own]));
  return session_->launch({.operation = operation,
                           .send = send.data,
                           .receive = receive.data,
                           .dtype = DType::u8,
                           .size = size_,
                           .send_counts = sent,
                           .receive_counts = received},
                          std::max(send.bytes(), receive.bytes()));
}

Ticket NcclCommunicator::send_receive(const Tensor& send, std::int32_t to, const Tensor& receive, std::int32_t from) {
  require_contiguous(Operation::send_receive, send);
  require_contiguous(Operation::send_receive, receive);
  require_apart(Operation::send_receive, send, receive);
  if (to < 0 || to >= size_ || from < 0 || from >= size_)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: send_receive to rank {}, from rank {}; expected 0 to {}", to, from, size_ - 1));
  if ((to == rank_) != (from == rank_) || (to == rank_ && send.bytes() != receive.bytes()))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("nccl: send_receive of {} bytes to rank {} and of {} from rank {}; expected that rank {} "
                            "receives from itself what it sends to itself",
                            send.bytes(), to, receive.bytes(), from, rank_));
  return session_->launch({.operation = Operation::send_receive,
                           .send = send.data,
                           .receive = receive.data,
                           .count = send.bytes(),
                           .dtype = DType::u8,
                           .to = to,
                           .from = from,
                           .receive_count = receive.bytes()},
                          std::max(send.bytes(), receive.bytes()));
}

Ticket NcclCommunicator::send(const Tensor& x, std::int32_t to) {
  require_contiguous(Operation::send, x);
  require_other_rank(Operation::send, to, rank_, size_);
  return session_->launch(
      {.operation = Operation::send, .send = x.data, .count = x.bytes(), .dtype = DType::u8, .to = to}, x.bytes());
}

Ticket NcclCommunicator::receive(const Tensor& x, std::int32_t from) {
  require_contiguous(Operation::receive, x);
  require_other_rank(Operation::receive, from, rank_, size_);
  return session_->launch(
      {.operation = Operation::receive, .receive = x.data, .count = x.bytes(), .dtype = DType::u8, .from = from},
      x.bytes());
}

}  // namespace assay::comm::nccl
