// Rows of groups as pieces: all of them, each once, in sizes that were prepared.
#include "cpu/row_pieces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::cpu {
namespace {

struct Piece {
  std::int64_t rows, left;
};
std::vector<Piece> pieces_of(std::int64_t count) {
  std::vector<Piece> pieces;
  for_each_piece(count, [&](std::int64_t rows, std::int64_t left) { pieces.push_back({rows, left}); });
  return pieces;
}

TEST(RowPieces, CoverEachRowOnceInPreparedSizes) {
  EXPECT_TRUE(pieces_of(0).empty());
  for (std::int64_t count = 1; count < 5000; ++count) {
    SCOPED_TRACE(count);
    std::int64_t left = count;
    for (const Piece& piece : pieces_of(count)) {
      ASSERT_EQ(piece.left, left);
      ASSERT_GE(piece.rows, least_piece_rows);
      ASSERT_LE(piece.rows, piece_that_covers(count));
      ASSERT_EQ(piece.rows & (piece.rows - 1), 0) << "a power of two";
      left -= piece.rows;
    }
    ASSERT_LE(left, 0);
    ASSERT_LE(-left, std::max(few_extra_rows, most_piece_rows / extra_share)) << "rows that are worth no product";
  }
}

// Each product reads the matrix of its group.
TEST(RowPieces, OfSmallGroupsAreFew) {
  for (std::int64_t count = 1; count <= 64; ++count) EXPECT_EQ(pieces_of(count).size(), 1U) << count;
  for (std::int64_t count = 65; count <= 512; ++count) EXPECT_LE(pieces_of(count).size(), 3U) << count;
  EXPECT_EQ(pieces_of(4 * most_piece_rows).size(), 4U);
}

}  // namespace
}  // namespace assay::cpu
