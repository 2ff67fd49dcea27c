/* The three products of an inner iteration of Algorithm 2, D x, C k and D'q, by BLAS and nothing
   else. `dgemv` is the address of the routine; D is r x m and C r x r, by rows. */
typedef void gemv(const char *, const int *, const int *, const double *, const double *,
                  const int *, const double *, const int *, const double *, double *, const int *);

void bare_products(gemv *dgemv, const double *D, const double *C, const double *x, double *k,
                   double *z, double *q, int r, int m, int count) {
    const double one = 1, zero = 0;
    const int step = 1;
    for (int i = 0; i < count; i++) {
        dgemv("T", &m, &r, &one, D, &m, x, &step, &zero, k, &step);
        dgemv("N", &r, &r, &one, C, &r, k, &step, &zero, z, &step);
        dgemv("N", &m, &r, &one, D, &m, z, &step, &zero, q, &step);
    }
}
