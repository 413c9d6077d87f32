// A mistake of the user's in an experiment file or on the command line, with its place.
#pragma once
#include <string>
#include <vector>

namespace assay::host::experiment {

// Where something was written. On the command line `source` is the argument ("--set steps=3"), `line` is 0 and `column`
// counts the arguments, so that places sort: the file first, then the arguments in their order.
struct Place {
  std::string source;
  int line = 0;
  int column = 0;
};

struct Mistake {
  std::string file;  // the experiment file, or the argument ("--set steps=3") when `line` is 0
  int line = 0;
  int column = 0;
  std::string text;  // what was found; what was expected; the nearest known name

  std::string to_string() const;  // "file:line:column: text", or "file: text" when `line` is 0
};

// What reading gathers; reading goes on after a mistake so that all of them show in one pass.
class Mistakes {
 public:
  void add(const Place& place, std::string text);
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  std::vector<Mistake> sorted() const;

 private:
  std::vector<Mistake> list_;
};

// File positions first, then arguments in their order; equal places keep the order in which they were found.
void sort_by_place(std::vector<Mistake>& mistakes);

}  // namespace assay::host::experiment
