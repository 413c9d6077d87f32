// A workload on several ranks of which one misbehaves, in the way and at the place that the parameters say.
#include <assay/comm.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <assay/comm/communicator.hpp>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using assay::Param;
using assay::compute::DType;
using assay::compute::Tensor;

constexpr auto fault_names = assay::names("none", "kill", "segfault", "exit", "throw", "sleep", "wrong", "terminate");
constexpr auto place_names = assay::names("create", "setup", "forward", "collective", "verify");

class FaultyRank {
 public:
  static constexpr auto id = "faulty_rank", summary = "a step of several ranks, one of which may fail";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = assay::table(
      Param::choice("fault", "none", fault_names).help("what the rank does"),
      Param::choice("place", "forward", place_names).help("where it does it"),
      Param::integer("fault_rank", 1).at_least(0).help("which rank does it"),
      Param::integer("fault_step", 1).at_least(0).help("in which step, of forward and collective"),
      Param::integer("step_ms", 0).unit("ms").at_least(0).help("how long a forward sleeps"),
      Param::integer("slower_ms", 0).unit("ms").at_least(0).help("how much longer for each rank after the first"),
      Param::integer("elements", 1024).at_least(0).help("of the all-reduce; 0: there is none, and no communicator"));
  enum Phase { forward, collective };
  static constexpr auto phases = assay::names("forward", "collective");
  static constexpr auto metrics =
      assay::table(assay::Metric::per_case("steps_run", "steps", ASSAY_NEITHER_IS_BETTER, "warm-up included"));

  explicit FaultyRank(const assay::Case& c)
      : host_(c.host()),
        fault_(c.get<std::string>("fault")),
        place_(c.get<std::string>("place")),
        is_faulty_(c.rank() == c.get<std::int64_t>("fault_rank")),
        fault_step_(c.get<std::uint64_t>("fault_step")),
        step_ms_(c.get<std::int64_t>("step_ms") + c.rank() * c.get<std::int64_t>("slower_ms")),
        elements_(c.get<std::int64_t>("elements")),
        rank_(c.rank()),
        rank_count_(c.rank_count()) {
    misbehave("create");
  }

  void setup(const assay::Launch& launch) {
    misbehave("setup");
    if (elements_ == 0) return;
    memory_ =
        assay::DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, static_cast<std::size_t>(elements_) * 4, "numbers");
    numbers_ = Tensor(memory_.data(), DType::f32, {elements_});
    communicator_ = assay::comm::open_communicator(host_, launch, "auto");
  }

  void run(const assay::Launch& launch) {
    ++steps_run_;
    {
      const auto phase = launch.phase(forward);
      if (step_ms_ > 0) std::fprintf(stderr, "rank %d: a step begins\n", rank_);
      if (step_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(step_ms_));
      if (launch.iteration() == fault_step_) misbehave("forward");
    }
    if (!communicator_) return;
    const auto phase = launch.phase(collective);
    // Killed by its own thread while the collective goes on, so that its peers are in the middle of it.
    const assay::comm::Ticket ticket = communicator_->all_reduce(numbers_, numbers_, assay::comm::Reduction::average);
    if (launch.iteration() == fault_step_) misbehave("collective");
    communicator_->wait(ticket);
  }

  void finish(const assay::Launch& launch) { launch.metric(0, static_cast<double>(steps_run_)); }

  std::string verify(const assay::Launch&) {
    misbehave("verify");
    return "rank " + std::to_string(rank_) + " of " + std::to_string(rank_count_) + " was here";
  }

 private:
  void misbehave(const char* here) const {
    if (!is_faulty_ || place_ != here || fault_ == "none") return;
    std::fprintf(stderr, "rank %d: %s in %s\n", rank_, fault_.c_str(), here);
    if (fault_ == "kill") kill(getpid(), SIGKILL);
    if (fault_ == "terminate") {  // as somebody who is not the host does; the rank goes on until it looks
      const pid_t rank = getpid(), sender = fork();
      if (sender == 0) {
        kill(rank, SIGTERM);
        _exit(0);
      }
      waitpid(sender, nullptr, 0);
      std::fprintf(stderr, "rank %d: terminate by %d\n", rank_, sender);
      return;
    }
    if (fault_ == "segfault") raise(SIGSEGV);
    if (fault_ == "exit") _exit(3);
    if (fault_ == "throw") throw std::runtime_error(std::string("boom in ") + here);
    if (fault_ == "wrong") throw assay::Error(ASSAY_WRONG_RESULT, "one element is off");
    for (;;) pause();
  }

  assay::Host host_;
  std::string fault_, place_;
  bool is_faulty_;
  std::uint64_t fault_step_;
  std::int64_t step_ms_, elements_;
  std::int32_t rank_, rank_count_;
  std::int64_t steps_run_ = 0;
  assay::DeviceMemory memory_;
  Tensor numbers_;
  std::unique_ptr<assay::comm::Communicator> communicator_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.faulty_rank", "1.0.0", FaultyRank)
