#include "row_basis.h"

#include <algorithm>
#include <limits>

namespace hirank {

constexpr size_t MAX_TABLE = size_t(1) << 25;  // bytes of curvature that are kept for later rows

RowBasis::RowBasis(const Kernel& kernel, const double* D, const double* R, int r, int m)
    : r(r), m(m), kernel(kernel), center(m), exponent_(m, r), root_transposed_(r, r), root_(r, r),
      points_(r, m + 1), start_(padded(r)), D_(D, D + size_t(r) * m), norm_(r), table_(r) {
    if (kernel.rbf) {
        for (int j = 0; j < r; j++) add(1.0 / r, D + size_t(j) * m, center.data(), m);
        for (int j = 0; j < r; j++) add(-1, center.data(), D_.data() + size_t(j) * m, m);
    }
    const double scale = kernel.scale();
    for (int j = 0; j < r; j++) {
        const double* d = D_.data() + size_t(j) * m;
        norm_[j] = kernel.diagonal(dot(d, d, m));
        start_.get()[j] = kernel.rbf ? -dot(d, d, m) / 2 * scale : kernel.offset;
        for (int c = 0; c < m; c++) {
            exponent_.at(c, j) = d[c] * scale;
            points_.at(j, c) = d[c] * scale;
        }
        points_.at(j, m) = scale;  // its column gives the sum of Z * S
        for (int k = 0; k <= j; k++) {
            root_transposed_.at(k, j) = R[size_t(j) * r + k];
            root_.at(j, k) = R[size_t(j) * r + k];
        }
    }
}

RowBasis::~RowBasis() {
    for (auto& one : table_) delete[] one.load();
}

void RowBasis::leave_out(Place& place, int point) const {
    place.left_out = point;
    if (point < 0) return;
    for (int k = 0; k < r; k++) place.V[k] = k < point ? 0 : root_.at(k, point);
    multiply(1, &place.V, root_, r, &place.without, Part::lower);
    place.pivot = place.without[point];
}

void RowBasis::evaluate(int count, Place* const* places) const {
    double *x[ROWS_AT_ONCE] = {}, *K[ROWS_AT_ONCE] = {}, *V[ROWS_AT_ONCE] = {},
           *Z[ROWS_AT_ONCE] = {}, *gradient[ROWS_AT_ONCE] = {};
    for (int i = 0; i < count; i++) {
        x[i] = places[i]->x;
        K[i] = places[i]->K;
        V[i] = places[i]->V;
        Z[i] = places[i]->Z;
        gradient[i] = places[i]->gradient;
    }
    multiply(count, x, exponent_, m, K, Part::all, start_.get());
    for (int i = 0; i < count; i++) {
        Place& p = *places[i];
        if (kernel.rbf) {
            const Vec half = splat(-dot(p.x, p.x, m) / 2 * kernel.inverse_square);
            for (int t = 0; t < r; t += LANES) vec(p.K + t) = exp(vec(p.K + t) + half);
            for (int t = r; t < padded(r); t++) p.K[t] = 0;
            std::copy(p.K, p.K + padded(r), p.S);
        } else {
            for (int t = 0; t < r; t += LANES) {
                const Vec one = vec(p.K + t);
                Vec slope = splat(1);
                for (int d = 1; d < kernel.degree; d++) slope *= one;
                vec(p.K + t) = slope * one;
                vec(p.S + t) = slope * splat(kernel.degree);
            }
            for (int t = r; t < padded(r); t++) p.K[t] = p.S[t] = 0;
        }
    }
    multiply(count, K, root_transposed_, r, V, Part::upper);
    multiply(count, V, root_, r, Z, Part::lower);
    for (int i = 0; i < count; i++) {
        Place& p = *places[i];
        const double own = kernel.diagonal(dot(p.x, p.x, m));
        p.value = 0.5 * (own - dot(p.V, p.V, padded(r)));
        if (p.left_out >= 0) {
            const double z = p.Z[p.left_out];
            p.value += z * z / (2 * p.pivot);
            add(-z / p.pivot, p.without, p.Z, r);
        }
        for (int t = 0; t < r; t += LANES) vec(p.Z + t) *= vec(p.S + t);
    }
    multiply(count, Z, points_, r, gradient);
    for (int i = 0; i < count; i++) {
        Place& p = *places[i];
        const double own = kernel.rbf ? p.gradient[m] : kernel.own(dot(p.x, p.x, m));
        for (int c = 0; c < m; c++) p.gradient[c] = own * p.x[c] - p.gradient[c];
    }
}

// |phi(x) - phi(d)|^2 = k(x, x) - 2 k(x, d) + k(d, d)
int RowBasis::nearest(const Place& place) const {
    int best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int j = 0; j < r; j++) {
        const double distance = norm_[j] - 2 * place.K[j];
        if (distance < least) {
            least = distance;
            best = j;
        }
    }
    return best;
}

int RowBasis::nearest(const double* x, const bool* observed) const {
    std::vector<double> own(m), weight(m);
    for (int c = 0; c < m; c++) {
        weight[c] = observed[c] ? 1 : 0;
        own[c] = observed[c] ? x[c] - center[c] : 0;
    }
    int best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int j = 0; j < r; j++) {
        const double* d = D_.data() + size_t(j) * m;
        Vec squares = splat(0);
        int c = 0;
        for (; c + LANES <= m; c += LANES) {
            const Vec difference = load(&own[c]) - load(&weight[c]) * load(d + c);
            squares += difference * difference;
        }
        double distance = sum(squares);
        for (; c < m; c++) {
            const double difference = own[c] - weight[c] * d[c];
            distance += difference * difference;
        }
        if (distance < least) {
            least = distance;
            best = j;
        }
    }
    return best;
}

const float* RowBasis::curvature(int point, std::vector<float>& scratch) const {
    const size_t size = size_t(m) * (m + 1) / 2 + 1;
    if (const float* known = table_[point].load(std::memory_order_acquire)) return known;
    // What is computed again beyond the limit has the same bits: only the time differs.
    if (stored_.fetch_add(1) >= MAX_TABLE / (size * sizeof(float))) {
        scratch.resize(size);
        compute_curvature(point, scratch.data());
        return scratch.data();
    }
    std::unique_ptr<float[]> fresh(new float[size]);
    compute_curvature(point, fresh.get());
    float* none = nullptr;  // another thread may have been first
    if (table_[point].compare_exchange_strong(none, fresh.get())) return fresh.release();
    return none;
}

// H = <d phi, d phi> - J' A^-1 J, with J = dK/dx, r x m, here row by row of J'
void RowBasis::compute_curvature(int point, float* H) const {
    Place place(m, r);
    std::copy_n(D_.data() + size_t(point) * m, m, place.x);
    Place* one = &place;
    evaluate(1, &one);
    const size_t width = padded(r);
    Memory J(m * width), V(m * width);
    std::vector<double*> in(m), out(m);
    for (int c = 0; c < m; c++) {
        in[c] = J.get() + c * width;
        out[c] = V.get() + c * width;
        const double own = kernel.rbf ? place.x[c] : 0, scale = kernel.scale();
        for (int j = 0; j < r; j++) in[c][j] = place.S[j] * scale * (D_[size_t(j) * m + c] - own);
    }
    multiply(m, in.data(), root_transposed_, r, out.data(), Part::upper);
    const double square = dot(place.x, place.x, m);
    const double first = kernel.own(square), second = kernel.outer(square);
    for (int c = 0; c < m; c++)
        for (int d = 0; d <= c; d++)
            *H++ = float((c == d ? first : 0) + second * place.x[c] * place.x[d] -
                         dot(out[c], out[d], int(width)));
    *H = float(first + second * square / m);
}

}  // namespace hirank
