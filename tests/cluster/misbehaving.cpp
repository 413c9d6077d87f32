// A short workload for the tests of batches: its parameters say how to misbehave, and it leaves a mark for each
// start, so that a test knows when to take its machine away, and how often each case was begun.
#include <assay/comm.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <assay/comm/communicator.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using assay::Param;
using assay::compute::DType;
using assay::compute::Tensor;

constexpr auto action_names = assay::names("ok", "fail", "kill_leader", "kill_follower");

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "-";
}

// The process of assay that leads this rank: between the two is a keeper.
pid_t host_process() {
  std::ifstream stat("/proc/" + std::to_string(getppid()) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stat), std::istreambuf_iterator<char>()};
  const std::size_t name_end = text.rfind(')');  // what follows is "state parent"
  return name_end == std::string::npos ? 0 : static_cast<pid_t>(std::atol(text.c_str() + name_end + 4));
}

class Misbehaving {
 public:
  static constexpr auto id = "misbehaving", summary = "a short step that leaves a mark, and may take its job with it";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = assay::table(
      Param::integer("number", 0).help("tells the cases of a sweep apart"),
      Param::text("marks", "").help("a folder for <number>.<rank>, with a line for each start; empty: there is none"),
      Param::choice("action", "ok", action_names).help("what rank 0 does, and kill_follower what rank 1 does"),
      Param::integer("times", 1000).at_least(0).help("in how many of its first starts it does so; later ones are ok"),
      Param::real("seconds", 0).unit("s").at_least(0).help("how long each step sleeps, in the starts that misbehave"),
      Param::integer("elements", 0).at_least(0).help("of an all-reduce in each step; 0: there is none"));
  enum Phase { wait, collective };
  static constexpr auto phases = assay::names("wait", "collective");

  explicit Misbehaving(const assay::Case& c)
      : host_(c.host()),
        number_(c.get<std::int64_t>("number")),
        times_(c.get<std::int64_t>("times")),
        elements_(c.rank_count() > 1 ? c.get<std::int64_t>("elements") : 0),
        marks_(c.get<std::string>("marks")),
        action_(c.get<std::string>("action")),
        seconds_(c.get<double>("seconds")),
        rank_(c.rank()) {}

  void setup(const assay::Launch& launch) {
    misbehaves_ = mark() <= times_;
    if (elements_ == 0) return;
    memory_ =
        assay::DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, static_cast<std::size_t>(elements_) * 4, "numbers");
    numbers_ = Tensor(memory_.data(), DType::f32, {elements_});
    communicator_ = assay::comm::open_communicator(host_, launch, "auto");
  }

  void run(const assay::Launch& launch) {
    {
      const auto phase = launch.phase(wait);
      if (misbehaves_) std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    }
    if (misbehaves_ && rank_ == (action_ == "kill_follower" ? 1 : 0)) misbehave();
    if (!communicator_) return;
    const auto phase = launch.phase(collective);
    communicator_->wait(communicator_->all_reduce(numbers_, numbers_, assay::comm::Reduction::average));
  }

 private:
  void misbehave() const {
    if (action_ == "fail") throw std::runtime_error("it was told to fail");
    if (action_ != "kill_leader" && action_ != "kill_follower") return;
    if (const pid_t host = host_process(); host > 1) kill(host, SIGKILL);
    for (;;) pause();
  }

  // The number of this start. Starts of one case follow one another.
  std::int64_t mark() const {
    if (marks_.empty()) return 1;
    const std::string file = marks_ + "/" + std::to_string(number_) + "." + std::to_string(rank_);
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    std::ofstream(file, std::ios::app) << host.data() << ' ' << getpid() << ' ' << host_process() << ' '
                                       << variable("SLURM_JOB_ID") << ' ' << variable("SLURM_RESTART_COUNT") << '\n';
    std::ifstream lines(file);
    std::int64_t count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    return count;
  }

  assay::Host host_;
  std::int64_t number_, times_, elements_;
  std::string marks_, action_;
  double seconds_;
  std::int32_t rank_;
  bool misbehaves_ = false;
  assay::DeviceMemory memory_;
  Tensor numbers_;
  std::unique_ptr<assay::comm::Communicator> communicator_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.misbehaving", "1.0.0", Misbehaving)
