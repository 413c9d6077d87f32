// Every operation of the list: its tensors, what it may do in place, and the page that lists them.
#include <gtest/gtest.h>
#include <assay/compute/operations.hpp>

#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>

namespace assay::compute {
namespace {

TEST(Operations, WalkThroughAllOfTheirTensors) {
  std::set<std::string> names;
  Operations::for_each([&]<class Op>(std::type_identity<Op>) {
    SCOPED_TRACE(Op::name);
    EXPECT_TRUE(names.insert(Op::name).second) << "two operations of one name";
    const Op operation{};
    std::size_t walked = 0;
    std::set<std::string> tensors;
    for_each_tensor(operation, [&](const char* name, const Tensor&) {
      ++walked;
      EXPECT_TRUE(tensors.insert(name).second) << name << " twice";
    });
    EXPECT_LT(sizeof(Op) - walked * sizeof(Tensor), sizeof(Tensor)) << "a tensor is not in ASSAY_OPERATION";
    for (const InPlace& pair : pairs_in_place<Op>()) {
      EXPECT_TRUE(tensors.contains(std::string(pair.out))) << pair.out;
      EXPECT_TRUE(tensors.contains(std::string(pair.in))) << pair.in;
    }
  });
  EXPECT_EQ(names.size(), Operations::size);
}

TEST(Operations, AreFoundWhereverTheyStand) {
  const op::Scale scale{.x = {}, .factor = 2, .out = {}};
  const AnyOperation any = &scale;
  EXPECT_EQ(operation_cast<op::Scale>(any), &scale);
  EXPECT_EQ(operation_cast<op::Add>(any), nullptr);
  EXPECT_STREQ(name_of(any), "scale");
  std::string seen;
  visit_operation(
      any, [&](const op::Add&) { seen = "add"; }, [&](const op::Scale& op) { seen = std::to_string(op.factor); },
      [&](const auto&) { seen = "another"; });
  EXPECT_EQ(seen, std::to_string(2.0F));
}

TEST(Operations, SayWhatTheyReadAndWrite) {
  op::BiasBackward op{};
  EXPECT_TRUE(reads(op, op.dy));
  EXPECT_FALSE(reads(op, op.dbias));
  op.accumulate = true;
  EXPECT_TRUE(reads(op, op.dbias));
  EXPECT_TRUE(is_written<OutOrSum>);
  EXPECT_FALSE(is_written<In>);
  const op::Rotary rotary{};
  EXPECT_TRUE(reads(rotary, rotary.x) && is_written<InOut>);
  EXPECT_TRUE(may_be_empty<Optional<Out>>);
  EXPECT_FALSE(may_be_empty<Out>);
}

// ---- docs/operations.md --------------------------------------------------------------------------------------------

void add(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }

constexpr const char* head_of_table =
    "| operation | reads | writes | adds to, or writes | may work in place |\n| --- | --- | --- | --- | --- |\n";

std::string table_of_operations() {
  std::string table = head_of_table;
  Operations::for_each([&]<class Op>(std::type_identity<Op>) {
    std::string in, out, sums, places;
    for_each_tensor(Op{}, [&](const char* name, const auto& tensor) {
      using Field = std::remove_cvref_t<decltype(tensor)>;
      const std::string text = may_be_empty<Field> ? "[" + std::string(name) + "]" : name;
      if (std::is_base_of_v<OutOrSum, Field>) return add(sums, text);
      if (reads(Op{}, tensor)) add(in, text);
      if (is_written<Field>) add(out, text);
    });
    for (const InPlace& pair : pairs_in_place<Op>()) add(places, std::string(pair.out) + " = " + std::string(pair.in));
    table += "| `" + std::string(Op::name) + "` | " + in + " | " + out + " | " + sums + " | " + places + " |\n";
  });
  return table;
}

// The target operations_page sets the variable.
TEST(Operations, AreAllOnTheirPage) {
  std::ostringstream stream;
  stream << std::ifstream(ASSAY_OPERATIONS_PAGE).rdbuf();
  std::string page = stream.str();
  const std::size_t begin = page.find(head_of_table), end = page.find("\n\n", begin);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string written = page.substr(begin, end + 1 - begin), table = table_of_operations();
  if (std::getenv("ASSAY_WRITE_OPERATIONS_PAGE")) {
    page.replace(begin, written.size(), table);
    std::ofstream file(ASSAY_OPERATIONS_PAGE);
    file << page;
    EXPECT_TRUE(file.flush());
    return;
  }
  EXPECT_EQ(written, table) << "the table of " ASSAY_OPERATIONS_PAGE " is old; the target operations_page writes it";
}

}  // namespace
}  // namespace assay::compute
