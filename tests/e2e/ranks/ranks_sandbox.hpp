// A sandbox in which the host finds the workload faulty_rank, and nothing else may be left of a run than its folder.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {

class RanksSandbox : public Sandbox {
 protected:
  RanksSandbox() : Sandbox(RANKS_PLUGINS) {}
  void TearDown() override;

  // The newest run's records of cases, by the value of a text axis.
  std::map<std::string, std::vector<nlohmann::json>> cases_by(const std::string& axis) const;
};

// Several processes of the host, each given its rank by variables, as a launcher does it. All in the folder of one
// sandbox, with an output file each.
class Launch {
 public:
  static constexpr const char* token = "5d0c7fa19be2463088f1d4a6c3e97b52";

  // Nothing else listens at `port` of this machine.
  Launch(const Sandbox& sandbox, std::vector<std::string> arguments, int rank_count, int port);
  // More variables for one rank, before it is started.
  void set(int rank, const std::string& name, const std::string& value) { variables_[rank][name] = value; }
  // The token is one that the user gives, unless this is called before the ranks are started.
  void give_no_token();
  void start(int rank);
  void start_all();
  void send(int rank, int signal) const { processes_.at(rank).send(signal); }
  // Fails the test when the process has not ended after two minutes.
  HostExit wait(int rank);
  std::string output(int rank) const { return text_of(sandbox_->folder() / output_name(rank)); }

 private:
  static std::string output_name(int rank) { return "output" + std::to_string(rank) + ".txt"; }

  const Sandbox* sandbox_;
  std::vector<std::string> arguments_;
  int rank_count_;
  std::map<int, std::map<std::string, std::string>> variables_;
  std::map<int, HostProcess> processes_;
};

// A port of this machine. As long as this lives, nobody else can listen there; the next moment anyone can.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort() { release(); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  int number() const { return number_; }
  // The next connection, which the caller closes; its calls give up after a minute. -1 when none comes within two.
  int accept_one() const;
  void release();

 private:
  int socket_ = -1, number_ = 0;
};

// Of rank `rank`, in a record's by_rank; fails the test when it has none.
nlohmann::json rank_of(const nlohmann::json& record, int rank);

}  // namespace assay::test
