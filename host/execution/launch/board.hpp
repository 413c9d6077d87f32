// ProgressBoard: where a worker is, in memory that it shares with its parent. The worker writes it with plain atomic
// stores (no lock, no system call: harmless between measured steps); the parent reads it at any time, also after the
// worker has died. That is how a crash, a hang or a kill is attributed to a stage, a phase and a step.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/fd.hpp"
#include "common/memory_kinds.hpp"
#include "common/stage.hpp"

namespace assay::host::launch {

// One reading of the board.
struct BoardView {
  Stage stage = Stage::load;
  std::uint64_t step = 0;          // of the stage, 0-based
  std::uint64_t total_steps = 0;   // of the stage; 0: not known beforehand
  std::int32_t phase = -1;         // index in the workload's table; -1: outside every phase
  std::string phase_name;          // of a phase that is in no table; "" if never reported
  std::string part;                // of setup or the verification, that is going on; "" if never reported
  bool waits = false;              // for another rank, or for its device
  std::uint64_t heartbeat = 0;     // grows with every sign of life
  std::uint64_t last_beat_ns = 0;  // of the last sign of life, on CLOCK_MONOTONIC; 0: none yet
  std::array<std::uint64_t, memory_kind_count> current_bytes{};
  std::array<std::uint64_t, memory_kind_count> peak_bytes{};
  std::string last_allocation;  // what was asked for last, in words; "" when nothing was
};

// The board itself. One writer thread, any number of readers.
class ProgressBoard {
 public:
  // The parent's side: new shared memory that the worker inherits. Throws LaunchError.
  static ProgressBoard create();
  // The worker's side. Throws LaunchError when `fd` is not a board of this build.
  static ProgressBoard attach(int fd);

  ProgressBoard(ProgressBoard&& other) noexcept;
  ProgressBoard& operator=(ProgressBoard&& other) noexcept;
  ~ProgressBoard();

  int fd() const { return fd_.get(); }  // -1 on the worker's side: the mapping outlives its descriptor
  BoardView read() const;

  // Entering a stage starts its steps anew and leaves every phase and part.
  void enter(Stage stage, std::uint64_t total_steps = 0) noexcept;
  void set_step(std::uint64_t step) noexcept;
  void set_phase(std::int32_t phase) noexcept;
  // Of a phase behind those of the table. The first 32 of all phases have room, for 56 bytes each.
  void set_phase_name(std::int32_t phase, std::string_view name) noexcept;
  // Names the part of the stage that begins, cut after 56 bytes. The call is a sign of life, and steps begin anew.
  void set_part(std::string_view name) noexcept;
  // Calls nest. No sign of life: a rank that waits may wait for one that hangs.
  void begin_wait() noexcept;
  void end_wait() noexcept;
  void beat() noexcept;
  void set_memory(std::size_t kind, std::uint64_t current_bytes, std::uint64_t peak_bytes) noexcept;
  // Cut after 512 bytes.
  void set_last_allocation(std::string_view text) noexcept;

 private:
  struct Layout;
  ProgressBoard(Fd fd, Layout* shared) noexcept;
  void unmap() noexcept;

  Fd fd_;
  Layout* shared_ = nullptr;
};

}  // namespace assay::host::launch
