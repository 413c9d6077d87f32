#include "profile/pickle.hpp"

#include <cassert>
#include <limits>
#include <utility>

namespace assay::host::profile {
namespace {

constexpr std::size_t most_in_batch = 1000;  // as Python's own writer

// Opcodes, by their names in Python's pickletools.
constexpr char op_proto = '\x80', op_stop = '.', op_mark = '(';
constexpr char op_empty_list = ']', op_appends = 'e', op_empty_dict = '}', op_setitems = 'u', op_tuple2 = '\x86';
constexpr char op_newtrue = '\x88', op_newfalse = '\x89';
constexpr char op_binint = 'J', op_binint1 = 'K', op_binint2 = 'M', op_long1 = '\x8a', op_binunicode = 'X';

}  // namespace

PickleWriter::PickleWriter() { out_ = {op_proto, '\x02'}; }

// A mark begins a batch; a batch is ended by the opcode that puts its items into the container.
void PickleWriter::begin_item() {
  Container& container = open_.back();
  if (container.in_batch == most_in_batch) {
    out_ += container.is_dict ? op_setitems : op_appends;
    container.in_batch = 0;
  }
  if (container.in_batch++ == 0) out_ += op_mark;
}

void PickleWriter::before_value() {
  if (!open_.empty() && !open_.back().is_dict) begin_item();
}

void PickleWriter::begin_list() {
  before_value();
  out_ += op_empty_list;
  open_.push_back({false, 0});
}

void PickleWriter::begin_dict() {
  before_value();
  out_ += op_empty_dict;
  open_.push_back({true, 0});
}

void PickleWriter::close(char append) {
  if (open_.back().in_batch > 0) out_ += append;
  open_.pop_back();
}

void PickleWriter::end_list() {
  assert(!open_.empty() && !open_.back().is_dict);
  close(op_appends);
}

void PickleWriter::end_dict() {
  assert(!open_.empty() && open_.back().is_dict);
  close(op_setitems);
}

void PickleWriter::key(std::string_view name) {
  assert(!open_.empty() && open_.back().is_dict);
  begin_item();
  put_text(name);
}

void PickleWriter::put_u32(std::uint32_t value) {
  for (int byte = 0; byte < 4; ++byte) out_ += static_cast<char>(value >> (8 * byte) & 0xff);
}

void PickleWriter::put_number(std::int64_t number) {
  if (number >= 0 && number <= 0xff) {
    out_ += op_binint1;
    out_ += static_cast<char>(number);
  } else if (number >= 0 && number <= 0xffff) {
    out_ += op_binint2;
    out_ += static_cast<char>(number & 0xff);
    out_ += static_cast<char>(number >> 8);
  } else if (number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max()) {
    out_ += op_binint;
    put_u32(static_cast<std::uint32_t>(static_cast<std::int32_t>(number)));
  } else {
    // Two's complement, the low byte first; eight bytes hold the sign as well.
    out_ += op_long1;
    out_ += '\x08';
    put_u32(static_cast<std::uint32_t>(static_cast<std::uint64_t>(number)));
    put_u32(static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) >> 32));
  }
}

void PickleWriter::put_text(std::string_view utf8) {
  out_ += op_binunicode;
  put_u32(static_cast<std::uint32_t>(utf8.size()));
  out_ += utf8;
}

void PickleWriter::integer(std::int64_t number) {
  before_value();
  put_number(number);
}

void PickleWriter::boolean(bool value) {
  before_value();
  out_ += value ? op_newtrue : op_newfalse;
}

void PickleWriter::text(std::string_view utf8) {
  before_value();
  put_text(utf8);
}

void PickleWriter::integer_pair(std::int32_t first, std::int32_t second) {
  before_value();
  put_number(first);
  put_number(second);
  out_ += op_tuple2;
}

std::string PickleWriter::finish() {
  assert(open_.empty());
  out_ += op_stop;
  return std::move(out_);
}

}  // namespace assay::host::profile
