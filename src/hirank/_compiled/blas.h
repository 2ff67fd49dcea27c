// BLAS and LAPACK, of the library that SciPy is built with, for matrices in C order.
// Routines read columns: a matrix in C order is its transpose to them, a lower triangle an upper.
#pragma once
#include <cstddef>
#include <vector>

using std::size_t;

namespace hirank {

using Vector = std::vector<double>;

namespace blas {

// Get the address of each routine from the modules of scipy.linalg that export them; called once,
// when the module is imported.
void load(void* (*find)(const char* module, const char* routine));

// C (n x k) = A (n x m) B' (k x m)
void product_transposed(int n, int k, int m, const double* A, const double* B, double* C);
// C (n x k) = A (n x m) B (m x k)
void product(int n, int k, int m, const double* A, const double* B, double* C);
// C (n x k) = A' (m x n) B (m x k) + add C
void transposed_product(int n, int k, int m, const double* A, const double* B, double* C,
                        double add = 0);
// The lower triangle of C (r x r) = A'A + add C, A of size n x r
void gram_of_columns(int n, int r, const double* A, double* C, double add = 0);
// The lower triangle of C (n x n) = factor A A' + add C, A of size n x r
void gram_of_rows(int n, int r, const double* A, double* C, double factor = 1, double add = 0);
// B (n x r) <- B T, or B T' if `transposed`, with a lower triangle T (r x r)
void times_lower(int n, int r, double* B, const double* T, bool transposed);
// A (r x r) <- L^-1 with A = L L'; 0 above the diagonal. False if A is not positive definite.
bool inverse_root(int r, double* A);
// The lower triangle of A (n x n) <- that of A^-1. False if A is not positive definite.
bool inverse(int n, double* A);
// A (n x n) <- its eigenvectors, one per row; eigenvalues ascend. Work memory is kept in `work`.
bool eigenvectors(int n, double* A, double* values, Vector& work, std::vector<int>& integers);
// Copy the lower triangle of A (n x n) to the upper one.
void symmetrize(int n, double* A);

}  // namespace blas
}  // namespace hirank
