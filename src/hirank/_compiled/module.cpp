// The Python module: the functions of this folder with their names, arguments and docstrings.
//
// No other file includes pybind11, which takes a compiler several seconds per file. What is between
// Python and C++ is here: arrays are checked and their addresses passed on, the interpreter's lock
// is released, signals are raised. Arrays are C-contiguous; the callers in Python see to that.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "about.h"
#include "algorithm2.h"
#include "blas.h"
#include "em.h"
#include "filters.h"
#include "lbfgs.h"
#include "mix.h"
#include "penalty.h"
#include "rows.h"
#include "signals.h"
#include "stage.h"

namespace py = pybind11;
using namespace py::literals;
using namespace hirank;

// With `noconvert`, other arrays are refused, not converted: a copy would be silent.
using Array = py::array_t<double, py::array::c_style>;
using Flags = py::array_t<bool, py::array::c_style>;
using Indices = py::array_t<int64_t, py::array::c_style>;
using Unlocked = py::gil_scoped_release;

void hirank::check_signals() {
    py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void hirank::count_work(double multiplications) {
    py::gil_scoped_acquire lock;
    py::module_::import("hirank.core.slices").attr("count_work")(multiplications);
}

namespace {

// The address of a routine that a module of SciPy exports to Cython.
void* find_routine(const char* module, const char* routine) {
    const py::dict exported = py::module_::import(module).attr("__pyx_capi__");
    return py::reinterpret_borrow<py::capsule>(exported[routine]).get_pointer<void>();
}

// ---- algorithm2.h

int pass_over(Array& X, Array& Z, const Flags& observed, Array& D, Array& last, Array& costs,
              int degree, double constant, double beta, double alpha, int batch_size,
              int max_inner, double tol, double momentum, double relaxation) {
    const Algorithm2Options options{degree, constant, beta, alpha, batch_size, max_inner,
                                    tol, momentum, relaxation};
    const Algorithm2State state{int(X.shape(0)), int(X.shape(1)), int(D.shape(0)),
                                X.mutable_data(), Z.mutable_data(), observed.data(),
                                D.mutable_data(), last.mutable_data(), costs.mutable_data()};
    Unlocked unlocked;
    return algorithm2_pass(state, options);
}

// ---- lbfgs.h: stage.h and penalty.h

Vector to_vector(const Array& array) { return Vector(array.data(), array.data() + array.size()); }
Array to_array(const Vector& v) { return Array(py::ssize_t(v.size()), v.data()); }

// Where a problem begins: the entries of X that are not fixed, row by row.
Vector free_entries(const Array& X, const Flags& fixed) {
    Vector entries;
    for (py::ssize_t i = 0; i < X.size(); i++)
        if (!fixed.data()[i]) entries.push_back(X.data()[i]);
    return entries;
}

Descent begin(const std::shared_ptr<Problem>& problem, Vector start, const Array& lower,
              const Array& upper, int memory) {
    problem->lower = to_vector(lower);
    problem->upper = to_vector(upper);
    Unlocked unlocked;
    return Descent(problem, std::move(start), memory);
}

Descent begin_stage(const Array& X, const Flags& observed, const Array& D, bool rbf,
                    double inverse_square, int degree, double offset, double beta, double alpha,
                    const Array& lower, const Array& upper, int memory, int n_threads) {
    const auto stage = make_stage(Kernel{rbf, inverse_square, degree, offset}, X.data(),
                                  observed.data(), int(X.shape(0)), int(X.shape(1)),
                                  int(D.shape(0)), beta, alpha, n_threads);
    Vector start = free_entries(X, observed);
    start.insert(start.end(), D.data(), D.data() + D.size());
    return begin(stage, std::move(start), lower, upper, memory);
}

Descent begin_penalty(const Array& X, const Flags& fixed, std::vector<int> landmarks, bool rbf,
                      double inverse_square, int degree, double offset, double gamma, double power,
                      const Array& lower, const Array& upper, int memory) {
    const auto penalty = make_penalty(Kernel{rbf, inverse_square, degree, offset}, X.data(),
                                      fixed.data(), int(X.shape(0)), int(X.shape(1)),
                                      std::move(landmarks), gamma, power);
    return begin(penalty, free_entries(X, fixed), lower, upper, memory);
}

// ---- em.h

Mixture make_mixture(const Array& log_weights, const Array& means, const Array& covariances,
                     const Array& precisions, const Array& log_dets) {
    const py::ssize_t K = means.shape(0), v = means.shape(1), size = K * v * v;
    if (K < 1 || log_weights.size() != K || log_dets.size() != K || covariances.size() != size ||
        precisions.size() != size)
        throw py::value_error("the parts of the mixture must belong together");
    return {int(K), int(v), log_weights.data(), means.data(), covariances.data(),
            precisions.data(), log_dets.data()};
}

PartialRows make_rows(const Array& X, const Flags& observed, int v) {
    if (X.ndim() != 2 || X.shape(1) != v || observed.ndim() != 2 ||
        observed.shape(0) != X.shape(0) || observed.shape(1) != v)
        throw py::value_error("the table must have as many features as the mixture");
    return {X.data(), observed.data(), size_t(X.shape(0))};
}

py::tuple moments(const Array& X, const Flags& observed, const Array& log_weights,
                  const Array& means, const Array& covariances, const Array& precisions,
                  const Array& log_dets, const std::optional<Flags>& likely) {
    const Mixture mixture = make_mixture(log_weights, means, covariances, precisions, log_dets);
    const PartialRows rows = make_rows(X, observed, mixture.v);
    const py::ssize_t n = X.shape(0), K = mixture.K, v = mixture.v;
    if (likely && (likely->ndim() != 2 || likely->shape(0) != n || likely->shape(1) != K))
        throw py::value_error("there must be a mark for each row and component");
    Array imputed({n, v}), counts({K}), totals({K, v}), squares({K, v, v});
    Flags still_likely({n, K});
    const bool* marks = likely ? likely->data() : nullptr;
    bool* marks_out = still_likely.mutable_data();
    double *out = imputed.mutable_data(), log_likelihood = 0;
    const MomentSums sums{counts.mutable_data(), totals.mutable_data(), squares.mutable_data()};
    {
        Unlocked unlocked;
        log_likelihood = mixture_moments(mixture, rows, marks, out, marks_out, sums);
    }
    return py::make_tuple(imputed, still_likely, counts, totals, squares, log_likelihood);
}

Array shares(const Array& X, const Flags& observed, const Array& log_weights, const Array& means,
             const Array& covariances, const Array& precisions, const Array& log_dets) {
    const Mixture mixture = make_mixture(log_weights, means, covariances, precisions, log_dets);
    const PartialRows rows = make_rows(X, observed, mixture.v);
    Array found({X.shape(0), py::ssize_t(mixture.K)});
    double* out = found.mutable_data();
    {
        Unlocked unlocked;
        mixture_shares(mixture, rows, out);
    }
    return found;
}

py::tuple conditional(const Array& X, const Flags& observed, const Array& log_weights,
                      const Array& means, const Array& covariances, const Array& precisions,
                      const Array& log_dets, bool deviations) {
    const Mixture mixture = make_mixture(log_weights, means, covariances, precisions, log_dets);
    const PartialRows rows = make_rows(X, observed, mixture.v);
    const py::ssize_t n = X.shape(0), v = mixture.v;
    Array filled({n, v}, X.data()), spread({deviations ? n : 0, v});
    double *out = filled.mutable_data(), *spread_out = deviations ? spread.mutable_data() : nullptr;
    {
        Unlocked unlocked;
        mixture_conditional(mixture, rows, out, spread_out);
    }
    return py::make_tuple(filled, spread);
}

// ---- filters.h

// Rows of `vectors`: x, before, y, mean, unit, c1, c2, reach, growth.
py::tuple filter(const Array& vectors, const Flags& known, const Array& P, const Array& P_cross,
                 const Array& P_before, const Array& Q_sum, bool ordered, bool trend, bool learn,
                 double weight, double shrinkage, double ridge, double min_variance,
                 double inflation, double max_innovation, double max_move, double keep) {
    const py::ssize_t m = known.size(), size = m * m;
    if (vectors.ndim() != 2 || vectors.shape(0) != 9 || vectors.shape(1) != m || P.size() != size ||
        P_cross.size() != size || P_before.size() != size || Q_sum.size() != size)
        throw py::value_error("the parts of the filter must describe the same features");
    const double* v = vectors.data();
    const FilterState state{int(m),         v,
                            v + m,          P.data(),
                            P_cross.data(), P_before.data(),
                            Q_sum.data()};
    const FilterRow row{v + 2 * m, known.data(), v + 3 * m, v + 4 * m,
                        v + 5 * m, v + 6 * m,    v + 7 * m, v + 8 * m};
    const FilterOptions options{ordered,   trend,          weight,   shrinkage, ridge, min_variance,
                                inflation, max_innovation, max_move, keep};
    const py::ssize_t some = learn ? m : 0;
    Array imputed(m), variance(m), x(some), before(some), P_new({some, some}),
        cross_new({some, some}), before_new({some, some}), Q_new({some, some});
    const FilterResult result{imputed.mutable_data(), variance.mutable_data(),
                              learn,                  x.mutable_data(),
                              before.mutable_data(),  P_new.mutable_data(),
                              cross_new.mutable_data(), before_new.mutable_data(),
                              Q_new.mutable_data()};
    {
        Unlocked unlocked;
        filter_row(state, row, options, result);
    }
    return py::make_tuple(imputed, variance, x, before, P_new, cross_new, before_new, Q_new);
}

// ---- mix.h

py::tuple weights(const Array& moments, const Array& entries, const Array& pooled,
                  const Array& pooled_entries, const Array& prior, const Indices& features,
                  const Indices& ages, const Array& units, double count, double few,
                  double neighbor, double ridge) {
    const py::ssize_t K = prior.size(), b = pooled_entries.size(), n = features.size();
    const py::ssize_t m = entries.size() / std::max<py::ssize_t>(b, 1);
    if (K < 1 || moments.size() != m * b * K * K || pooled.size() != b * K * K ||
        ages.size() != n || units.size() != n)
        throw py::value_error("the moments must describe the same features, ages and predictions");
    for (py::ssize_t e = 0; e < n; e++)
        if (features.data()[e] < 0 || features.data()[e] >= m || ages.data()[e] < 0 ||
            ages.data()[e] >= b)
            throw py::value_error("features and ages must be those of the moments");
    Array found({n, K}), squares({n, K, K});
    const MixMoments mix{int(K),        int(b),
                         moments.data(), entries.data(),
                         pooled.data(),  pooled_entries.data(),
                         prior.data()};
    double *out = found.mutable_data(), *squares_out = squares.mutable_data();
    mix_weights(mix, {count, few, neighbor, ridge}, size_t(n), features.data(), ages.data(),
                units.data(), out, squares_out);
    return py::make_tuple(found, squares);
}

// ---- rows.h

std::unique_ptr<RowBasis> make_basis(bool rbf, double inverse_square, int degree, double offset,
                                     const Array& D, const Array& root) {
    if (D.ndim() != 2 || root.ndim() != 2 || root.shape(0) != D.shape(0) ||
        root.shape(1) != D.shape(0))
        throw py::value_error("D must be r x m and the root r x r.");
    return std::make_unique<RowBasis>(Kernel{rbf, inverse_square, degree, offset}, D.data(),
                                      root.data(), int(D.shape(0)), int(D.shape(1)));
}

void check_rows(const RowBasis& basis, const Array& X) {
    if (X.ndim() != 2 || X.shape(1) != basis.m) throw py::value_error("X must be n x m.");
}

void check_rows(const RowBasis& basis, const Array& X, const Flags& observed) {
    check_rows(basis, X);
    if (observed.ndim() != 2 || observed.shape(0) != X.shape(0) || observed.shape(1) != basis.m)
        throw py::value_error("observed must be n x m.");
}

void check_left_out(const RowBasis& basis, const Array& X, const std::optional<Indices>& left_out) {
    if (!left_out) return;
    if (left_out->size() != X.shape(0)) throw py::value_error("left_out must have n values.");
    for (py::ssize_t i = 0; i < left_out->size(); i++)
        if (left_out->data()[i] >= basis.r) throw py::index_error("left_out must be points of D.");
}

template <class A>
auto data(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

py::tuple minimize(const RowBasis& basis, Array& X, const Flags& observed, const Indices& rows,
                   const std::optional<Array>& lower, const std::optional<Array>& upper,
                   const std::optional<Indices>& left_out, int rounds, int memory,
                   double tolerance, double decrease, double damping) {
    check_rows(basis, X, observed);
    if (memory < 1 || memory > MAX_MEMORY) throw py::value_error("memory is out of range.");
    for (py::ssize_t i = 0; i < rows.size(); i++)
        if (rows.data()[i] < 0 || rows.data()[i] >= X.shape(0))
            throw py::index_error("rows must be positions in X.");
    if (lower && (!upper || lower->size() != basis.m || upper->size() != basis.m))
        throw py::value_error("bounds must have m values.");
    check_left_out(basis, X, left_out);
    const RowProblem problem{X.mutable_data(), observed.data(), data(lower), data(upper),
                             rows.data(), data(left_out), int(rows.size())};
    const Rules rules{rounds, memory, tolerance, decrease, damping};
    Array values(rows.size());
    Indices evaluations(rows.size());
    double* values_out = values.mutable_data();
    int64_t* evaluations_out = evaluations.mutable_data();
    {
        Unlocked unlocked;
        minimize_rows(basis, rules, problem, values_out, evaluations_out);
    }
    return py::make_tuple(values, evaluations);
}

py::tuple evaluate(const RowBasis& basis, const Array& X, const std::optional<Indices>& left_out) {
    check_rows(basis, X);
    check_left_out(basis, X, left_out);
    const py::ssize_t n = X.shape(0), m = X.shape(1);
    Array values(n), gradients({n, m});
    evaluate_rows(basis, X.data(), data(left_out), n, values.mutable_data(),
                  gradients.mutable_data());
    return py::make_tuple(values, gradients);
}

Indices nearest(const RowBasis& basis, const Array& X, const Flags& observed) {
    check_rows(basis, X, observed);
    Indices found(X.shape(0));
    int64_t* out = found.mutable_data();
    Unlocked unlocked;
    find_nearest(basis, X.data(), observed.data(), X.shape(0), out);
    return found;
}

}  // namespace

PYBIND11_MODULE(HIRANK_MODULE, module) {
    module.doc() = "The compiled core of hirank, for one instruction set.";
    module.attr("fingerprint") = fingerprint();
    module.def("supports", &supports, "instruction_set"_a,
               "Return whether this processor can run a module of this name.");
    blas::load(&find_routine);

    module.def("algorithm2_pass", &pass_over, "X"_a.noconvert(), "Z"_a.noconvert(),
               "observed"_a.noconvert(), "D"_a.noconvert(), "last"_a.noconvert(),
               "costs"_a.noconvert(), "degree"_a, "constant"_a, "beta"_a, "alpha"_a,
               "batch_size"_a, "max_inner"_a, "tol"_a, "momentum"_a, "relaxation"_a,
               "Pass over the rows of X once, in place, and return how many were rejected.");

    module.def("filter_row", &filter, "vectors"_a.noconvert(), "known"_a.noconvert(),
               "P"_a.noconvert(), "P_cross"_a.noconvert(), "P_before"_a.noconvert(),
               "Q_sum"_a.noconvert(), "ordered"_a, "trend"_a, "learn"_a, "weight"_a, "shrinkage"_a,
               "ridge"_a, "min_variance"_a, "inflation"_a, "max_innovation"_a, "max_move"_a,
               "keep"_a,
               "Return what a filter expects of a row, with variances, and its state after it.");

    module.def("mix_weights", &weights, "moments"_a.noconvert(), "entries"_a.noconvert(),
               "pooled"_a.noconvert(), "pooled_entries"_a.noconvert(), "prior"_a.noconvert(),
               "features"_a.noconvert(), "ages"_a.noconvert(), "units"_a.noconvert(), "count"_a,
               "few"_a, "neighbor"_a, "ridge"_a,
               "Return the weights of predictions of entries, and mean squares of their errors.");

    // Classes are local: the module of another instruction set has classes of the same names.
    py::class_<Descent>(module, "Descent", py::module_local(),
                        "Where an optimization by L-BFGS stands.")
        .def_property_readonly("value", &Descent::value)
        .def_property_readonly("x", [](const Descent& state) { return to_array(state.x()); })
        .def_property_readonly("gradient",
                               [](const Descent& state) { return to_array(state.gradient()); })
        .def("step", &Descent::step, py::call_guard<Unlocked>(),
             "Return the state after one evaluation.")
        .def("renew", &Descent::renew, py::call_guard<Unlocked>(),
             "Begin again from the same point, with its curvature.");
    module.def("begin_stage", &begin_stage, "X"_a, "observed"_a, "D"_a, py::kw_only(), "rbf"_a,
               "inverse_square"_a, "degree"_a, "offset"_a, "beta"_a, "alpha"_a, "lower"_a,
               "upper"_a, "memory"_a, "n_threads"_a,
               "Return the start of one stage of a dictionary fit, from X (n x m) and D (r x m).");
    module.def("begin_penalty", &begin_penalty, "X"_a, "fixed"_a, "landmarks"_a, py::kw_only(),
               "rbf"_a, "inverse_square"_a, "degree"_a, "offset"_a, "gamma"_a, "power"_a,
               "lower"_a, "upper"_a, "memory"_a,
               "Return the start of a stage of a low-rank kernel matrix, from X (n x m).");

    module.def("mixture_moments", &moments, "X"_a.noconvert(), "observed"_a.noconvert(),
               "log_weights"_a.noconvert(), "means"_a.noconvert(), "covariances"_a.noconvert(),
               "precisions"_a.noconvert(), "log_dets"_a.noconvert(), "likely"_a.noconvert(),
               "Return imputed rows, likely components (n x K), counts, totals, squares and the "
               "log-likelihood of rows.");
    module.def("mixture_shares", &shares, "X"_a.noconvert(), "observed"_a.noconvert(),
               "log_weights"_a.noconvert(), "means"_a.noconvert(), "covariances"_a.noconvert(),
               "precisions"_a.noconvert(), "log_dets"_a.noconvert(),
               "Return the posterior probabilities of the components given each row, n x K.");
    module.def("mixture_conditional", &conditional, "X"_a.noconvert(), "observed"_a.noconvert(),
               "log_weights"_a.noconvert(), "means"_a.noconvert(), "covariances"_a.noconvert(),
               "precisions"_a.noconvert(), "log_dets"_a.noconvert(), "deviations"_a,
               "Return conditional means and, if asked for, standard deviations of rows.");

    py::class_<RowBasis>(module, "RowBasis", py::module_local(),
                         "A dictionary seen through a kernel, for single rows.")
        .def(py::init(&make_basis), py::kw_only(), "rbf"_a, "inverse_square"_a = 1.0,
             "degree"_a = 1, "offset"_a = 0.0, "D"_a.noconvert(), "root"_a.noconvert())
        .def("evaluate", &evaluate, "X"_a.noconvert(), "left_out"_a = py::none(),
             "Return the part of each row in F, n, and its gradient, n x m.")
        .def("minimize", &minimize, "X"_a.noconvert(), "observed"_a.noconvert(),
             "rows"_a.noconvert(), py::kw_only(), "lower"_a, "upper"_a, "left_out"_a, "rounds"_a,
             "memory"_a, "tolerance"_a, "decrease"_a, "damping"_a,
             "Move the missing entries of some rows of X, in place, to lower values of F.\n\n"
             "Return the value of F and the number of evaluations of each of the rows.")
        .def("nearest", &nearest, "X"_a.noconvert(), "observed"_a.noconvert(),
             "Return the point of the dictionary nearest to each row on its observed entries.");
}
