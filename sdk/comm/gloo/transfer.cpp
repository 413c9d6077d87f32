#include "transfer.hpp"

namespace assay::comm::gloo_backend {
namespace {

template <class F>
void translated(Mesh& mesh, std::int32_t peer, F&& call) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const std::exception& e) {
    throw mesh.lost(peer, e.what(), begin);
  }
}

}  // namespace

void Incoming::wait() {
  translated(*mesh_, peer_, [&] { buffer_->waitRecv(); });
}

void Outgoing::send(std::size_t offset, std::size_t bytes, std::size_t remote_offset) {
  translated(*mesh_, peer_, [&] { buffer_->send(offset, bytes, remote_offset); });
  ++unfinished_;
}

void Outgoing::finish() {
  for (; unfinished_ > 0; --unfinished_) translated(*mesh_, peer_, [&] { buffer_->waitSend(); });
}

}  // namespace assay::comm::gloo_backend
