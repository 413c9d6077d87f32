#include "collectives.hpp"

#include <algorithm>
#include <assay/comm/message.hpp>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "reduction.hpp"

namespace assay::comm::gloo_backend {
namespace {

constexpr std::size_t segment_bytes = 512 * 1024;
constexpr std::size_t window = 2;                 // segments of one peer that may be under way to an owner
constexpr std::size_t piece_bytes = 1024 * 1024;  // of a gather or a broadcast: one message
constexpr std::size_t line_bytes = 64;
// The first message of a connection, which makes room for what follows; no larger than what is registered for a stage.
constexpr std::size_t opening_bytes = 128 * 1024;
constexpr std::byte opening[opening_bytes]{};
static_assert(opening_bytes <= window * segment_bytes);

// Slots: what a message is for. `ready` and `consumed` go against the direction of the data, so that a connection that
// was lost before memory was registered on it refuses them.
enum Slot : int { stage_slot, small_slot, caller_slot, ready_slot, consumed_slot, opening_slot };

std::size_t count_of(std::size_t bytes, std::size_t each) { return (bytes + each - 1) / each; }

std::vector<std::size_t> begins_of(const std::vector<std::size_t>& bytes) {
  std::vector<std::size_t> begins(bytes.size());
  std::exclusive_scan(bytes.begin(), bytes.end(), begins.begin(), std::size_t{0});
  return begins;
}

std::unique_ptr<std::byte[]> untouched(std::size_t bytes) { return std::make_unique_for_overwrite<std::byte[]>(bytes); }

}  // namespace

struct Collectives::Peer {
  Peer(Mesh& m, std::int32_t peer)
      : mesh(m),
        index(static_cast<std::size_t>(peer)),
        stage_memory(untouched(window * segment_bytes)),
        small_memory(untouched(2 * small_message_bytes)),
        staged(m, m.in(peer), peer, stage_slot, stage_memory.get(), window * segment_bytes),
        small(m, m.in(peer), peer, small_slot, small_memory.get(), 2 * small_message_bytes),
        ready(m, m.out(peer), peer, ready_slot, &signal_memory, 1),
        consumed(m, m.out(peer), peer, consumed_slot, &signal_memory, 1),
        say_ready(m, m.in(peer), peer, ready_slot, &signal_memory, 1),
        say_consumed(m, m.in(peer), peer, consumed_slot, &signal_memory, 1),
        opened(m, m.in(peer), peer, opening_slot, stage_memory.get(), opening_bytes),
        open(m, m.out(peer), peer, opening_slot, opening, opening_bytes) {}

  std::int32_t rank() const { return static_cast<std::int32_t>(index); }
  // Registers the caller's memory for what this peer sends in this collective, and says so.
  void expect(void* memory, std::size_t bytes) {
    incoming.emplace(mesh, mesh.in(rank()), rank(), caller_slot, memory, bytes);
    say_ready.send(0, 0, 0);
  }
  Outgoing sending(int slot, const void* memory, std::size_t bytes) {
    return Outgoing(mesh, mesh.out(rank()), rank(), slot, memory, bytes);
  }
  // Sends segment s of `bytes` that go to this peer's stage, where there is one.
  void send_segment(std::size_t s, std::size_t bytes) {
    const std::size_t begin = s * segment_bytes;
    if (begin < bytes) share->send(begin, std::min(segment_bytes, bytes - begin), s % window * segment_bytes);
  }
  void finish() {
    if (share) share->finish();
    if (result) result->finish();
    forget();
  }
  void forget() {
    incoming.reset();
    share.reset();
    result.reset();
  }

  Mesh& mesh;
  const std::size_t index;
  std::byte signal_memory{};
  std::unique_ptr<std::byte[]> stage_memory, small_memory;
  Incoming staged, small, ready, consumed;
  Outgoing say_ready, say_consumed;
  Incoming opened;  // never waited for: what a connection carries later comes after it
  Outgoing open;
  // Of the collective that runs: on the caller's memory.
  std::optional<Incoming> incoming;
  std::optional<Outgoing> share, result;
};

Collectives::Collectives(Mesh& mesh) : mesh_(mesh), sources_(size()) {
  for (std::int32_t step = 1; step < mesh.size(); ++step)
    peers_.push_back(std::make_unique<Peer>(mesh, (mesh.rank() + step) % mesh.size()));
}

void Collectives::open() {
  for (const auto& peer : peers_) peer->open.send(0, opening_bytes, 0);
}

Collectives::~Collectives() { mesh_.close(); }

Collectives::Peer* Collectives::peer_of(std::int32_t rank) const {
  if (rank == mesh_.rank()) return nullptr;
  return peers_[static_cast<std::size_t>((rank - mesh_.rank() + mesh_.size()) % mesh_.size() - 1)].get();
}

template <class F>
void Collectives::closing_on_error(F&& run) {
  try {
    run();
    for (const auto& peer : peers_) peer->finish();
  } catch (...) {
    // Before anything that Gloo may still write to goes away, and so that the other ranks learn of it.
    mesh_.close();
    for (const auto& peer : peers_) peer->forget();
    throw;
  }
}

// Parts differ by at most a line, and begin on one.
Collectives::Part Collectives::part_of(std::size_t bytes, std::size_t parts, std::size_t index) const {
  const std::size_t each = count_of(count_of(bytes, parts), line_bytes) * line_bytes;
  const std::size_t begin = std::min(bytes, index * each);
  return {begin, std::min(each, bytes - begin)};
}

void Collectives::all_reduce(const void* send, void* receive, std::size_t n, compute::DType dtype,
                             Reduction reduction) {
  closing_on_error([&] {
    if (n * size_of(dtype) <= small_message_bytes)
      reduce_small(send, receive, n, dtype, reduction);
    else
      reduce_large(static_cast<const char*>(send), static_cast<char*>(receive), n, dtype, reduction);
  });
}
void Collectives::reduce_scatter(const void* send, void* receive, std::size_t n, compute::DType dtype,
                                 Reduction reduction) {
  closing_on_error(
      [&] { scatter_reduced(static_cast<const char*>(send), static_cast<char*>(receive), n, dtype, reduction); });
}
void Collectives::reduce_to(void* x, std::size_t n, compute::DType dtype, Reduction reduction, std::int32_t root) {
  closing_on_error([&] { gather_reduced(static_cast<char*>(x), n, dtype, reduction, root); });
}
void Collectives::all_gather(const void* send, void* receive, std::size_t bytes) {
  closing_on_error([&] {
    char* const own = static_cast<char*>(receive) + rank() * bytes;
    const auto sent_to = [&](std::size_t) { return Sent{static_cast<const char*>(send), bytes}; };
    trade(sent_to, static_cast<char*>(receive), equal_parts(bytes), own != send, [](const Peer&) {});
  });
}
void Collectives::broadcast(void* x, std::size_t bytes, std::int32_t root) {
  closing_on_error([&] { spread(static_cast<char*>(x), bytes, root); });
}
void Collectives::all_to_all(const void* send, void* receive, std::size_t bytes) {
  closing_on_error([&] {
    const auto sent_to = [&](std::size_t r) { return Sent{static_cast<const char*>(send) + r * bytes, bytes}; };
    trade(sent_to, static_cast<char*>(receive), equal_parts(bytes), true, [](const Peer&) {});
  });
}
void Collectives::all_to_all_v(const void* send, const std::vector<std::size_t>& send_bytes, void* receive,
                               const std::vector<std::size_t>& receive_bytes) {
  const std::vector<std::size_t> send_begins = begins_of(send_bytes), receive_begins = begins_of(receive_bytes);
  const std::vector<std::uint64_t> expected(receive_bytes.begin(), receive_bytes.end());
  const std::size_t turn = small_turn_;
  closing_on_error([&] {
    for (const auto& peer : peers_) {
      peer->result.emplace(peer->sending(small_slot, &expected[peer->index], sizeof expected[0]));
      peer->result->send(0, sizeof expected[0], turn % 2 * small_message_bytes);
    }
    ++small_turn_;
    const auto agreed = [&](Peer& peer) {
      peer.small.wait();
      std::uint64_t wanted = 0;
      std::memcpy(&wanted, peer.small_memory.get() + turn % 2 * small_message_bytes, sizeof wanted);
      if (wanted != send_bytes[peer.index])
        throw Error(ASSAY_COMM_ERROR, mesh_.name_of(peer.rank()) + " expects " + std::to_string(wanted) + " bytes of " +
                                          mesh_.name_of(mesh_.rank()) + ", which sends " +
                                          std::to_string(send_bytes[peer.index]));
    };
    trade(
        [&](std::size_t r) {
          return Sent{static_cast<const char*>(send) + send_begins[r], send_bytes[r]};
        },
        static_cast<char*>(receive),
        [&](std::size_t r) {
          return Part{receive_begins[r], receive_bytes[r]};
        },
        true, agreed);
  });
}
void Collectives::send_receive(const void* send, std::size_t send_bytes, std::int32_t to, void* receive,
                               std::size_t receive_bytes, std::int32_t from) {
  closing_on_error([&] {
    if (to == mesh_.rank() && send_bytes > 0) std::memcpy(receive, send, send_bytes);
    Peer* const source = peer_of(from);
    Peer* const target = peer_of(to);
    if (source) source->expect(receive, receive_bytes);
    if (target) {
      target->share.emplace(target->sending(caller_slot, send, send_bytes));
      target->ready.wait();
      send_in_pieces(*target->share, 0, send_bytes);
    }
    if (source) await_pieces(*source, receive_bytes);
  });
}
void Collectives::send(const void* data, std::size_t bytes, std::int32_t to) {
  closing_on_error([&] {
    Peer& target = *peer_of(to);
    target.share.emplace(target.sending(caller_slot, data, bytes));
    target.ready.wait();
    send_in_pieces(*target.share, 0, bytes);
  });
}
void Collectives::receive(void* data, std::size_t bytes, std::int32_t from) {
  closing_on_error([&] {
    Peer& source = *peer_of(from);
    source.expect(data, bytes);
    await_pieces(source, bytes);
  });
}
void Collectives::barrier() {
  closing_on_error([&] {
    send_small(nullptr, 0);
    for (const auto& peer : peers_) peer->small.wait();
    ++small_turn_;
  });
}

void Collectives::send_small(const void* data, std::size_t bytes) {
  for (const auto& peer : peers_) {
    peer->share.emplace(peer->sending(small_slot, data, bytes));
    peer->share->send(0, bytes, small_turn_ % 2 * small_message_bytes);
  }
}

void Collectives::reduce_small(const void* send, void* receive, std::size_t n, compute::DType dtype,
                               Reduction reduction) {
  send_small(send, n * size_of(dtype));
  sources_[rank()] = send;
  for (const auto& peer : peers_) {
    peer->small.wait();
    peer->share->finish();  // `receive` may be what was sent
    sources_[peer->index] = peer->small_memory.get() + small_turn_ % 2 * small_message_bytes;
  }
  ++small_turn_;
  reduce(receive, sources_.data(), sources_.size(), n, dtype, reduction);
}

void Collectives::combine(void* target, const char* mine, std::size_t s, std::size_t bytes, compute::DType dtype,
                          Reduction reduction) {
  for (const auto& peer : peers_) {
    peer->staged.wait();
    sources_[peer->index] = peer->stage_memory.get() + s % window * segment_bytes;
  }
  sources_[rank()] = mine;
  reduce(target, sources_.data(), sources_.size(), bytes / size_of(dtype), dtype, reduction);
}

void Collectives::reduce_large(const char* send, char* receive, std::size_t n, compute::DType dtype,
                               Reduction reduction) {
  const std::size_t bytes = n * size_of(dtype);
  const Part own = part_of(bytes, size(), rank());
  const auto part = [&](const Peer& peer) { return part_of(bytes, size(), peer.index); };
  for (const auto& peer : peers_) {
    peer->expect(receive + part(*peer).begin, part(*peer).bytes);
    peer->share.emplace(peer->sending(stage_slot, send + part(*peer).begin, part(*peer).bytes));
    peer->result.emplace(peer->sending(caller_slot, receive + own.begin, own.bytes));
  }
  for (std::size_t s = 0; s < window; ++s)
    for (const auto& peer : peers_) peer->send_segment(s, part(*peer).bytes);

  // An owner's result comes back while its next segment is combined. The first part is the longest.
  constexpr std::size_t lag = 1;
  const std::size_t segments = count_of(part_of(bytes, size(), 0).bytes, segment_bytes);
  for (std::size_t s = 0; s < segments + lag; ++s) {
    const std::size_t begin = s * segment_bytes;
    if (begin < own.bytes) {
      const std::size_t length = std::min(segment_bytes, own.bytes - begin);
      combine(receive + own.begin + begin, send + own.begin + begin, s, length, dtype, reduction);
      for (const auto& peer : peers_) {
        if (s == 0) peer->ready.wait();
        peer->result->send(begin, length, begin);
      }
    }
    if (s < lag) continue;
    for (const auto& peer : peers_) {
      if ((s - lag) * segment_bytes >= part(*peer).bytes) continue;
      peer->incoming->wait();
      peer->send_segment(s - lag + window, part(*peer).bytes);
    }
  }
  if (own.bytes == 0)
    for (const auto& peer : peers_) peer->ready.wait();
}

void Collectives::scatter_reduced(const char* send, char* receive, std::size_t n, compute::DType dtype,
                                  Reduction reduction) {
  const std::size_t bytes = n * size_of(dtype);
  const std::size_t segments = count_of(bytes, segment_bytes);
  const auto length = [&](std::size_t s) { return std::min(segment_bytes, bytes - s * segment_bytes); };
  for (const auto& peer : peers_) peer->share.emplace(peer->sending(stage_slot, send + peer->index * bytes, bytes));
  for (std::size_t s = 0; s < window; ++s)
    for (const auto& peer : peers_) peer->send_segment(s, bytes);
  for (std::size_t s = 0; s < segments; ++s) {
    const std::size_t begin = s * segment_bytes;
    combine(receive + begin, send + rank() * bytes + begin, s, length(s), dtype, reduction);
    for (const auto& peer : peers_) peer->say_consumed.send(0, 0, 0);
    for (const auto& peer : peers_) {
      peer->consumed.wait();
      peer->send_segment(s + window, bytes);
    }
  }
}

// The others send all they have to the root, as scatter_reduced() does with its parts.
void Collectives::gather_reduced(char* x, std::size_t n, compute::DType dtype, Reduction reduction, std::int32_t root) {
  const std::size_t bytes = n * size_of(dtype);
  const std::size_t segments = count_of(bytes, segment_bytes);
  const auto length = [&](std::size_t s) { return std::min(segment_bytes, bytes - s * segment_bytes); };
  if (Peer* const target = peer_of(root)) {
    target->share.emplace(target->sending(stage_slot, x, bytes));
    for (std::size_t s = 0; s < window; ++s) target->send_segment(s, bytes);
    for (std::size_t s = 0; s < segments; ++s) {
      target->consumed.wait();
      target->send_segment(s + window, bytes);
    }
    return;
  }
  for (std::size_t s = 0; s < segments; ++s) {
    char* const at = x + s * segment_bytes;
    combine(at, at, s, length(s), dtype, reduction);
    for (const auto& peer : peers_) peer->say_consumed.send(0, 0, 0);
  }
}

void Collectives::send_in_pieces(Outgoing& to, std::size_t begin, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += piece_bytes)
    to.send(begin + done, std::min(piece_bytes, bytes - done), done);
}

void Collectives::await_pieces(Peer& from, std::size_t bytes) {
  for (std::size_t k = 0; k < count_of(bytes, piece_bytes); ++k) from.incoming->wait();
}

template <class SentTo, class ReceivedFrom, class Agreed>
void Collectives::trade(SentTo&& sent_to, char* receive, ReceivedFrom&& received_from, bool copies_own,
                        Agreed&& agreed) {
  for (const auto& peer : peers_) {
    const Part part = received_from(peer->index);
    peer->expect(receive + part.begin, part.bytes);
  }
  if (const Part own = received_from(rank()); copies_own && own.bytes > 0)
    std::memcpy(receive + own.begin, sent_to(rank()).data, own.bytes);
  for (const auto& peer : peers_) {
    const Sent part = sent_to(peer->index);
    peer->share.emplace(peer->sending(caller_slot, part.data, part.bytes));
    peer->ready.wait();
    agreed(*peer);
    send_in_pieces(*peer->share, 0, part.bytes);
  }
  for (const auto& peer : peers_) await_pieces(*peer, received_from(peer->index).bytes);
}

// Each of the others gets its own part from the root and passes it on, so that the root sends everything once.
void Collectives::spread(char* x, std::size_t bytes, std::int32_t root_rank) {
  const auto root = static_cast<std::size_t>(root_rank);
  const auto part = [&](std::size_t r) { return part_of(bytes, size() - 1, r < root ? r : r - 1); };
  const auto others = [&](auto&& call) {
    for (const auto& peer : peers_)
      if (peer->index != root) call(*peer);
  };
  if (rank() == root) {
    others([&](Peer& peer) {
      peer.share.emplace(peer.sending(caller_slot, x + part(peer.index).begin, part(peer.index).bytes));
      peer.ready.wait();
    });
    for (std::size_t begin = 0; begin < part(root == 0 ? 1 : 0).bytes; begin += piece_bytes)
      others([&](Peer& peer) {
        const std::size_t end = part(peer.index).bytes;
        if (begin < end) peer.share->send(begin, std::min(piece_bytes, end - begin), begin);
      });
    return;
  }
  const Part own = part(rank());
  Peer* source = nullptr;
  for (const auto& peer : peers_) {
    const Part expected = peer->index == root ? own : part(peer->index);
    peer->expect(x + expected.begin, expected.bytes);
    if (peer->index == root) source = peer.get();
  }
  others([&](Peer& peer) {
    peer.share.emplace(peer.sending(caller_slot, x + own.begin, own.bytes));
    peer.ready.wait();
  });
  for (std::size_t begin = 0; begin < own.bytes; begin += piece_bytes) {
    source->incoming->wait();
    others([&](Peer& peer) { peer.share->send(begin, std::min(piece_bytes, own.bytes - begin), begin); });
  }
  others([&](Peer& peer) { await_pieces(peer, part(peer.index).bytes); });
}

}  // namespace assay::comm::gloo_backend
