// The two ends of a stream of messages between two ranks. Gloo delivers a message without asking: into the memory that
// the receiver has registered under the message's slot, at the offset that the sender names. So the receiver must
// register before the sender can send; the collectives see to that.
//
// While one of these lives, Gloo may touch its memory, until every message has been waited for or the mesh is closed.
#pragma once
#include <gloo/transport/buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mesh.hpp"

namespace assay::comm::gloo_backend {

class Incoming {
 public:
  Incoming(Mesh& mesh, ::gloo::transport::Pair& pair, std::int32_t peer, int slot, void* memory, std::size_t bytes)
      : mesh_(&mesh), peer_(peer), buffer_(pair.createRecvBuffer(slot, memory, bytes)) {}
  // Until one more message is here, in the order in which they were sent.
  void wait();

 private:
  Mesh* mesh_;
  std::int32_t peer_;
  std::unique_ptr<::gloo::transport::Buffer> buffer_;
};

class Outgoing {
 public:
  Outgoing(Mesh& mesh, ::gloo::transport::Pair& pair, std::int32_t peer, int slot, const void* memory,
           std::size_t bytes)
      : mesh_(&mesh), peer_(peer), buffer_(pair.createSendBuffer(slot, const_cast<void*>(memory), bytes)) {}
  // May return before the memory has been read.
  void send(std::size_t offset, std::size_t bytes, std::size_t remote_offset);
  // Until the memory of everything sent may be written again.
  void finish();

 private:
  Mesh* mesh_;
  std::int32_t peer_;
  std::size_t unfinished_ = 0;
  std::unique_ptr<::gloo::transport::Buffer> buffer_;
};

}  // namespace assay::comm::gloo_backend
