// A GPU and an NCCL of plain C++: streams that run as soon as what they wait for is there, on their own clock, and
// two communicators that answer as the test says. It holds the session to NCCL's rules: no call before the last one is
// through, none beside another except the root's abort, none after the end, and each communicator for what it is for.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "library.hpp"

namespace assay::comm::nccl {

// What the test sees and steers. Locked by itself; the members marked so are set before the session is made.
class World {
 public:
  using Kind = Answer::Kind;

  // ---- steering ----
  void add_kernel(Stream stream, double ms) {
    const std::lock_guard lock(mutex_);
    streams_[stream].work.push_back({Op::Type::run, nullptr, 0, ms});
    advance();
  }
  void hold_streams(bool held) {  // nothing runs on the compute stream
    const std::lock_guard lock(mutex_);
    compute_held_ = held;
    advance();
  }
  void hold_collectives(bool held) {  // those of the other ranks do not come
    const std::lock_guard lock(mutex_);
    collectives_held_ = held;
    advance();
  }
  void set_async_error(const std::string& text) {
    const std::lock_guard lock(mutex_);
    async_error_ = text;
  }
  void set_cuda_error(bool broken) { cuda_broken_ = broken; }

  // ---- a graph: what the streams are asked for between the two is replayed, and does not run ----
  void begin_capture() {
    const std::lock_guard lock(mutex_);
    capture_ = ++captures_;
    capturing_streams_ = {compute()};
    captured_.clear();
  }
  void end_capture() {
    const std::lock_guard lock(mutex_);
    check(unjoined_ == 0, "a capture ended while a stream had not joined it");
    capture_ = 0;
    capturing_streams_.clear();
    graph_ = captured_;
  }
  void replay() {  // of the last one
    const std::lock_guard lock(mutex_);
    for (const double ms : graph_) streams_[compute()].work.push_back({Op::Type::collective, nullptr, 0, ms});
    advance();
  }
  void destroy_graphs() {
    std::vector<std::shared_ptr<void>> held;
    const std::lock_guard lock(mutex_);
    held.swap(held_by_graphs_);
  }

  // ---- set before ----
  double collective_ms = 5;
  // Until NCCL is ready again; -1: never. A child that is not ready after a call is one with NCCL_COMM_BLOCKING=0.
  int polls_to_start = 3, polls_to_split = 3, polls_to_enqueue = 0, polls_to_finalize = 2;
  std::string start_error, split_error;  // start() and split() fail with them
  bool registers = true, has_windows = true;
  std::atomic<bool> registration_hangs = false;  // until the root is aborted
  std::atomic<bool> abort_hangs = false;
  std::atomic<bool> enqueue_hangs = false;       // until the root is aborted
  std::atomic<bool> enqueue_never_ends = false;  // also then

  // ---- seen ----
  std::atomic<int> events_made = 0, events_alive = 0, streams_alive = 0, memory_alive = 0;
  std::atomic<int> started = 0, enqueued = 0, finalized = 0, destroyed = 0, registered_alive = 0;
  std::atomic<int> aborts = 0, child_aborts = 0;  // of the root, of the child
  std::atomic<int> comms_alive = 0, windows_alive = 0, shared_alive = 0;
  std::atomic<bool> library_alive = false;
  std::atomic<int> split_group = -1, split_rank = -1;
  std::vector<Collective> collectives;                   // read when the session is idle
  std::vector<std::size_t> send_counts, receive_counts;  // of the last one, whose own are gone
  bool inside_nccl() const { return inside_ > 0; }
  std::string broken_rules() {
    const std::lock_guard lock(mutex_);
    return broken_rules_;
  }

  static Stream compute() { return reinterpret_cast<Stream>(1); }

 private:
  friend class FakeLibrary;
  struct EventState {
    int recorded = 0, done = 0;
    double at = 0;
    std::uint64_t capture = 0;  // in which it was recorded last; 0: in none
    int covers = 0;             // captured collectives that are before it
  };
  struct Op {
    enum class Type { record, wait, run, collective } type;
    EventState* event;
    int generation;
    double ms;
  };
  struct StreamState {
    std::deque<Op> work;
    double now = 0;
  };

  void advance() {  // locked
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [key, stream] : streams_)
        while (!stream.work.empty() && step(key, stream)) moved = true;
    }
  }
  bool step(Stream key, StreamState& stream) {
    if (key == compute() && compute_held_) return false;
    const Op op = stream.work.front();
    switch (op.type) {
      case Op::Type::record: op.event->done = op.generation, op.event->at = stream.now; break;
      case Op::Type::wait:
        if (op.event->done < op.generation) return false;
        stream.now = std::max(stream.now, op.event->at);
        break;
      case Op::Type::collective:
        if (collectives_held_ && aborts == 0) return false;
        stream.now += op.ms;
        break;
      case Op::Type::run: stream.now += op.ms; break;
    }
    stream.work.pop_front();
    return true;
  }
  void check_locked(bool holds, const char* rule) {
    const std::lock_guard lock(mutex_);
    check(holds, rule);
  }
  void check(bool holds, const char* rule) {
    if (!holds) broken_rules_ += std::string(rule) + "; ";
  }

  std::mutex mutex_;
  std::map<Stream, StreamState> streams_;
  bool compute_held_ = false, collectives_held_ = false;
  std::string async_error_, broken_rules_;
  std::atomic<bool> cuda_broken_ = false;
  std::uint64_t capture_ = 0, captures_ = 0;  // 0: none is under way
  std::set<Stream> capturing_streams_;
  std::vector<double> captured_, graph_;  // collectives, by their times
  int unjoined_ = 0;                      // of captured collectives beside the compute stream the last one, or 0
  std::vector<std::shared_ptr<void>> held_by_graphs_;
  int polls_left_ = 0;  // until NCCL is ready; -1: never
  std::atomic<int> inside_ = 0;
  bool root_alive_ = false, child_alive_ = false, splitting_ = false;
  bool root_finalized_ = false, child_finalized_ = false;
};

class FakeLibrary final : public Library {
 public:
  explicit FakeLibrary(std::shared_ptr<World> world) : world_(std::move(world)) { world_->library_alive = true; }
  ~FakeLibrary() override { world_->library_alive = false; }

  Place place(const char* host_name) override {
    Place place;
    std::strncpy(place.host, host_name, sizeof place.host - 1);
    std::strcpy(place.bus, "0000:01:00.0");
    place.uuid[0] = 7;
    return place;
  }
  void enter_thread(bool) override {}
  Stream make_stream() override {
    ++world_->streams_alive;
    return reinterpret_cast<Stream>(2);
  }
  void destroy(Stream) noexcept override { --world_->streams_alive; }
  Event make_event(bool) override {
    ++world_->events_made, ++world_->events_alive;
    return new World::EventState;
  }
  void destroy_event(Event event) noexcept override {
    --world_->events_alive;
    delete state_of(event);
  }
  void record(Event event, Stream stream) override {
    const std::lock_guard lock(world_->mutex_);
    world_->check(world_->polls_left_ == 0, "an event recorded before NCCL had enqueued");
    state_of(event)->capture = capture_of(stream);
    if (capture_of(stream) != 0) {
      state_of(event)->covers = static_cast<int>(world_->captured_.size());
      return;
    }
    push(stream, {World::Op::Type::record, state_of(event), ++state_of(event)->recorded, 0});
  }
  void wait_for(Stream stream, Event event) override {
    const std::lock_guard lock(world_->mutex_);
    const World::EventState& state = *state_of(event);
    world_->check(state.capture == 0 || state.capture == world_->capture_, "a wait for an event of an ended capture");
    world_->check(state.capture != 0 || capture_of(stream) == 0, "a captured wait for an event outside of the capture");
    if (state.capture != 0) {
      world_->capturing_streams_.insert(stream);
      if (stream == World::compute() && state.covers >= world_->unjoined_) world_->unjoined_ = 0;
      return;
    }
    push(stream, {World::Op::Type::wait, state_of(event), state_of(event)->recorded, 0});
  }
  bool happened(Event event) override {
    if (world_->cuda_broken_) throw Error(ASSAY_DEVICE_ERROR, "an illegal memory access");
    const std::lock_guard lock(world_->mutex_);
    world_->check(state_of(event)->capture == 0, "a question for an event of a capture");
    return state_of(event)->done == state_of(event)->recorded;
  }
  bool idle(Stream stream) override {
    if (world_->cuda_broken_) throw Error(ASSAY_DEVICE_ERROR, "an illegal memory access");
    const std::lock_guard lock(world_->mutex_);
    world_->check(capture_of(stream) == 0, "a question for a stream that is being captured");
    return world_->streams_[stream].work.empty();
  }
  double elapsed_ms(Event begin, Event end) override {
    const std::lock_guard lock(world_->mutex_);
    return state_of(end)->at - state_of(begin)->at;
  }
  std::uint64_t capturing(Stream stream) override {
    const std::lock_guard lock(world_->mutex_);
    return capture_of(stream);
  }
  void keep_in_graph(Stream stream, std::shared_ptr<void> held) override {
    const std::lock_guard lock(world_->mutex_);
    world_->check(capture_of(stream) != 0, "an object kept in no graph");
    world_->held_by_graphs_.push_back(std::move(held));
  }
  void* allocate_zeroed(std::size_t, Stream) override {
    ++world_->memory_alive;
    return &word_;
  }
  void free(void*) noexcept override { --world_->memory_alive; }

  std::string version() override { return "2.28.9"; }
  Answer make_id(UniqueId& id) override {
    id.fill('i');
    return {};
  }
  Answer start(Comm& root, const UniqueId& id, std::int32_t, std::int32_t, std::int32_t) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    ++world_->started;
    world_->check(id[0] == 'i', "the id is not rank 0's");
    root = root_comm();
    world_->root_alive_ = true;
    ++world_->comms_alive;
    if (!world_->start_error.empty()) return {Answer::Kind::failed, world_->start_error};
    return begin(world_->polls_to_start);
  }
  Answer split(Comm root, std::int32_t group, std::int32_t rank, std::int32_t) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_ready(root);
    world_->check(root == root_comm(), "not the root was split");
    world_->split_group = group, world_->split_rank = rank;
    if (!world_->split_error.empty()) return {Answer::Kind::failed, world_->split_error};
    world_->child_alive_ = true;
    ++world_->comms_alive;
    world_->splitting_ = world_->polls_to_split != 0;
    return begin(world_->polls_to_split);
  }
  Comm child() override {
    const std::lock_guard lock(world_->mutex_);
    world_->check(world_->polls_left_ == 0, "the child is not there yet");
    return child_comm();
  }
  Answer state(Comm comm) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_alive(comm);
    if (!world_->async_error_.empty()) return {Answer::Kind::failed, world_->async_error_};
    if (world_->polls_left_ > 0 && --world_->polls_left_ == 0) world_->splitting_ = false;
    return {world_->polls_left_ == 0 ? Answer::Kind::done : Answer::Kind::in_progress, {}};
  }
  Answer enqueue(Comm comm, const Collective& collective, Stream stream) override {
    const Inside inside(*world_);
    while (world_->enqueue_never_ends || (world_->enqueue_hangs && world_->aborts == 0))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(world_->mutex_);
    if (world_->aborts > 0) return {Answer::Kind::failed, "unhandled system error"};
    require_child(comm);
    world_->collectives.push_back(collective);
    world_->send_counts.assign(collective.send_counts.begin(), collective.send_counts.end());
    world_->receive_counts.assign(collective.receive_counts.begin(), collective.receive_counts.end());
    ++world_->enqueued;
    if (capture_of(stream) != 0) {
      world_->captured_.push_back(world_->collective_ms);
      if (stream != World::compute()) world_->unjoined_ = static_cast<int>(world_->captured_.size());
      return begin(world_->polls_to_enqueue);
    }
    world_->check(world_->capture_ == 0, "a collective beside a capture");
    push(stream, {World::Op::Type::collective, nullptr, 0, world_->collective_ms});
    return begin(world_->polls_to_enqueue);
  }
  void* register_memory(Comm comm, void* address, std::size_t) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_child(comm);
    if (!world_->registers) return nullptr;
    ++world_->registered_alive;
    return address;
  }
  void deregister_memory(Comm comm, void*) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_child(comm);
    --world_->registered_alive;
  }
  void* allocate_shared(std::size_t bytes) override {
    ++world_->shared_alive;
    return ::operator new(bytes);
  }
  void free_shared(void* address) noexcept override {
    world_->check_locked(world_->windows_alive == 0, "memory freed that is registered");
    --world_->shared_alive;
    ::operator delete(address);
  }
  Answer register_window(Comm comm, void* address, std::size_t, void*& window) override {
    const Inside inside(*world_);
    while (world_->registration_hangs && world_->aborts == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(world_->mutex_);
    if (world_->aborts > 0) return {};
    require_child(comm);
    window = world_->has_windows ? address : nullptr;
    if (window) ++world_->windows_alive;
    return {};
  }
  void deregister_window(Comm comm, void*) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_child(comm);
    --world_->windows_alive;
  }
  Answer finalize(Comm comm) override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_ready(comm);
    require_no_graph(comm);
    ++world_->finalized;
    (comm == root_comm() ? world_->root_finalized_ : world_->child_finalized_) = true;
    return begin(comm == root_comm() ? world_->polls_to_finalize : 0);
  }
  void destroy_comm(Comm comm) noexcept override {
    const Inside inside(*world_);
    const std::lock_guard lock(world_->mutex_);
    require_ready(comm);
    world_->check(comm == root_comm() ? world_->root_finalized_ : world_->child_finalized_,
                  "destroyed before it was finalized");
    world_->check(comm == child_comm() || !world_->child_alive_, "the root destroyed before the child");
    end(comm);
    ++world_->destroyed;
  }
  void abort(Comm comm) noexcept override {
    if (comm == root_comm()) {
      abort_locked(comm);  // also while another thread is inside a call on the child
    } else {
      const Inside inside(*world_);
      abort_locked(comm);
    }
    while (world_->abort_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  // A call of NCCL: alone, or a rule is broken.
  struct Inside {
    explicit Inside(World& world) : world(world) {
      if (world.inside_++ != 0) {
        const std::lock_guard lock(world.mutex_);
        world.check(false, "two threads inside NCCL");
      }
    }
    ~Inside() { --world.inside_; }
    World& world;
  };
  static World::EventState* state_of(Event event) { return static_cast<World::EventState*>(event); }
  void push(Stream stream, const World::Op& op) {
    world_->streams_[stream].work.push_back(op);
    world_->advance();
  }
  Answer begin(int polls) {
    world_->polls_left_ = polls;
    return {polls == 0 ? Answer::Kind::done : Answer::Kind::in_progress, {}};
  }
  static Comm root_comm() { return reinterpret_cast<Comm>(3); }
  static Comm child_comm() { return reinterpret_cast<Comm>(4); }
  bool& alive(Comm comm) { return comm == root_comm() ? world_->root_alive_ : world_->child_alive_; }
  void require_alive(Comm comm) {
    world_->check(comm == root_comm() || comm == child_comm(), "a call on no communicator");
    world_->check(alive(comm), "a call after the end of the communicator");
  }
  void require_ready(Comm comm) {
    require_alive(comm);
    world_->check(world_->polls_left_ == 0, "a call before the last one was through");
  }
  void require_child(Comm comm) {
    require_ready(comm);
    world_->check(comm == child_comm(), "a call on the root that belongs to the child");
  }
  // NCCL would wait for its end.
  void require_no_graph(Comm comm) {
    world_->check(comm != child_comm() || world_->held_by_graphs_.empty(), "the end of the child before a graph's");
  }
  std::uint64_t capture_of(Stream stream) const {
    return world_->capturing_streams_.contains(stream) ? world_->capture_ : 0;
  }
  void end(Comm comm) {
    alive(comm) = false;
    --world_->comms_alive;
  }
  void abort_locked(Comm comm) {
    const std::lock_guard lock(world_->mutex_);
    require_alive(comm);
    if (comm == child_comm()) {
      world_->check(!world_->root_alive_, "the child aborted before the root");
      require_no_graph(comm);
      world_->windows_alive = 0;
    }
    // A split that was under way ends with the root.
    if (comm == root_comm() && world_->splitting_) end(child_comm());
    end(comm);
    world_->polls_left_ = 0;
    ++(comm == root_comm() ? world_->aborts : world_->child_aborts);
    world_->advance();
  }

  const std::shared_ptr<World> world_;
  float word_ = 0;
};

}  // namespace assay::comm::nccl
