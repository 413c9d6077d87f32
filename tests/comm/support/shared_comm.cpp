#include "shared_comm.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace assay::test {
namespace {

constexpr std::size_t arena_bytes = 16 << 20;

struct EntryHead {
  std::size_t key_bytes, value_bytes;
};

std::string text(assay_str s) { return std::string(s.data, s.size); }

}  // namespace

// Entries one behind the other, the newest last.
struct SharedComm::Arena {
  pthread_mutex_t mutex;
  std::atomic<std::int32_t> aborted;
  std::size_t used;
  char bytes[1];

  class Lock {
   public:
    explicit Lock(Arena& a) : arena_(a) { pthread_mutex_lock(&arena_.mutex); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { pthread_mutex_unlock(&arena_.mutex); }

   private:
    Arena& arena_;
  };
};

SharedComm::SharedComm(std::int32_t ranks, std::int64_t timeout_ms) : views_(static_cast<std::size_t>(ranks)) {
  void* memory = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  arena_ = new (memory) Arena{};
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&arena_->mutex, &shared);
  pthread_mutexattr_destroy(&shared);
  for (std::int32_t r = 0; r < ranks; ++r) {
    View& v = views_[static_cast<std::size_t>(r)];
    v.owner = this;
    assay_comm& t = v.table;
    t.struct_size = sizeof(assay_comm);
    t.impl = &v;
    t.rank = t.local_rank = r;
    t.rank_count = t.local_rank_count = ranks;
    t.host_name = "testhost";
    t.address = "127.0.0.1";
    t.library_folder = "";
    t.timeout_ms = timeout_ms;
    t.set = set, t.get = get, t.add = add, t.exchange = exchange, t.aborted = aborted;
    t.begin_wait = t.end_wait = [](const assay_comm*) noexcept {};
  }
}

SharedComm::~SharedComm() { munmap(arena_, arena_bytes); }

void SharedComm::set_aborted() { arena_->aborted.store(1); }

void SharedComm::put(const std::string& key, const void* data, std::size_t bytes) {
  const EntryHead head{key.size(), bytes};
  if (sizeof(Arena) + arena_->used + sizeof head + key.size() + bytes > arena_bytes)
    throw std::runtime_error("SharedComm is full");
  char* at = arena_->bytes + arena_->used;
  std::memcpy(at, &head, sizeof head);
  std::memcpy(at + sizeof head, key.data(), key.size());
  if (bytes > 0) std::memcpy(at + sizeof head + key.size(), data, bytes);
  arena_->used += sizeof head + key.size() + bytes;
}

bool SharedComm::find(const std::string& key, std::vector<char>& value) {
  bool found = false;
  EntryHead head;
  for (std::size_t at = 0; at < arena_->used; at += sizeof head + head.key_bytes + head.value_bytes) {
    std::memcpy(&head, arena_->bytes + at, sizeof head);
    const char* name = arena_->bytes + at + sizeof head;
    if (std::string_view(name, head.key_bytes) != key) continue;
    value.assign(name + head.key_bytes, name + head.key_bytes + head.value_bytes);
    found = true;
  }
  return found;
}

bool SharedComm::await(const std::string& key, std::int64_t timeout_ms, std::vector<char>& value) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    {
      const Arena::Lock lock(*arena_);
      if (find(key, value)) return true;
    }
    if (arena_->aborted.load() || std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

assay_status SharedComm::set(const assay_comm* c, assay_str key, const void* data, std::size_t bytes) noexcept {
  const Arena::Lock lock(*view(c).owner->arena_);
  view(c).owner->put("value/" + text(key), data, bytes);
  return ASSAY_OK;
}

assay_status SharedComm::get(const assay_comm* c, assay_str key, std::int64_t timeout_ms, void* data,
                             std::size_t capacity, std::size_t* bytes) noexcept {
  std::vector<char> value;
  if (!view(c).owner->await("value/" + text(key), timeout_ms, value)) {
    view(c).message = "no value for key " + text(key);
    return ASSAY_COMM_ERROR;
  }
  *bytes = value.size();
  if (!value.empty()) std::memcpy(data, value.data(), std::min(value.size(), capacity));
  return ASSAY_OK;
}

assay_status SharedComm::add(const assay_comm* c, assay_str key, std::int64_t delta, std::int64_t* value) noexcept {
  SharedComm& owner = *view(c).owner;
  const Arena::Lock lock(*owner.arena_);
  std::vector<char> before;
  std::int64_t sum = delta;
  if (owner.find("counter/" + text(key), before)) {
    std::int64_t old = 0;
    std::memcpy(&old, before.data(), sizeof old);
    sum += old;
  }
  owner.put("counter/" + text(key), &sum, sizeof sum);
  *value = sum;
  return ASSAY_OK;
}

assay_status SharedComm::exchange(const assay_comm* c, assay_str name, std::int64_t timeout_ms, const void* mine,
                                  std::size_t bytes, void* all) noexcept {
  SharedComm& owner = *view(c).owner;
  const std::string prefix = "exchange/" + text(name) + "/";
  {
    const Arena::Lock lock(*owner.arena_);
    owner.put(prefix + std::to_string(c->rank), mine, bytes);
  }
  std::vector<char> value;
  for (std::int32_t r = 0; r < c->rank_count; ++r) {
    if (!owner.await(prefix + std::to_string(r), timeout_ms, value)) {
      view(c).message = "rank " + std::to_string(r) + " did not come to " + text(name);
      return ASSAY_COMM_ERROR;
    }
    if (bytes > 0) std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(r) * bytes, value.data(), bytes);
  }
  return ASSAY_OK;
}

std::int32_t SharedComm::aborted(const assay_comm* c) noexcept { return view(c).owner->arena_->aborted.load(); }

}  // namespace assay::test
