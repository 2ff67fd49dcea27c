#include "blas.h"

#include <algorithm>
#include <type_traits>

namespace hirank {
namespace blas {
namespace {

using Matrix = const double*;
struct Routines {
    void (*dgemm)(const char*, const char*, const int*, const int*, const int*, const double*,
                  Matrix, const int*, Matrix, const int*, const double*, double*, const int*);
    void (*dsyrk)(const char*, const char*, const int*, const int*, const double*, Matrix,
                  const int*, const double*, double*, const int*);
    void (*dtrmm)(const char*, const char*, const char*, const char*, const int*, const int*,
                  const double*, Matrix, const int*, double*, const int*);
    void (*dpotrf)(const char*, const int*, double*, const int*, int*);
    void (*dpotri)(const char*, const int*, double*, const int*, int*);
    void (*dtrtri)(const char*, const char*, const int*, double*, const int*, int*);
    void (*dsyevd)(const char*, const char*, const int*, double*, const int*, double*, double*,
                   const int*, int*, const int*, int*);
} routine;

const double one = 1;
const int MAX_LAPACK = 64;  // size up to which LAPACK inverts a triangle, as in core/triangular.py

// Invert a lower triangle in place, by halves, so that most of the work is matrix products.
bool invert_lower(int r, double* L, int stride) {
    if (r <= MAX_LAPACK) {
        int info;
        routine.dtrtri("U", "N", &r, L, &stride, &info);
        return info == 0;
    }
    int h = r / 2, k = r - h;
    double *low = L + static_cast<size_t>(h) * stride, *right = low + h;
    if (!invert_lower(h, L, stride) || !invert_lower(k, right, stride)) return false;
    const double minus = -1;
    routine.dtrmm("L", "U", "N", "N", &h, &k, &one, L, &stride, low, &stride);
    routine.dtrmm("R", "U", "N", "N", &h, &k, &minus, right, &stride, low, &stride);
    return true;
}

}  // namespace

void load(void* (*find)(const char* module, const char* routine)) {
    const auto read = [find](const char* module, const char* name, auto& function) {
        using Function = std::remove_reference_t<decltype(function)>;
        function = reinterpret_cast<Function>(find(module, name));
    };
    const char *blas = "scipy.linalg.cython_blas", *lapack = "scipy.linalg.cython_lapack";
    read(blas, "dgemm", routine.dgemm);
    read(blas, "dsyrk", routine.dsyrk);
    read(blas, "dtrmm", routine.dtrmm);
    read(lapack, "dpotrf", routine.dpotrf);
    read(lapack, "dpotri", routine.dpotri);
    read(lapack, "dtrtri", routine.dtrtri);
    read(lapack, "dsyevd", routine.dsyevd);
}

void product_transposed(int n, int k, int m, const double* A, const double* B, double* C) {
    const double zero = 0;
    routine.dgemm("T", "N", &k, &n, &m, &one, B, &m, A, &m, &zero, C, &k);
}

void product(int n, int k, int m, const double* A, const double* B, double* C) {
    const double zero = 0;
    routine.dgemm("N", "N", &k, &n, &m, &one, B, &k, A, &m, &zero, C, &k);
}

void transposed_product(int n, int k, int m, const double* A, const double* B, double* C,
                        double add) {
    routine.dgemm("N", "T", &k, &n, &m, &one, B, &k, A, &n, &add, C, &k);
}

void gram_of_columns(int n, int r, const double* A, double* C, double add) {
    routine.dsyrk("U", "N", &r, &n, &one, A, &r, &add, C, &r);
}

void gram_of_rows(int n, int r, const double* A, double* C, double factor, double add) {
    routine.dsyrk("U", "T", &n, &r, &factor, A, &r, &add, C, &n);
}

void times_lower(int n, int r, double* B, const double* T, bool transposed) {
    routine.dtrmm("L", "U", transposed ? "T" : "N", "N", &r, &n, &one, T, &r, B, &r);
}

bool inverse_root(int r, double* A) {
    int info;
    routine.dpotrf("U", &r, A, &r, &info);
    if (info) return false;
    for (int i = 0; i < r; i++)
        std::fill(A + static_cast<size_t>(i) * r + i + 1, A + static_cast<size_t>(i + 1) * r, 0.0);
    return invert_lower(r, A, r);
}

bool inverse(int n, double* A) {
    int info;
    routine.dpotrf("U", &n, A, &n, &info);
    if (!info) routine.dpotri("U", &n, A, &n, &info);
    return info == 0;
}

bool eigenvectors(int n, double* A, double* values, Vector& work, std::vector<int>& integers) {
    int info, size = 1 + 6 * n + 2 * n * n, n_integers = 3 + 5 * n;
    work.resize(size);
    integers.resize(n_integers);
    routine.dsyevd("V", "U", &n, A, &n, values, work.data(), &size, integers.data(), &n_integers,
                   &info);
    return info == 0;
}

void symmetrize(int n, double* A) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            A[static_cast<size_t>(j) * n + i] = A[static_cast<size_t>(i) * n + j];
}

}  // namespace blas
}  // namespace hirank
