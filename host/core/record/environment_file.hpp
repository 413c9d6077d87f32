// environments/ID.json of a run folder: one environment, and the invocations of assay that have measured in it.
//
// A run may be resumed another day, on another machine, with another driver. Each record names the environment it
// ran in, so that no record is taken for one of a place where it was not made.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay::host::record {

// How long a fact of an environment ("cpu.model", "load_average") holds.
enum class FactLife {
  lasting,        // what the machine and its software are: it makes the id
  of_invocation,  // how assay was started, and where the scheduler put it
  of_moment       // what differs each time and does not affect the result: load, free memory, numbers of jobs
};
FactLife life_of_fact(std::string_view name);

struct EnvironmentFile {
  std::string id;    // 16 hexadecimal digits over the lasting facts, in whatever order they were captured
  std::string text;  // the lasting facts, and as "invocations" a list of all others
};
// The file with the facts that one invocation captured. Nothing when the text is no JSON object.
std::optional<EnvironmentFile> environment_file(const std::string& captured);

// Several files of one id as one: the first one, with the invocations of all, each once.
class JoinedEnvironment {
 public:
  JoinedEnvironment();
  ~JoinedEnvironment();
  JoinedEnvironment(JoinedEnvironment&&) noexcept;

  // False, and without effect, where the text is no such file. The time does not depend on what was added before: a
  // batch has an invocation for each of its shards.
  bool add(const std::string& text);
  // Whether what was added after the first file had an invocation that was not there before.
  bool has_grown() const;
  // With the end of its last line; the first text as it was if nothing has joined it, "" without any.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The id under which a run keeps the environment of records that name none: those of a run that was begun by an
// earlier version of assay, and resumed by this one.
inline constexpr const char* unnamed_environment = "unnamed";

}  // namespace assay::host::record
