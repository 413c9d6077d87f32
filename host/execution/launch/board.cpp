#include "launch/board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "launch/launch_error.hpp"
#include "launch/log_tail.hpp"

namespace assay::host::launch {
namespace {

constexpr std::size_t text_bytes = 512;
constexpr std::uint64_t board_magic = 0x0005'6472'616f'6231;  // names layout 5
constexpr std::size_t named_phases = 32, name_words = 7;

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free,
              "a lock in shared memory would stay locked when its holder is killed");

// A text under a sequence lock, which is odd while the text is being written.
template <std::size_t bytes>
struct SharedText {
  static constexpr std::size_t word_count = bytes / sizeof(std::uint64_t);
  Word sequence, size;
  std::array<Word, word_count> words;

  void write(std::string_view text) noexcept {
    const std::size_t cut = std::min(text.size(), bytes);
    std::array<std::uint64_t, word_count> copy{};
    std::memcpy(copy.data(), text.data(), cut);
    const std::uint64_t before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < word_count; ++i) words[i].store(copy[i], std::memory_order_relaxed);
    size.store(cut, std::memory_order_relaxed);
    sequence.store(before + 2, std::memory_order_release);
  }

  std::string read() const {
    std::array<std::uint64_t, word_count> copy{};
    std::size_t length = 0;
    // Bounded: a worker that died in the middle of writing leaves the sequence odd for ever. What is there then is
    // still worth showing.
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::uint64_t before = sequence.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < word_count; ++i) copy[i] = words[i].load(std::memory_order_relaxed);
      length = std::min<std::size_t>(size.load(std::memory_order_relaxed), bytes);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && sequence.load(std::memory_order_relaxed) == before) break;
    }
    std::string text(length, '\0');
    std::memcpy(text.data(), copy.data(), length);
    return printable_utf8(text);
  }
};

}  // namespace

struct ProgressBoard::Layout {
  std::uint64_t magic;
  std::atomic<std::int32_t> stage;
  std::atomic<std::int32_t> phase;
  std::atomic<std::int32_t> waits;  // how many are open
  Word step, total_steps, heartbeat, last_beat_ns;
  std::array<Word, memory_kind_count> current_bytes, peak_bytes;
  // Written once each, before the phase is the board's.
  std::array<std::array<Word, name_words>, named_phases> phase_names;
  SharedText<text_bytes> last_allocation;
  SharedText<name_words * sizeof(std::uint64_t)> part;
};

ProgressBoard::ProgressBoard(Fd fd, Layout* shared) noexcept : fd_(std::move(fd)), shared_(shared) {}

ProgressBoard ProgressBoard::create() {
  Fd fd(memfd_create("assay-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw LaunchError::from_errno("cannot create shared memory for the progress board (memfd_create)");
  if (ftruncate(fd.get(), sizeof(Layout)) != 0)
    throw LaunchError::from_errno(fmt::format("cannot give the progress board its {} bytes", sizeof(Layout)));
  // A worker that cut the file short would otherwise kill its parent by SIGBUS.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw LaunchError::from_errno("cannot seal the progress board's size");
  void* at = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) throw LaunchError::from_errno("cannot map the progress board");
  auto* shared = new (at) Layout{};
  shared->phase.store(-1, std::memory_order_relaxed);
  shared->magic = board_magic;
  return ProgressBoard(std::move(fd), shared);
}

ProgressBoard ProgressBoard::attach(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(sizeof(Layout)))
    throw LaunchError(
        fmt::format("descriptor {} is not a progress board of {} bytes; a worker is started by the host, "
                    "not by hand (use 'assay run --in-process' to debug)",
                    fd, sizeof(Layout)));
  void* at = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw LaunchError::from_errno("cannot map the progress board");
  auto* shared = std::launder(static_cast<Layout*>(at));
  ProgressBoard board(Fd(), shared);
  if (shared->magic != board_magic)
    throw LaunchError(
        fmt::format("descriptor {} holds no progress board of this build; host and worker must be the same "
                    "executable",
                    fd));
  return board;
}

ProgressBoard::ProgressBoard(ProgressBoard&& other) noexcept
    : fd_(std::move(other.fd_)), shared_(std::exchange(other.shared_, nullptr)) {}

ProgressBoard& ProgressBoard::operator=(ProgressBoard&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    shared_ = std::exchange(other.shared_, nullptr);
  }
  return *this;
}

ProgressBoard::~ProgressBoard() { unmap(); }

void ProgressBoard::unmap() noexcept {
  if (shared_) munmap(shared_, sizeof(Layout));
  shared_ = nullptr;
}

void ProgressBoard::enter(Stage stage, std::uint64_t total_steps) noexcept {
  shared_->phase.store(-1, std::memory_order_relaxed);
  shared_->part.write("");
  shared_->step.store(0, std::memory_order_relaxed);
  shared_->total_steps.store(total_steps, std::memory_order_relaxed);
  shared_->stage.store(static_cast<std::int32_t>(stage), std::memory_order_release);
  beat();
}

void ProgressBoard::set_step(std::uint64_t step) noexcept {
  shared_->step.store(step, std::memory_order_release);
  beat();
}

void ProgressBoard::set_phase(std::int32_t phase) noexcept {
  shared_->phase.store(phase, std::memory_order_release);
  beat();
}

void ProgressBoard::set_phase_name(std::int32_t phase, std::string_view name) noexcept {
  if (phase < 0 || static_cast<std::size_t>(phase) >= named_phases) return;
  std::array<std::uint64_t, name_words> words{};
  std::memcpy(words.data(), name.data(), std::min(name.size(), sizeof words));
  for (std::size_t i = 0; i < name_words; ++i)
    shared_->phase_names[static_cast<std::size_t>(phase)][i].store(words[i], std::memory_order_relaxed);
}

void ProgressBoard::set_part(std::string_view name) noexcept {
  shared_->step.store(0, std::memory_order_relaxed);
  shared_->total_steps.store(0, std::memory_order_relaxed);
  shared_->part.write(name);
  beat();
}

void ProgressBoard::begin_wait() noexcept { shared_->waits.fetch_add(1, std::memory_order_relaxed); }
void ProgressBoard::end_wait() noexcept { shared_->waits.fetch_sub(1, std::memory_order_relaxed); }

void ProgressBoard::beat() noexcept {
  // The steady clock is CLOCK_MONOTONIC, the same in every process of the machine; reading it takes no system call.
  shared_->last_beat_ns.store(
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)),
      std::memory_order_relaxed);
  // One writer: a load and a store do, and cost less than a locked increment.
  shared_->heartbeat.store(shared_->heartbeat.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void ProgressBoard::set_memory(std::size_t kind, std::uint64_t current_bytes, std::uint64_t peak_bytes) noexcept {
  if (kind >= memory_kind_count) return;
  shared_->current_bytes[kind].store(current_bytes, std::memory_order_relaxed);
  shared_->peak_bytes[kind].store(peak_bytes, std::memory_order_release);
}

void ProgressBoard::set_last_allocation(std::string_view text) noexcept { shared_->last_allocation.write(text); }

BoardView ProgressBoard::read() const {
  BoardView view;
  view.heartbeat = shared_->heartbeat.load(std::memory_order_acquire);
  view.last_beat_ns = shared_->last_beat_ns.load(std::memory_order_relaxed);
  // A worker may have scribbled over its board: nothing read here is trusted to be in range.
  const std::int32_t stage = shared_->stage.load(std::memory_order_acquire);
  view.stage = static_cast<Stage>(
      std::clamp(stage, static_cast<std::int32_t>(Stage::load), static_cast<std::int32_t>(Stage::done)));
  view.phase = std::max(-1, shared_->phase.load(std::memory_order_acquire));
  if (view.phase >= 0 && static_cast<std::size_t>(view.phase) < named_phases) {
    std::array<char, name_words * sizeof(std::uint64_t)> name{};
    for (std::size_t i = 0; i < name_words; ++i) {
      const std::uint64_t word =
          shared_->phase_names[static_cast<std::size_t>(view.phase)][i].load(std::memory_order_relaxed);
      std::memcpy(name.data() + i * sizeof word, &word, sizeof word);
    }
    view.phase_name = printable_utf8(std::string_view(name.data(), strnlen(name.data(), name.size())));
  }
  view.waits = shared_->waits.load(std::memory_order_relaxed) > 0;
  view.step = shared_->step.load(std::memory_order_acquire);
  view.total_steps = shared_->total_steps.load(std::memory_order_relaxed);
  for (std::size_t kind = 0; kind < memory_kind_count; ++kind) {
    view.peak_bytes[kind] = shared_->peak_bytes[kind].load(std::memory_order_acquire);
    view.current_bytes[kind] = shared_->current_bytes[kind].load(std::memory_order_relaxed);
  }
  view.last_allocation = shared_->last_allocation.read();
  view.part = shared_->part.read();
  return view;
}

}  // namespace assay::host::launch
