// Writes Python's pickle format, as far as a memory snapshot needs it: dictionaries, lists, tuples, text and numbers.
//
// The page that opens snapshots reads a part of the format alone: no 8-byte integers, no classes, no frames. Long
// containers are written in batches, since a reader may hand a whole batch to one function call.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::profile {

class PickleWriter {
 public:
  PickleWriter();

  void begin_list();
  void end_list();
  void begin_dict();
  void end_dict();
  void key(std::string_view name);  // inside a dictionary, before each value

  void integer(std::int64_t number);
  void boolean(bool value);
  void text(std::string_view utf8);
  void integer_pair(std::int32_t first, std::int32_t second);  // a tuple

  void entry(std::string_view name, std::string_view utf8) { key(name), text(utf8); }
  void entry(std::string_view name, std::int64_t number) { key(name), integer(number); }

  // Ends the pickle and gives its bytes. Every container must be closed; the writer is spent.
  std::string finish();

 private:
  struct Container {
    bool is_dict;
    std::size_t in_batch;  // items since the last mark
  };
  void begin_item();
  void before_value();
  void close(char append);
  void put_u32(std::uint32_t value);
  void put_number(std::int64_t number);
  void put_text(std::string_view utf8);

  std::string out_;
  std::vector<Container> open_;
};

}  // namespace assay::host::profile
