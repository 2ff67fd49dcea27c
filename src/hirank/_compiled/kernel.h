// The kernels, as hirank.kernels defines them.
#pragma once

namespace hirank {

inline double power(double base, int exponent) {
    double result = 1;
    for (; exponent > 0; exponent--) result *= base;
    return result;
}

struct Kernel {
    bool rbf;               // exp(-|x - y|^2 / (2 sigma^2)), or else (x.y + offset)^degree
    double inverse_square;  // sigma^-2
    int degree;
    double offset;

    double scale() const { return rbf ? inverse_square : 1; }  // of derivatives, beside the slope
    double power(double squared_norm, int exponent) const {    // (|x|^2 + offset)^exponent
        return hirank::power(squared_norm + offset, exponent);
    }
    double diagonal(double squared_norm) const { return rbf ? 1 : power(squared_norm, degree); }
    // The inner products of the derivatives of the feature map are `own` I + `outer` x x'.
    double own(double squared_norm) const {
        return rbf ? inverse_square : degree * power(squared_norm, degree - 1);
    }
    double outer(double squared_norm) const {
        return rbf || degree == 1 ? 0 : degree * (degree - 1) * power(squared_norm, degree - 2);
    }
};

}  // namespace hirank
