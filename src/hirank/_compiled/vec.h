// Vectors of doubles, and products of matrices whose sums have one fixed order.
//
// The lanes of a vector run over outputs and each sum runs over its terms in order, so a row of a
// product is the same, to the bit, alone and beside any others.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

namespace hirank {

#if defined(__AVX512F__)
constexpr int LANES = 8, ROWS_AT_ONCE = 8;  // 16 of 32 registers contain sums
#elif defined(__AVX__)
constexpr int LANES = 4, ROWS_AT_ONCE = 6;  // 12 of 16 registers
#else
constexpr int LANES = 2, ROWS_AT_ONCE = 6;
#endif
constexpr int WIDTH = 2 * LANES;  // columns of a panel

typedef double Vec __attribute__((vector_size(8 * LANES)));
typedef int64_t Bits __attribute__((vector_size(8 * LANES)));

inline Vec splat(double a) { return Vec{} + a; }
inline Vec& vec(double* p) { return *reinterpret_cast<Vec*>(p); }
inline const Vec& vec(const double* p) { return *reinterpret_cast<const Vec*>(p); }
inline Vec load(const double* p) {  // from any address
    Vec a;
    std::memcpy(&a, p, sizeof a);
    return a;
}
inline void store(double* p, Vec a) { std::memcpy(p, &a, sizeof a); }

inline double sum(Vec a) {
    double s[LANES];
    std::memcpy(s, &a, sizeof a);
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) s[i] = s[2 * i] + s[2 * i + 1];
    return s[0];
}

inline double dot(const double* a, const double* b, int n) {
    Vec s = splat(0);
    int i = 0;
    for (; i + LANES <= n; i += LANES) s += load(a + i) * load(b + i);
    double rest = sum(s);
    for (; i < n; i++) rest += a[i] * b[i];
    return rest;
}

// y += a x
inline void add(double a, const double* __restrict x, double* __restrict y, int n) {
    const Vec factor = splat(a);
    int i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) + factor * load(x + i));
    for (; i < n; i++) y[i] += a * x[i];
}

// e^x, within about one unit in the last place for -700 < x < 700, and limited beyond; NaN stays.
// x = n log 2 + r with |r| <= log(2) / 2, e^r by its series to the 13th power, 2^n as an exponent.
inline Vec exp(Vec x) {
    const Vec given = x, round = splat(6755399441055744.0);  // 1.5 * 2^52: adding it rounds
    x = x < splat(-700) ? splat(-700) : x;
    x = x > splat(700) ? splat(700) : x;
    Vec n = x * splat(1.4426950408889634074) + round;
    const Bits exponent = (Bits)n << 52;
    n -= round;
    Vec r = x - n * splat(6.93147180369123816490e-01);
    r = r - n * splat(1.90821492927058770002e-10);
    Vec p = splat(1.0 / 6227020800.0);
    constexpr double series[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                 1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                 1.0 / 24,        1.0 / 6,        0.5,           1.0,
                                 1.0};
    for (double coefficient : series) p = p * r + splat(coefficient);
    p = (Vec)((Bits)p + exponent);
    return given == given ? p : given;
}

// x = e^x
inline void exp(double* x, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) store(x + i, exp(load(x + i)));
    if (i == n) return;
    double rest[LANES] = {};
    std::copy(x + i, x + n, rest);
    store(rest, exp(load(rest)));
    std::copy(rest, rest + (n - i), x + i);
}

// Memory for vectors, which is zero at first.
class Memory {
  public:
    Memory() = default;
    explicit Memory(size_t count) { resize(count); }
    Memory(Memory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
    Memory& operator=(Memory&&) = delete;
    ~Memory() { std::free(data_); }
    void resize(size_t count) {
        std::free(data_);
        const size_t bytes = (count * sizeof(double) + 63) / 64 * 64 + 64;
        data_ = static_cast<double*>(std::aligned_alloc(64, bytes));
        if (!data_) throw std::bad_alloc();
        std::memset(data_, 0, bytes);
    }
    double* get() { return data_; }
    const double* get() const { return data_; }

  private:
    double* data_ = nullptr;
};

inline int padded(int n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }

// A matrix, inner x outer, stored in panels of WIDTH columns, with zeros beyond the last column.
class Panels {
  public:
    Panels(int inner, int outer)
        : inner_(inner), outer_(padded(outer)), data_(size_t(inner) * padded(outer)) {}
    double& at(int i, int j) {
        return data_.get()[size_t(j / WIDTH * WIDTH) * inner_ + size_t(i) * WIDTH + j % WIDTH];
    }
    double at(int i, int j) const { return const_cast<Panels*>(this)->at(i, j); }
    int outer() const { return outer_; }
    const double* panel(int j) const { return data_.get() + size_t(j) * inner_; }

  private:
    int inner_, outer_;
    Memory data_;
};

// Columns j, ... of C = start + A[:, i0 : i1] B[i0 : i1] in COUNT panels of WIDTH, for ROWS rows
template <int ROWS, int COUNT>
inline void multiply_tile(const double* const* A, const Panels& B, int i0, int i1, int j,
                          double* const* C, const double* start) {
    Vec c[ROWS][2 * COUNT];
    const double* b[COUNT];
    for (int k = 0; k < ROWS; k++)
        for (int w = 0; w < 2 * COUNT; w++)
            c[k][w] = start ? vec(start + j + w * LANES) : splat(0);
    for (int p = 0; p < COUNT; p++) b[p] = B.panel(j + p * WIDTH);
    for (int i = i0; i < i1; i++)
        for (int p = 0; p < COUNT; p++) {
            const double* at = b[p] + size_t(i) * WIDTH;
            const Vec b0 = vec(at), b1 = vec(at + LANES);
            for (int k = 0; k < ROWS; k++) {
                const Vec a = splat(A[k][i]);
                c[k][2 * p] += a * b0;
                c[k][2 * p + 1] += a * b1;
            }
        }
    for (int k = 0; k < ROWS; k++)
        for (int w = 0; w < 2 * COUNT; w++) vec(C[k] + j + w * LANES) = c[k][w];
}

enum class Part { all, upper, lower };  // of B that is not zero

// Several panels at once for few rows: a processor adds to eight sums or more in the time of one.
template <int ROWS>
inline void multiply_rows(const double* const* A, const Panels& B, int inner, double* const* C,
                          Part part, const double* start) {
    constexpr int COUNT = ROWS == 1 ? 4 : ROWS <= 3 ? 2 : 1;
    int j = 0;
    const auto multiply_panels = [&](auto count) {
        constexpr int panels = decltype(count)::value;
        for (; j + panels * WIDTH <= B.outer(); j += panels * WIDTH) {
            const int end = j + panels * WIDTH;  // beyond a triangle, zeros are added
            multiply_tile<ROWS, panels>(A, B, part == Part::lower ? std::min(j, inner) : 0,
                                        part == Part::upper ? std::min(end, inner) : inner, j, C,
                                        start);
        }
    };
    multiply_panels(std::integral_constant<int, COUNT>{});
    multiply_panels(std::integral_constant<int, 1>{});
}

// C = start + A B for rows of A and C at separate places; C has B.outer() columns
inline void multiply(int rows, const double* const* A, const Panels& B, int inner, double* const* C,
                     Part part = Part::all, const double* start = nullptr) {
    for (; rows >= ROWS_AT_ONCE; rows -= ROWS_AT_ONCE, A += ROWS_AT_ONCE, C += ROWS_AT_ONCE)
        multiply_rows<ROWS_AT_ONCE>(A, B, inner, C, part, start);
    switch (rows) {
        case 7: return multiply_rows<7>(A, B, inner, C, part, start);
        case 6: return multiply_rows<6>(A, B, inner, C, part, start);
        case 5: return multiply_rows<5>(A, B, inner, C, part, start);
        case 4: return multiply_rows<4>(A, B, inner, C, part, start);
        case 3: return multiply_rows<3>(A, B, inner, C, part, start);
        case 2: return multiply_rows<2>(A, B, inner, C, part, start);
        case 1: return multiply_rows<1>(A, B, inner, C, part, start);
    }
}

}  // namespace hirank
