#include "profile/memory_snapshot.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/memory_kinds.hpp"
#include "profile/pickle.hpp"

namespace assay::host::profile {
namespace {

std::int64_t to_us(MemoryHistory::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// A plugin's label may be any bytes; Python reads no text that is not UTF-8.
std::string valid_utf8(std::string_view text) {
  const nlohmann::json wrapped = std::string(text);
  return nlohmann::json::parse(wrapped.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

bool alive(const PlannedBuffer& buffer, std::int32_t moment) { return buffer.first <= moment && moment <= buffer.last; }

std::set<std::int32_t> moments_of(const std::vector<PlannedBuffer>& plan) {
  std::set<std::int32_t> moments;
  for (const PlannedBuffer& b : plan) moments.insert(b.first);  // only where a life begins can more be alive
  return moments;
}

std::int32_t fullest_moment(const std::vector<PlannedBuffer>& plan) {
  std::int32_t fullest = 0;
  std::uint64_t most = 0;
  for (const std::int32_t moment : moments_of(plan)) {
    std::uint64_t sum = 0;
    for (const PlannedBuffer& b : plan) sum += alive(b, moment) ? b.bytes : 0;
    if (sum > most) most = sum, fullest = moment;
  }
  return fullest;
}

// What is alive at `moment`, by address.
std::vector<const PlannedBuffer*> layout_at(const std::vector<PlannedBuffer>& plan, std::int32_t moment) {
  std::vector<const PlannedBuffer*> layout;
  for (const PlannedBuffer& b : plan)
    if (alive(b, moment)) layout.push_back(&b);
  std::sort(layout.begin(), layout.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  return layout;
}

// Two buffers of one moment at one address would tear the segment's tiling: such a plan is not shown.
bool is_sound(const std::vector<PlannedBuffer>& plan) {
  for (const std::int32_t moment : moments_of(plan)) {
    std::uint64_t end = 0;
    for (const PlannedBuffer* b : layout_at(plan, moment)) {
      if (b->offset < end) return false;
      end = b->offset + b->bytes;
    }
  }
  return true;
}

}  // namespace

void MemoryHistory::allocated(std::uint64_t address, std::uint64_t bytes, std::size_t kind, std::string_view label,
                              Clock::time_point now) {
  if (bytes == 0) return;
  const std::string text = valid_utf8(label);
  events_.push_back({Action::alloc, address, bytes, to_us(now), kind, text});
  held_[address] = {bytes, kind, text, {}};
}

void MemoryHistory::released(std::uint64_t address, Clock::time_point now) {
  const auto found = held_.find(address);
  if (found == held_.end()) return;
  events_.push_back(
      {Action::release, address, found->second.bytes, to_us(now), found->second.kind, std::move(found->second.label)});
  held_.erase(found);
}

void MemoryHistory::refused(std::uint64_t bytes, std::uint64_t free_bytes, std::size_t kind, std::string_view label,
                            Clock::time_point now) {
  events_.push_back({Action::oom, free_bytes, bytes, to_us(now), kind, valid_utf8(label)});
}

bool MemoryHistory::planned(std::uint64_t arena, PlannedBuffer buffer) {
  const auto found = held_.find(arena);
  if (found == held_.end() || buffer.first > buffer.last || buffer.offset > found->second.bytes ||
      buffer.bytes > found->second.bytes - buffer.offset)
    return false;
  if (buffer.bytes == 0) return true;
  buffer.name = valid_utf8(buffer.name);
  found->second.plan.push_back(std::move(buffer));
  return true;
}

class MemoryHistory::Pickler {
 public:
  Pickler(const MemoryHistory& history, std::int32_t device) : history_(history), device_(device) {
    for (const auto& [address, arena] : history.held_)
      if (!arena.plan.empty() && is_sound(arena.plan)) planned_.emplace(address, &arena);
  }

  std::string run() {
    out_.begin_dict();
    out_.key("segments");
    out_.begin_list();
    for (const auto& [address, arena] : history_.held_) segment(address, arena);
    out_.end_list();
    out_.key("device_traces");
    out_.begin_list();
    // One list for each device; those before the case's own have none of its memory.
    for (std::int32_t d = 0; d < device_; ++d) out_.begin_list(), out_.end_list();
    out_.begin_list();
    trace();
    out_.end_list();
    out_.end_list();
    out_.key("allocator_settings");
    out_.begin_dict();
    out_.end_dict();
    out_.end_dict();
    return out_.finish();
  }

 private:
  void frame(const std::string& name, const std::string& file, std::int64_t line) {
    out_.begin_dict();
    out_.entry("name", name);
    out_.entry("filename", file);
    out_.entry("line", line);
    out_.end_dict();
  }

  // A stack of names: the tensor, and the arena it lies in. `line` is the moment at which the tensor's life begins.
  void frames(const std::string& label, std::size_t kind, const PlannedBuffer* buffer = nullptr) {
    out_.key("frames");
    out_.begin_list();
    if (buffer) frame(buffer->name, label, buffer->first);
    frame(label, memory_kind_name(kind), 0);
    out_.end_list();
  }

  void block(std::uint64_t address, std::uint64_t bytes, const Arena* owner, const PlannedBuffer* buffer) {
    out_.begin_dict();
    out_.entry("address", static_cast<std::int64_t>(address));
    out_.entry("size", static_cast<std::int64_t>(bytes));
    out_.entry("requested_size", static_cast<std::int64_t>(owner ? bytes : 0));
    out_.entry("state", owner ? "active_allocated" : "inactive");
    if (owner) {
      frames(owner->label, owner->kind, buffer);
    } else {
      out_.key("frames");
      out_.begin_list();
      out_.end_list();
    }
    out_.end_dict();
  }

  void segment(std::uint64_t address, const Arena& arena) {
    const bool planned = planned_.count(address) > 0;
    std::vector<const PlannedBuffer*> layout;
    if (planned) layout = layout_at(arena.plan, fullest_moment(arena.plan));
    std::uint64_t in_use = planned ? 0 : arena.bytes;
    for (const PlannedBuffer* b : layout) in_use += b->bytes;
    out_.begin_dict();
    out_.entry("device", device_);
    out_.entry("address", static_cast<std::int64_t>(address));
    out_.entry("total_size", static_cast<std::int64_t>(arena.bytes));
    for (const char* key : {"allocated_size", "active_size", "requested_size"})
      out_.entry(key, static_cast<std::int64_t>(in_use));
    out_.entry("stream", 0);
    out_.entry("segment_type", "large");
    out_.key("segment_pool_id");
    out_.integer_pair(0, 0);
    out_.key("is_expandable");
    out_.boolean(false);
    frames(arena.label, arena.kind);
    out_.key("blocks");
    out_.begin_list();
    if (!planned) block(address, arena.bytes, &arena, nullptr);
    if (planned) tile(address, arena, layout);
    out_.end_list();
    out_.end_dict();
  }

  void tile(std::uint64_t address, const Arena& arena, const std::vector<const PlannedBuffer*>& layout) {
    std::uint64_t at = 0;
    for (const PlannedBuffer* b : layout) {
      if (b->offset > at) block(address + at, b->offset - at, nullptr, nullptr);
      block(address + b->offset, b->bytes, &arena, b);
      at = b->offset + b->bytes;
    }
    if (at < arena.bytes) block(address + at, arena.bytes - at, nullptr, nullptr);
  }

  void event(const char* action, std::uint64_t address, std::uint64_t bytes, std::int64_t time_us,
             const std::string& label, std::size_t kind, const PlannedBuffer* buffer = nullptr,
             const char* address_key = "addr") {
    out_.begin_dict();
    out_.entry("action", action);
    out_.entry(address_key, static_cast<std::int64_t>(address));
    out_.entry("size", static_cast<std::int64_t>(bytes));
    out_.entry("stream", 0);
    out_.entry("time_us", time_us);
    frames(label, kind, buffer);
    out_.end_dict();
    last_time_us_ = std::max(last_time_us_, time_us);
  }

  // Whether the block that the event takes is still held at the end, and shown by its plan.
  bool is_shown_by_plan(const Event& e) const {
    return planned_.count(e.address) > 0 && last_taken_.at(e.address) == &e;
  }

  void trace() {
    for (const Event& e : history_.events_)
      if (e.action == Action::alloc) last_taken_[e.address] = &e;
    for (const Event& e : history_.events_) {
      const auto say = [&](const char* action) { event(action, e.address, e.bytes, e.time_us, e.label, e.kind); };
      switch (e.action) {
        case Action::alloc:
          say("segment_alloc");
          if (!is_shown_by_plan(e)) say("alloc");
          break;
        case Action::release: say("free_requested"), say("free_completed"), say("segment_free"); break;
        case Action::oom: event("oom", e.address, e.bytes, e.time_us, e.label, e.kind, nullptr, "device_free"); break;
      }
    }
    for (const auto& [address, arena] : planned_) planned_steps(address, *arena);
  }

  void planned_steps(std::uint64_t address, const Arena& arena) {
    const std::set<std::int32_t> moments = moments_of(arena.plan);
    const std::int32_t first = *moments.begin(), fullest = fullest_moment(arena.plan);
    std::int32_t last = first;
    for (const PlannedBuffer& b : arena.plan) last = std::max(last, b.last);
    std::vector<bool> is_taken(arena.plan.size(), false);
    const auto set = [&](std::size_t i, bool taken) {
      if (is_taken[i] == taken) return;
      const PlannedBuffer& b = arena.plan[i];
      const auto say = [&](const char* action) {
        event(action, address + b.offset, b.bytes, last_time_us_ + 1, arena.label, arena.kind, &b);
      };
      if (taken) say("alloc");
      if (!taken) say("free_requested"), say("free_completed");
      is_taken[i] = taken;
    };
    const auto step = [&](std::int32_t until) {
      for (const std::int32_t moment : moments) {
        if (moment > until) return;
        for (std::size_t i = 0; i < arena.plan.size(); ++i)
          if (!alive(arena.plan[i], moment)) set(i, false);
        for (std::size_t i = 0; i < arena.plan.size(); ++i)
          if (alive(arena.plan[i], moment)) set(i, true);
      }
    };
    step(last);
    // Between two steps what is alive from the first moment to the last stays where it is.
    for (std::size_t i = 0; i < arena.plan.size(); ++i)
      if (arena.plan[i].first > first || arena.plan[i].last < last) set(i, false);
    step(fullest);
  }

  const MemoryHistory& history_;
  std::int32_t device_;
  PickleWriter out_;
  std::map<std::uint64_t, const Arena*> planned_;
  std::map<std::uint64_t, const Event*> last_taken_;
  std::int64_t last_time_us_ = 0;
};

std::string MemoryHistory::snapshot(std::int32_t device) const { return Pickler(*this, device).run(); }

}  // namespace assay::host::profile
