// How long each stage of a case takes, for its record. The measured window has its own clock.
#pragma once
#include <chrono>

#include "common/stage.hpp"
#include "record/case_record.hpp"

namespace assay::host::worker {

class StageTimes {
 public:
  explicit StageTimes(record::WallTimes& wall) : wall_(wall) {}

  void enter(Stage stage) {
    end();
    stage_ = stage;
    is_open_ = true;
    begin_ = Clock::now();
  }
  // The stage is over, and the next one has not begun.
  void end() {
    if (record::Number* const time = is_open_ ? time_of(stage_) : nullptr) *time = since(begin_);
    is_open_ = false;
  }
  bool is_open() const { return is_open_; }
  // A part of a stage, as `what` does it.
  template <class F>
  static auto timed(record::Number& time, F&& what) {
    const Clock::time_point begin = Clock::now();
    auto result = what();
    time = since(begin);
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  record::Number* time_of(Stage stage) {
    switch (stage) {
      case Stage::load: return &wall_.load_s;
      case Stage::create: return &wall_.create_s;
      case Stage::setup: return &wall_.setup_s;
      case Stage::warmup: return &wall_.warmup_s;
      case Stage::finish: return &wall_.finish_s;
      case Stage::verify: return &wall_.verify_s;
      default: return nullptr;
    }
  }

  record::WallTimes& wall_;
  Stage stage_ = Stage::load;
  bool is_open_ = false;
  Clock::time_point begin_;
};

}  // namespace assay::host::worker
