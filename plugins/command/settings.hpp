// What an experiment says of a program: its command line, where and with what it runs, what a step is, what is right.
#pragma once
#include <assay/plugin.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace command {

enum class StepIs { reported, program };
inline constexpr auto steps = assay::choices<StepIs>({{"reported", StepIs::reported}, {"program", StepIs::program}});

// What each side does until the other one says something. Who sleeps is woken late, above all in a virtual machine, and
// feeds a GPU later after it; who asks again and again keeps a processor busy, which the program may need.
enum class Waiting { asleep, busy };
inline constexpr auto waitings = assay::choices<Waiting>({{"asleep", Waiting::asleep}, {"busy", Waiting::busy}});
using ChosenWaiting = std::optional<Waiting>;
inline constexpr auto waiting_choices =
    assay::choices<ChosenWaiting>({{"auto", ChosenWaiting{}}, {"asleep", Waiting::asleep}, {"busy", Waiting::busy}});

// An infinity has no place in JSON.
inline constexpr double no_bound = 1e308;

inline constexpr auto params = assay::table(
    assay::Param::words("command").required().help(
        "the program and its arguments, without a shell; {name} stands for the value of a parameter"),
    assay::Param::words("variables").help("NAME=value, with {name} as in the command; NAME alone is removed"),
    assay::Param::text("directory", "").help("working folder of the program; \"\": where assay runs"),
    assay::Param::input_path("script").help("a file that counts in the identity of the case; {script} is its path"),
    assay::Param::input_path("input").help("another one, {input}"),
    assay::Param::choice("step_is", StepIs::reported, steps)
        .help("what is timed: steps that the program reports (docs/command.md), or one whole run of it a step"),
    assay::Param::choice("waiting", ChosenWaiting{}, waiting_choices)
        .help("what assay does, and asks of the program, until the other one reports: asleep, or busy for up to 0.1 s, "
              "without waking up; auto: busy with a GPU and 4 processors for each rank"),
    assay::Param::integer("items_per_step", 0).at_least(0).help("for the rate items_per_s; 0: not stated"),
    assay::Param::text("verify_metric", "").help("the reported metric whose value must be in the range; \"\": none"),
    assay::Param::real("verify_min", -no_bound).help("the least value that is right; -1e308: any"),
    assay::Param::real("verify_max", no_bound).help("the largest value that is right; 1e308: any"));

// A variable of the environment that is set, or removed.
struct Variable {
  std::string name;
  std::optional<std::string> value;
};

struct Settings {
  std::vector<std::string> command;
  std::vector<Variable> environment;
  std::string directory;
  StepIs step_is = StepIs::reported;
  ChosenWaiting waiting;
  std::uint64_t items_per_step = 0;
  std::string verify_metric;
  double verify_min = 0, verify_max = 0;

  // Reads and checks the parameters of a case. Throws assay::Error; also for a parameter that the program never sees.
  explicit Settings(const assay::Case& c);
};

}  // namespace command
