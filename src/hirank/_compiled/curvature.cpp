#include "curvature.h"

#include <algorithm>
#include <cmath>

#include "signals.h"

namespace hirank {
namespace {

const double DAMPING = 0.1, MIN_DIAGONAL = 1e-4;  // as in hirank/core/curvature.py
const size_t CHUNK_ENTRIES = 200000;              // of the products of one block of rows
const int LINE = 8;                               // floats in a vector register

int padded(int count) { return (count + LINE - 1) / LINE * LINE; }

}  // namespace

InverseCurvature::InverseCurvature(const Basis& basis, const FreeEntries& free, const Rows& rows,
                                   const Vector& K, const double* S, const Vector* root,
                                   const Vector& weights)
    : free_(free), first_(1, 0), unit_(0) {
    const Kernel& kernel = basis.kernel;
    const int n = static_cast<int>(rows.squares.size()), m = basis.m, r = basis.r;
    const int height = root ? static_cast<int>(root->size() / r) : r;
    int most = 0;
    for (int i = 0; i < n; i++) {
        const int q = free.count(i);
        first_.push_back(first_.back() + static_cast<size_t>(q) * padded(q));
        most = std::max(most, q);
        unit_ += (kernel.own(rows.squares[i]) +
                  kernel.outer(rows.squares[i]) * rows.squares[i] / m) / n;
    }
    if (!(unit_ > 0)) unit_ = 1;
    blocks_.assign(first_.back(), 0.0f);
    Vector J, products, H(static_cast<size_t>(most) * most);
    double work = 0;  // of the last block
    for (int begin = 0, end; begin < n; begin = end, work = 0) {
        size_t entries = 0;
        if (begin) check_signals();
        for (end = begin; end < n && (end == begin || entries < CHUNK_ENTRIES); end++)
            entries += static_cast<size_t>(free.count(end)) * r;
        J.resize(entries);
        double* line = J.data();
        for (int i = begin; i < end; i++) {
            const double* x = rows.x.data() + static_cast<size_t>(i) * m;
            const double* s = (S ? S : K.data()) + static_cast<size_t>(i) * r;
            for (size_t a = free.first[i]; a < free.first[i + 1]; a++, line += r) {
                const double* d = basis.columns.data() + static_cast<size_t>(free.features[a]) * r;
                const double origin = kernel.rbf ? x[free.features[a]] : 0;
                for (int j = 0; j < r; j++) line[j] = kernel.scale() * s[j] * (d[j] - origin);
            }
        }
        const int lines = static_cast<int>(free.first[end] - free.first[begin]);
        if (root) {
            products.resize(static_cast<size_t>(lines) * height);
            if (height)
                blas::product_transposed(lines, height, r, J.data(), root->data(), products.data());
        } else {
            blas::times_lower(lines, r, J.data(), basis.root.data(), true);
        }
        const double* B = root ? products.data() : J.data();
        for (int i = begin; i < end; i++) {
            const int q = free.count(i), stride = padded(q);
            if (!q) continue;
            work += static_cast<double>(q) * q * (height + q);
            const double* x = rows.x.data() + static_cast<size_t>(i) * m;
            const int* features = free.features.data() + free.first[i];
            const double own = kernel.own(rows.squares[i]), outer = kernel.outer(rows.squares[i]);
            const double size = own + outer * rows.squares[i] / m;
            for (int a = 0; a < q; a++) {
                for (int b = 0; b < a; b++)
                    H[static_cast<size_t>(a) * q + b] = outer * x[features[a]] * x[features[b]];
                H[static_cast<size_t>(a) * q + a] = own + outer * x[features[a]] * x[features[a]];
            }
            if (height) blas::gram_of_rows(q, height, B, H.data(), -1, 1);
            B += static_cast<size_t>(q) * height;
            double mean = 0;
            for (int a = 0; a < q; a++) mean += H[static_cast<size_t>(a) * q + a] / q;
            const double damping = DAMPING * std::max(mean, MIN_DIAGONAL * size);
            for (int a = 0; a < q; a++) H[static_cast<size_t>(a) * q + a] += damping;
            const double scale = unit_ / (weights.empty() ? 1 : weights[i]);
            const bool positive = blas::inverse(q, H.data());
            float* block = blocks_.data() + first_[i];
            for (int a = 0; a < q; a++)
                for (int b = 0; b <= a; b++) {
                    double entry = H[static_cast<size_t>(a) * q + b];
                    if (!positive) entry = a == b ? 1 / damping : 0;  // lost in rounding
                    block[a * stride + b] = block[b * stride + a] =
                        static_cast<float>(entry * scale);
                }
        }
        count_work(work);
    }
}

void InverseCurvature::apply(const double* vector, double* out) const {
    const size_t size = free_.features.size();
    double largest = 0;
    for (size_t i = 0; i < size; i++) largest = std::max(largest, std::fabs(vector[i]));
    if (!(largest > 0)) largest = 1;
    std::vector<float> line;
    for (size_t i = 0; i + 1 < free_.first.size(); i++) {
        const int q = free_.count(static_cast<int>(i)), stride = padded(q);
        const float* block = blocks_.data() + first_[i];
        const size_t begin = free_.first[i];
        line.assign(stride, 0.0f);
        float* sums = line.data();
        for (int b = 0; b < q; b++, block += stride) {
            const float v = static_cast<float>(vector[begin + b] / largest);
            for (int a = 0; a < stride; a += LINE)
                for (int w = 0; w < LINE; w++) sums[a + w] += v * block[a + w];
        }
        for (int a = 0; a < q; a++) out[begin + a] = sums[a] * (largest / unit_);
    }
}

}  // namespace hirank
