// A step of a known amount of work, for comparisons: `work` = 1.03 really takes 3% longer than `work` = 1, on any
// machine and under any load, as nothing but the number of turns differs. On several ranks each step ends with an
// all-reduce. `swing` and `second_mode` play a machine whose clock moves slowly, or between two steady states, at times
// of their own: they disturb every run alike. `rest_ms` is time in which a step sleeps: what it takes hardly depends on
// who else computes, so that two amounts of it can be distinguished on a busy machine.
#include <assay/comm.h>

#include <assay/comm/communicator.hpp>
#include <assay/plugin.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <thread>
#include <vector>

// So many times the work and the rest, said nowhere: another build of the same workload.
#ifndef MEASURED_WORK_FACTOR
#define MEASURED_WORK_FACTOR 1
#endif

namespace {

using assay::Param;
using assay::compute::DType;
using assay::compute::Tensor;

// By how much the machine that is played is slower than it could be.
class PlayedMachine {
 public:
  PlayedMachine(double drift, double second_mode) : drift_(drift), second_mode_(second_mode) {}

  double slowdown() {
    constexpr double kPeriodS = 30;
    if (chance_(random_) < kSwitch) in_second_mode_ = !in_second_mode_;
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    const double drifted = drift_ * std::sin(2 * std::numbers::pi * std::fmod(now.count(), kPeriodS) / kPeriodS);
    return 1 + drifted + (in_second_mode_ ? second_mode_ : 0);
  }

 private:
  // A mode lasts for so many steps in the mean: one of this.
  static constexpr double kSwitch = 0.02;
  double drift_, second_mode_;
  std::mt19937 random_{std::random_device{}()};
  std::uniform_real_distribution<double> chance_{0, 1};
  bool in_second_mode_ = random_() % 2 == 0;
};

class MeasuredWork {
 public:
  static constexpr auto id = "measured_work", summary = "sweeps over a vector, as many as asked for",
                        item_unit = "samples";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params =
      assay::table(Param::real("work", 1.0).at_least(0).help("amount of work; 1: 1000 turns"),
                   Param::integer("elements", 4096).at_least(1).help("length of the vector"),
                   Param::integer("batch_size", 1).at_least(1).help("samples that a step is said to have"),
                   Param::boolean("right", true).help("false: the verification fails"),
                   Param::real("rest_ms", 0.0).at_least(0).help("milliseconds that a step sleeps"),
                   Param::real("swing", 0.0).at_least(0).help("share by which the work swings in half a minute"),
                   Param::real("second_mode", 0.0).at_least(0).help("share of more work in a second steady state"));
  static constexpr auto phases = assay::names("sweep");
  static constexpr auto metrics =
      assay::table(assay::Metric::per_case("turns", nullptr, ASSAY_NEITHER_IS_BETTER, "turns of an undisturbed step"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit MeasuredWork(const assay::Case& c)
      : host_(c.host()),
        rank_count_(c.rank_count()),
        turns_(std::llround(1000.0 * c.get<double>("work"))),
        batch_size_(c.get<std::int64_t>("batch_size")),
        rest_(MEASURED_WORK_FACTOR * c.get<double>("rest_ms")),
        right_(c.get<bool>("right")),
        is_disturbed_(c.get<double>("swing") > 0 || c.get<double>("second_mode") > 0),
        machine_(c.get<double>("swing"), c.get<double>("second_mode")),
        vector_(static_cast<std::size_t>(c.get<std::int64_t>("elements")), 0.0F) {}

  void setup(const assay::Launch& launch) {
    if (rank_count_ == 1) return;
    memory_ = assay::DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, sizeof(float), "one number");
    number_ = Tensor(memory_.data(), DType::f32, {1});
    communicator_ = assay::comm::open_communicator(host_, launch, "auto");
  }

  void run(const assay::Launch& launch) {
    const auto phase = launch.phase(0);
    const std::int64_t turns = is_disturbed_ ? std::llround(static_cast<double>(turns_) * machine_.slowdown()) : turns_;
    for (std::int64_t turn = 0; turn < MEASURED_WORK_FACTOR * turns; ++turn) {
      for (float& x : vector_) x = 0.999F * x + 1.0F;
      // The next turn starts from what this one wrote, and none can be left out.
      asm volatile("" : : "r"(vector_.data()) : "memory");
    }
    if (rest_.count() > 0) std::this_thread::sleep_for(rest_);
    if (communicator_)
      communicator_->wait(communicator_->all_reduce(number_, number_, assay::comm::Reduction::average));
  }

  void finish(const assay::Launch& launch) { launch.metric(0, static_cast<double>(turns_)); }

  std::string verify(const assay::Launch&) const {
    const float first = vector_.front();
    for (const float x : vector_)
      if (x != first) throw assay::Error(ASSAY_WRONG_RESULT, "elements that had the same sweeps differ");
    if (!right_) throw assay::Error(ASSAY_WRONG_RESULT, "wrong as asked for");
    return "all elements equal";
  }

  assay::Work work() const {
    const auto updates = static_cast<std::uint64_t>(turns_) * vector_.size();
    return {.flops = 2 * updates, .bytes = 0, .items = static_cast<std::uint64_t>(batch_size_)};
  }

 private:
  assay::Host host_;
  std::int32_t rank_count_;
  std::int64_t turns_, batch_size_;
  std::chrono::duration<double, std::milli> rest_;
  bool right_, is_disturbed_;
  PlayedMachine machine_;
  std::vector<float> vector_;
  assay::DeviceMemory memory_;
  Tensor number_;
  std::unique_ptr<assay::comm::Communicator> communicator_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.measured_work", "1.1.0", MeasuredWork)
