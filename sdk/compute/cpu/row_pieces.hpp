// Cuts the rows of a group into pieces for which a product was made beforehand. How many rows a group has is known only
// when it runs, and making a oneDNN product takes longer than running many of them.
#pragma once
#include <cstdint>

namespace assay::cpu {

// Pieces have 2^i rows.
inline constexpr std::int64_t least_piece_rows = 16, most_piece_rows = 1024;
// A piece of more rows than are left is worth it where it saves another product, which reads the group's whole matrix:
// up to so many rows more, or that share of the piece.
inline constexpr std::int64_t few_extra_rows = 32, extra_share = 8;

inline std::int64_t piece_that_covers(std::int64_t rows) {
  std::int64_t piece = least_piece_rows;
  while (piece < rows && piece < most_piece_rows) piece *= 2;
  return piece;
}

// Calls piece(rows, left): a piece of `rows` for the next rows of the group; `left` rows of the group are not done yet.
// The last piece may have more rows than that.
template <class F>
void for_each_piece(std::int64_t count, F&& piece) {
  for (std::int64_t left = count; left > 0;) {
    std::int64_t rows = piece_that_covers(left);
    const std::int64_t extra = rows - left;
    if (extra > few_extra_rows && extra * extra_share > rows) rows /= 2;
    piece(rows, left);
    left -= rows < left ? rows : left;
  }
}

}  // namespace assay::cpu
