#include "data.hpp"

#include "eight_bit.hpp"
#include "math.hpp"
#include "pairs.hpp"
#include "parallel.hpp"
#include "philox.hpp"

namespace assay::cpu::ASSAY_ISA {
namespace {

template <class T>
void fill_bytes(void* to, uint64_t bits, int64_t count) {
  T* const out = static_cast<T*>(to);
  const T value = T(bits);
  parallel_ranges(count, 64, parallel_bytes / int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = value;
  });
}

template <class T>
void fill_float(void* to, float value, int64_t count) {
  T stored;
  store(&stored, value);
  T* const out = static_cast<T*>(to);
  parallel_ranges(count, 64, parallel_bytes / int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = stored;
  });
}

// ---- copies --------------------------------------------------------------------------------------------------------

struct KeepBits {
  template <class T>
  ASSAY_INLINE void move(T* to, const T* from) {
    *to = *from;
  }
};
struct Convert {
  template <class To, class From>
  ASSAY_INLINE void move(To* to, const From* from) {
    store(to, load(from));
  }
};

template <class Move, class To, class From>
ASSAY_INLINE void copy_run(To* __restrict to, const From* __restrict from, int64_t n, int64_t to_step,
                           int64_t from_step) {
  if (to_step == 1 && from_step == 1) {
    for (int64_t i = 0; i < n; ++i) Move::move(to + i, from + i);
  } else {
    for (int64_t i = 0; i < n; ++i) Move::move(to + i * to_step, from + i * from_step);
  }
}

template <class Move, class To, class From>
void copy(void* to_address, const void* from_address, const CopyShape& s) {
  To* const to = static_cast<To*>(to_address);
  const From* const from = static_cast<const From*>(from_address);
  const int64_t rows = s.extent[0] * s.extent[1] * s.extent[2], width = s.extent[3];
  const int64_t bytes = int64_t{sizeof(To)};
  if (rows == 1) {
    parallel_ranges(width, 64, parallel_bytes / bytes, [&](int64_t begin, int64_t end) {
      copy_run<Move>(to + begin * s.to_step[3], from + begin * s.from_step[3], end - begin, s.to_step[3],
                     s.from_step[3]);
    });
    return;
  }
  parallel_rows(rows, width * bytes, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t i2 = r % s.extent[2], i1 = r / s.extent[2] % s.extent[1], i0 = r / s.extent[2] / s.extent[1];
      copy_run<Move>(to + i0 * s.to_step[0] + i1 * s.to_step[1] + i2 * s.to_step[2],
                     from + i0 * s.from_step[0] + i1 * s.from_step[1] + i2 * s.from_step[2], width, s.to_step[3],
                     s.from_step[3]);
    }
  });
}

// Tiles, so that rows and columns are both written in runs.
template <class Format, class T>
void quantize(uint8_t* y, uint8_t* transposed, const void* x_address, float scale, int64_t rows, int64_t columns) {
  constexpr int64_t tile = 64;
  const T* const x = static_cast<const T*>(x_address);
  parallel_ranges(rows, tile, parallel_bytes / (columns * int64_t{sizeof(T)}) + 1, [=](int64_t begin, int64_t end) {
    uint8_t bits[tile][tile];
    for (int64_t r0 = begin; r0 < end; r0 += tile) {
      const int64_t height = end - r0 < tile ? end - r0 : tile;
      for (int64_t c0 = 0; c0 < columns; c0 += tile) {
        const int64_t width = columns - c0 < tile ? columns - c0 : tile;
        for (int64_t r = 0; r < height; ++r) {
          const T* const from = x + (r0 + r) * columns + c0;
          uint8_t* const to = y + (r0 + r) * columns + c0;
          for (int64_t c = 0; c < width; ++c) bits[r][c] = Format::of(load(from + c) * scale);
          for (int64_t c = 0; c < width; ++c) to[c] = bits[r][c];
        }
        if (!transposed) continue;
        for (int64_t c = 0; c < width; ++c)
          for (int64_t r = 0; r < height; ++r) transposed[(c0 + c) * rows + r0 + r] = bits[r][c];
      }
    }
  });
}

template <class Format, class T>
void quantize_rows(uint8_t* y, float* inverse_scale, const void* x_address, int64_t rows, int64_t columns) {
  const T* const x = static_cast<const T*>(x_address);
  parallel_rows(rows, columns * int64_t{sizeof(T)}, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const from = x + r * columns;
      uint8_t* const to = y + r * columns;
      float max_abs = 0.0f;
      for (int64_t c = 0; c < columns; ++c) max_abs = larger_magnitude(max_abs, load(from + c));
      const typename Format::Scale s = Format::scale_for(max_abs);
      inverse_scale[r] = s.inverse;
      for (int64_t c = 0; c < columns; ++c) to[c] = Format::of(load(from + c) * s.scale);
    }
  });
}

// Strips of columns; each is walked twice.
template <class Format, class T>
void quantize_columns(uint8_t* y, float* inverse_scale, const void* x_address, int64_t rows, int64_t columns) {
  constexpr int64_t strip = 64, tile = 64;
  const T* const x = static_cast<const T*>(x_address);
  parallel_ranges(columns, strip, parallel_bytes / (rows * int64_t{sizeof(T)} + 1) + 1,
                  [=](int64_t begin, int64_t end) {
                    for (int64_t c0 = begin; c0 < end; c0 += strip) {
                      const int64_t width = end - c0 < strip ? end - c0 : strip;
                      float max_abs[strip] = {}, scale[strip];
                      for (int64_t r = 0; r < rows; ++r)
                        for (int64_t c = 0; c < width; ++c)
                          max_abs[c] = larger_magnitude(max_abs[c], load(x + r * columns + c0 + c));
                      for (int64_t c = 0; c < width; ++c) {
                        const typename Format::Scale s = Format::scale_for(max_abs[c]);
                        inverse_scale[c0 + c] = s.inverse;
                        scale[c] = s.scale;
                      }
                      uint8_t bits[tile][strip];
                      for (int64_t r0 = 0; r0 < rows; r0 += tile) {
                        const int64_t height = rows - r0 < tile ? rows - r0 : tile;
                        for (int64_t r = 0; r < height; ++r)
                          for (int64_t c = 0; c < width; ++c)
                            bits[r][c] = Format::of(load(x + (r0 + r) * columns + c0 + c) * scale[c]);
                        for (int64_t c = 0; c < width; ++c)
                          for (int64_t r = 0; r < height; ++r) y[(c0 + c) * rows + r0 + r] = bits[r][c];
                      }
                    }
                  });
}

void transpose_eight_bits(uint8_t* y, const uint8_t* x, const float* share, int64_t rows, int64_t columns,
                          int64_t places) {
  constexpr int64_t tile = 64;
  parallel_ranges(columns, tile, parallel_bytes / (places + 1) + 1, [=](int64_t begin, int64_t end) {
    uint8_t bits[tile][tile];
    for (int64_t c0 = begin; c0 < end; c0 += tile) {
      const int64_t width = end - c0 < tile ? end - c0 : tile;
      for (int64_t r0 = 0; r0 < places; r0 += tile) {
        const int64_t height = places - r0 < tile ? places - r0 : tile;
        for (int64_t r = 0; r < height; ++r)
          for (int64_t c = 0; c < width; ++c) {
            if (r0 + r >= rows)
              bits[r][c] = 0;
            else if (!share)
              bits[r][c] = x[(r0 + r) * columns + c0 + c];
            else
              bits[r][c] = E4m3::of(E4m3::value_of(x[(r0 + r) * columns + c0 + c]) * share[r0 + r]);
          }
        for (int64_t c = 0; c < width; ++c)
          for (int64_t r = 0; r < height; ++r) y[(c0 + c) * places + r0 + r] = bits[r][c];
      }
    }
  });
}

void widen_rows(float* x, const uint8_t* y, const float* scale, int64_t rows, int64_t columns) {
  float number[256];
  for (int bits = 0; bits < 256; ++bits) number[bits] = E4m3::value_of(uint8_t(bits));
  const float* const table = number;
  parallel_rows(rows, columns * 4, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < columns; ++c) x[r * columns + c] = table[y[r * columns + c]] * scale[r];
  });
}

// ---- random numbers ------------------------------------------------------------------------------------------------

// cos and sin of 2 pi v, v in [0, 1): the nearest quarter turn leaves an angle within pi/4.
ASSAY_INLINE void cos_sin_turns(float v, float* cosine, float* sine) {
  const int32_t quarter = int32_t(v * 4.0f + 0.5f);
  const float a = (v - float(quarter) * 0.25f) * 6.28318530717958648f;
  const float a2 = a * a;
  float s = 1.0f / 362880.0f;
  s = s * a2 - 1.0f / 5040.0f;
  s = s * a2 + 1.0f / 120.0f;
  s = s * a2 - 1.0f / 6.0f;
  s = a + a * a2 * s;
  float c = -1.0f / 3628800.0f;
  c = c * a2 + 1.0f / 40320.0f;
  c = c * a2 - 1.0f / 720.0f;
  c = c * a2 + 1.0f / 24.0f;
  c = c * a2 - 0.5f;
  c = c * a2 + 1.0f;
  const bool swapped = quarter & 1;
  const float x = swapped ? s : c, y = swapped ? c : s;
  *cosine = ((quarter + 1) & 2) ? -x : x;
  *sine = (quarter & 2) ? -y : y;
}

// Box and Muller on 24-bit uniforms: the radius from (0, 1], so that its logarithm is finite.
ASSAY_INLINE void normal_tile(const uint32_t* __restrict word, float* __restrict z) {
  for (int i = 0; i < philox_tile_words / 2; ++i) {
    const float u = float(int32_t(word[2 * i] >> 8) + 1) * 0x1p-24f;
    const float v = float(int32_t(word[2 * i + 1] >> 8)) * 0x1p-24f;
    const float radius = __builtin_sqrtf(-2.0f * log_f32(u));
    float c, s;
    cos_sin_turns(v, &c, &s);
    z[2 * i] = radius * c;
    z[2 * i + 1] = radius * s;
  }
}

template <class T>
void random_normal(void* to, int64_t count, uint64_t seed, uint64_t stream, float mean, float std) {
  T* const out = static_cast<T*>(to);
  parallel_ranges(count, philox_tile_words, 16 * philox_tile_words, [=](int64_t begin, int64_t end) {
    uint32_t word[philox_tile_words];
    float z[philox_tile_words];
    for (int64_t i = begin; i < end; i += philox_tile_words) {
      philox_words({seed, stream}, uint64_t(i) / 4, philox_tile_words, word);
      normal_tile(word, z);
      const int64_t n = end - i < philox_tile_words ? end - i : philox_tile_words;
      for (int64_t j = 0; j < n; ++j) store(out + i + j, mean + std * z[j]);
    }
  });
}

void random_integers(int64_t* to, int64_t count, uint64_t seed, uint64_t stream, int64_t low, uint64_t range) {
  __extension__ typedef unsigned __int128 Wide;
  constexpr int64_t tile = philox_tile_words / 2;
  parallel_ranges(count, tile, 16 * tile, [=](int64_t begin, int64_t end) {
    uint32_t word[philox_tile_words];
    for (int64_t i = begin; i < end; i += tile) {
      philox_words({seed, stream}, uint64_t(i) / 2, philox_tile_words, word);
      const int64_t n = end - i < tile ? end - i : tile;
      for (int64_t j = 0; j < n; ++j) {
        const uint64_t bits = word[2 * j] | uint64_t(word[2 * j + 1]) << 32;
        to[i + j] = int64_t(uint64_t(low) + uint64_t(Wide(bits) * range >> 64));
      }
    }
  });
}

// ---- embedding and position ----------------------------------------------------------------------------------------

template <class Out, class Table>
void embedding_forward(void* out_address, const void* table_address, const int64_t* ids, int64_t rows, int64_t width) {
  Out* const out = static_cast<Out*>(out_address);
  const Table* const table = static_cast<const Table*>(table_address);
  parallel_rows(rows, width * int64_t{sizeof(Out)}, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) copy_run<Convert>(out + r * width, table + ids[r] * width, width, 1, 1);
  });
}

// Threads own ranges of columns and take the rows in order: the same sum whatever their number.
template <class Dout>
void add_rows(float* dtable, const Dout* dout, const int64_t* ids, int64_t rows, int64_t width) {
  const int64_t threshold = parallel_bytes / int64_t{sizeof(Dout)} / (rows > 0 ? rows : 1) + 1;
  parallel_ranges(width, 16, threshold, [=](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < rows; ++r) {
      float* const target = dtable + ids[r] * width;
      const Dout* const source = dout + r * width;
#pragma GCC ivdep
      for (int64_t c = begin; c < end; ++c) target[c] += load(source + c);
    }
  });
}

// A bf16 table would round at every addition, so the rows of one id are walked through a linked list and summed first.
template <class Dout>
void add_rows(bf16* dtable, const Dout* dout, const int64_t* ids, int64_t rows, int64_t width, int64_t table_rows,
              int32_t* links) {
  int32_t* const next = links;
  int32_t* const head = links + rows;
  for (int64_t id = 0; id < table_rows; ++id) head[id] = -1;
  for (int64_t r = rows; r-- > 0;) {
    next[r] = head[ids[r]];
    head[ids[r]] = int32_t(r);
  }
  parallel_ranges(table_rows, 1, parallel_bytes / (width > 0 ? width : 1) + 1, [=](int64_t begin, int64_t end) {
    constexpr int64_t tile = 64;
    float sum[tile];
    for (int64_t id = begin; id < end; ++id) {
      if (head[id] < 0) continue;
      for (int64_t c = 0; c < width; c += tile) {
        const int64_t n = width - c < tile ? width - c : tile;
        bf16* const target = dtable + id * width + c;
        for (int64_t j = 0; j < n; ++j) sum[j] = 0.0f;
        for (int32_t r = head[id]; r >= 0; r = next[r])
          for (int64_t j = 0; j < n; ++j) sum[j] += load(dout + r * width + c + j);
        for (int64_t j = 0; j < n; ++j) store(target + j, load(target + j) + sum[j]);
      }
    }
  });
}

template <class Table, class Dout>
void embedding_backward(void* dtable, const void* dout, const int64_t* ids, int64_t rows, int64_t width,
                        int64_t table_rows, int32_t* links) {
  if constexpr (sizeof(Table) == sizeof(float)) {
    (void)table_rows, (void)links;
    add_rows(static_cast<float*>(dtable), static_cast<const Dout*>(dout), ids, rows, width);
  } else {
    add_rows(static_cast<bf16*>(dtable), static_cast<const Dout*>(dout), ids, rows, width, table_rows, links);
  }
}

// Turns the pairs of one head.
template <class T>
ASSAY_INLINE void turn_head(T* head, const float* cos, const float* sin, float sign, int64_t pairs) {
  each(pairs, [=](int64_t i, auto span) {
    const Vec cosine = load_span(cos + i, span), sine = load_span(sin + i, span) * sign;
    store_pairs(head + 2 * i, turned(load_pairs(head + 2 * i, span), cosine, sine), span);
  });
}

template <class T>
void rotary(void* address, const float* cos, const float* sin, const RotaryShape& s, bool inverse) {
  T* const x = static_cast<T*>(address);
  const float sign = inverse ? -1.0f : 1.0f;
  parallel_rows(s.batch * s.positions, 2 * s.pairs * s.heads * int64_t{sizeof(T)}, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t position = r % s.positions;
      const float* const c = cos + position * s.pairs;
      const float* const n = sin + position * s.pairs;
      for (int64_t h = 0; h < s.heads; ++h) {
        T* const head = x + r / s.positions * s.batch_step + position * s.position_step + h * s.head_step;
        turn_head(head, c, n, sign, s.pairs);
      }
    }
  });
}

// f(where the row of a token begins, from nope, shared and k; its cosines and sines)
template <class F>
void each_token(const LatentKeysShape& s, int64_t element_bytes, const float* cos, const float* sin, const F& f) {
  const int64_t row_bytes = s.heads * (s.nope + 2 * s.pairs) * element_bytes;
  parallel_rows(s.batch * s.positions, row_bytes, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t batch = r / s.positions, position = r % s.positions;
      const auto at = [=](const HeadSteps& steps) { return batch * steps.batch + position * steps.position; };
      f(at(s.of_nope), at(s.of_shared), at(s.of_k), cos + position * s.pairs, sin + position * s.pairs);
    }
  });
}

template <class T>
void latent_keys_forward(void* k_address, const void* nope_address, const void* shared_address, const float* cos,
                         const float* sin, const LatentKeysShape& s) {
  T* const k = static_cast<T*>(k_address);
  const T* const nope = static_cast<const T*>(nope_address);
  const T* const shared = static_cast<const T*>(shared_address);
  each_token(s, sizeof(T), cos, sin, [&](int64_t own, int64_t of_all, int64_t key, const float* c, const float* n) {
    for (int64_t h = 0; h < s.heads; ++h)
      __builtin_memcpy(k + key + h * s.of_k.head, nope + own + h * s.of_nope.head, size_t(s.nope) * sizeof(T));
    each(s.pairs, [&](int64_t i, auto span) {
      const Pairs pairs =
          turned(load_pairs(shared + of_all + 2 * i, span), load_span(c + i, span), load_span(n + i, span));
      for (int64_t h = 0; h < s.heads; ++h) store_pairs(k + key + h * s.of_k.head + s.nope + 2 * i, pairs, span);
    });
  });
}

template <class T>
void latent_keys_backward(void* dnope_address, void* dshared_address, const void* dk_address, const float* cos,
                          const float* sin, const LatentKeysShape& s) {
  T* const dnope = static_cast<T*>(dnope_address);
  T* const dshared = static_cast<T*>(dshared_address);
  const T* const dk = static_cast<const T*>(dk_address);
  each_token(s, sizeof(T), cos, sin, [&](int64_t own, int64_t of_all, int64_t key, const float* c, const float* n) {
    for (int64_t h = 0; h < s.heads; ++h)
      __builtin_memcpy(dnope + own + h * s.of_nope.head, dk + key + h * s.of_k.head, size_t(s.nope) * sizeof(T));
    each(s.pairs, [&](int64_t i, auto span) {
      const T* const first = dk + key + s.nope + 2 * i;
      Pairs sum = load_pairs(first, span);
      for (int64_t h = 1; h < s.heads; ++h) {
        const Pairs more = load_pairs(first + h * s.of_k.head, span);
        sum.even += more.even, sum.odd += more.odd;
      }
      store_pairs(dshared + of_all + 2 * i, turned(sum, load_span(c + i, span), load_span(n + i, span) * -1.0f), span);
    });
  });
}

}  // namespace

extern const DataKernels data_kernels = {
    {fill_bytes<uint8_t>, fill_bytes<uint16_t>, fill_bytes<uint32_t>, fill_bytes<uint64_t>},
    {fill_float<float>, fill_float<bf16>, fill_float<f16>},
    {copy<KeepBits, uint8_t, uint8_t>, copy<KeepBits, uint16_t, uint16_t>, copy<KeepBits, uint32_t, uint32_t>,
     copy<KeepBits, uint64_t, uint64_t>},
    {{copy<Convert, float, float>, copy<Convert, float, bf16>, copy<Convert, float, f16>},
     {copy<Convert, bf16, float>, copy<Convert, bf16, bf16>, copy<Convert, bf16, f16>},
     {copy<Convert, f16, float>, copy<Convert, f16, bf16>, copy<Convert, f16, f16>}},
    {{quantize<E4m3, float>, quantize<E4m3, bf16>}, {quantize<E5m2, float>, quantize<E5m2, bf16>}},
    {{quantize_rows<E4m3, float>, quantize_rows<E4m3, bf16>}, {quantize_rows<E5m2, float>, quantize_rows<E5m2, bf16>}},
    {{quantize_columns<E4m3, float>, quantize_columns<E4m3, bf16>},
     {quantize_columns<E5m2, float>, quantize_columns<E5m2, bf16>}},
    transpose_eight_bits,
    widen_rows,
    {random_normal<float>, random_normal<bf16>, random_normal<f16>},
    random_integers,
    {{embedding_forward<float, float>, embedding_forward<float, bf16>},
     {embedding_forward<bf16, float>, embedding_forward<bf16, bf16>}},
    {{embedding_backward<float, float>, embedding_backward<float, bf16>},
     {embedding_backward<bf16, float>, embedding_backward<bf16, bf16>}},
    {rotary<float>, rotary<bf16>},
    {latent_keys_forward<float>, latent_keys_forward<bf16>},
    {latent_keys_backward<float>, latent_keys_backward<bf16>},
};

}  // namespace assay::cpu::ASSAY_ISA
