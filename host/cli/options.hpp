// The options of one subcommand: each is a name, the variable that takes its value, and its help.
//
//   results::TableRequest request;
//   Options options("assay table RUN [RUN ...] [options]", about);
//   options.add("columns", request.columns, "names separated by commas");
//   options.positional("run", request.runs);
//   if (!options.read(arguments)) return exit_ok;
#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "common/usage_error.hpp"

namespace assay::host::cli {

class Options {
 public:
  // `usage`: "assay run EXPERIMENT.toml [options]". `about`: a paragraph for --help.
  Options(std::string usage, std::string about);

  // The type of the variable decides what the option takes. A bool takes nothing and becomes true. A number or a text
  // has its value as default, which the help shows; an optional one has none. A list takes one value each time it is
  // given.
  void add(const char* name, bool& flag, const std::string& help);
  void add(const char* name, std::string& value, const std::string& help);
  void add(const char* name, double& value, const std::string& help);
  void add(const char* name, int& value, const std::string& help);
  void add(const char* name, std::int64_t& value, const std::string& help);
  void add(const char* name, std::optional<std::string>& value, const std::string& help);
  void add(const char* name, std::optional<double>& value, const std::string& help);
  void add(const char* name, std::optional<int>& value, const std::string& help);
  void add(const char* name, std::optional<std::int64_t>& value, const std::string& help);
  void add(const char* name, std::vector<std::string>& values, const std::string& help);
  void add(const char* name, std::vector<std::int64_t>& values, const std::string& help);
  // Takes all words up to the next option: "--cost 3 5.50".
  void add_words(const char* name, std::vector<std::string>& values, const std::string& help);
  // --json beside a --format that names it: each command that has JSON gives it for --json.
  void add_json(std::string& format);
  void add_json(std::optional<std::string>& format);
  // `given` becomes true where the command line has the option, though it has a default.
  void notice(const char* name, bool& given);

  // What stands without a name: at most `most` of them (-1: any number). With `missing`, a command line without any is
  // refused in these words.
  void positional(const char* name, std::vector<std::string>& values, int most = -1, const char* missing = nullptr);
  void positional(const char* name, std::string& value, const char* missing);

  // Says what to do about an option that this command does not have and that is near none of its options: the text that
  // `hint` makes of it ("--nhead") follows in the message.
  void explain_unknown(std::function<std::string(const std::string&)> hint) { hint_ = std::move(hint); }

  // Fills the variables. Returns false where it has printed --help instead. Throws UsageError.
  bool read(const Arguments& arguments);

 private:
  using Values = boost::program_options::variables_map;
  template <typename T>
  void add_plain(const char* name, std::optional<T>& value, const std::string& help);
  template <typename T>
  void add_list(const char* name, std::vector<T>& values, const std::string& help);
  void print_help() const;

  std::string usage_, about_, positional_, missing_;
  int most_ = 0;
  boost::program_options::options_description visible_{"Options"};
  std::vector<std::function<void(const Values&)>> takers_;
  std::map<std::string, std::string> expected_;  // by option: "a number"
  std::function<std::string(const std::string&)> hint_;
};

// The options that a command adds, for those who want to know them and run nothing. Nothing where it has none. One
// thread.
std::optional<boost::program_options::options_description> options_of(int (*command)(const Arguments&));

}  // namespace assay::host::cli
