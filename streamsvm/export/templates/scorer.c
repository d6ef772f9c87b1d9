/* A classifier, written by streamsvm @version@. C99; it needs no other file than this one, and -lm.

   Compile it with -O2 or -O3, and declare what you use:

     int @name@_predict(const double *x);                            the place of the label in @name@_labels
     int @name@_values(const double *x, double *values);             @name@_n_values decision values
     int @name@_probabilities(const double *x, double *p);           @name@_n_labels probabilities
     int @name@_predict_set(const double *x, int *places);           the labels that cannot be excluded: how many,
                                                                     and their places, the most probable first
     extern const int @name@_n_features, @name@_n_labels, @name@_n_values;
     extern const char *const @name@_features[], *const @name@_labels[];

   x has the features in the order of @name@_features; NaN stands for a missing one. The functions return -1 if a
   feature is infinite, or a result is not finite; otherwise predict returns a place, predict_set a count, and the
   others 0. There is predict_set if the model decides: one label is decided, and several are a question for a person.
   They use the stack only, so several threads may call them.

   It computes in double precision; with -DSTREAMSVM_FLOAT in single precision, which is twice as fast. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 2)
#error "compile without -ffast-math, and on 32-bit x86 with -msse2 -mfpmath=sse: exp2_of relies on how numbers are rounded"
#endif

enum { RBF, LINEAR, POLY, SIGMOID };
enum { THRESHOLD, ONE_VS_REST, ONE_VS_ONE };

#define KERNEL @kernel@
#define DEGREE @degree@
#define DECISION @decision@
#define FEATURES @n_features@
#define MACHINES @n_machines@
#define LABELS @n_labels@
#define BLOCK 32                /* members that are computed together */
#define BLOCKS @n_blocks@
#define SPARSE @sparse@
#define DECIDES @decides@
#define CORRECTS @corrects@

#ifdef STREAMSVM_FLOAT
typedef float real;
#else
typedef double real;
#endif

/* Code for several kinds of processors, of which the program chooses one when it starts. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

const int @name@_n_features = FEATURES, @name@_n_labels = LABELS, @name@_n_values = DECISION == THRESHOLD ? 1 : LABELS;
const char *const @name@_features[FEATURES] = {@features@};
const char *const @name@_labels[LABELS] = {@labels@};

static const double coef0 = @coef0@, limit = @limit@, threshold = @threshold@;
static const double shifts[FEATURES] = {@shift@};
static const double factors[FEATURES] = {@factor@};
static const double missing[FEATURES] = {@missing@};
static const double biases[MACHINES] = {@bias@};
static const double slopes[MACHINES][2] = {@slopes@};
#if DECIDES
static const double thresholds[LABELS] = {@thresholds@};
#endif
/* of each member: its squared norm, and what its kernel multiplies */
static const real norms[BLOCKS * BLOCK] = {@norms@};
static const real rates[BLOCKS * BLOCK] = {@rates@};
static const real coefficients[BLOCKS][MACHINES][BLOCK] = {@coefficients@};
#if SPARSE /* of each feature: the members that have it, and its values in them */
static const int starts[FEATURES + 1] = {@starts@};
static const int owners[] = {@owners@};
static const real entries[] = {@entries@};
#else
static const real members[BLOCKS][FEATURES][BLOCK] = {@members@};
#endif

/* 2^v, by 2^k times a polynomial in v - k, |v - k| <= 1/2. Adding 3 * 2^22 (3 * 2^51) rounds v to the integer k. */
static inline real exp2_of(real v)
{
#ifdef STREAMSVM_FLOAT
    float n, f, p;
    uint32_t k, bits;
    v = v < -126.0f ? -126.0f : v;
    n = v + 12582912.0f;
    f = v - (n - 12582912.0f);
    p = 1.0f + f * (0.69314720f + f * (0.24022651f + f * (0.055503272f + f * (0.0096180567f + f * (
        0.0013400428f + f * 0.00015461445f)))));
#define EXPONENT 23
#else
    double n, f, p;
    uint64_t k, bits;
    v = v < -1022.0 ? -1022.0 : v;
    n = v + 6755399441055744.0;
    f = v - (n - 6755399441055744.0);
    p = 1.0 + f * (0.6931471805599500 + f * (0.24022650695910097 + f * (0.055504108664447695 + f * (
        0.0096181291076069 + f * (0.0013333558230168296 + f * (0.00015403530441735424 + f * (1.5252657258554393e-05
        + f * (1.3215442586966806e-06 + f * (1.0208690571348675e-07 + f * 7.072585985243863e-09)))))))));
#define EXPONENT 52
#endif
    memcpy(&k, &n, sizeof k);
    memcpy(&bits, &p, sizeof bits);
    bits += k << EXPONENT;
    memcpy(&p, &bits, sizeof p);
    return p;
}

#if !SPARSE
/* The inner products of a block of members with z. */
static inline void multiply(const real S[FEATURES][BLOCK], const real *z, real *k)
{
    int i, j;
    for (i = 0; i < BLOCK; i++)
        k[i] = @first_terms@;
    for (j = @n_first@; j < FEATURES; j += 4)
        for (i = 0; i < BLOCK; i++)
            k[i] += z[j] * S[j][i] + z[j + 1] * S[j + 1][i] + z[j + 2] * S[j + 2][i] + z[j + 3] * S[j + 3][i];
}
#endif

/* Inner products of a block of members to kernel values. */
static inline void map(real *k, const real *norm, const real *rate, real norm_x)
{
    int i, d;
    if (KERNEL == RBF)
        for (i = 0; i < BLOCK; i++) {
            real distance = norm_x + norm[i] - 2 * k[i];
            k[i] = exp2_of((distance > 0 ? distance : 0) * rate[i]);
        }
    if (KERNEL == POLY)
        for (i = 0; i < BLOCK; i++) {
            real base = rate[i] * k[i] + (real)coef0, power = base;
            for (d = 1; d < DEGREE; d++)
                power *= base;
            k[i] = power;
        }
    if (KERNEL == SIGMOID)
        for (i = 0; i < BLOCK; i++) {
            real t = rate[i] * k[i] + (real)coef0;
            t = t < -20 ? -20 : t;
            t = t > 20 ? 20 : t;
            k[i] = 1 - 2 / (exp2_of(t * (real)2.8853900817779268) + 1);
        }
}

/* f of each machine. */
CLONES static int margins(const double *x, double *f)
{
    real z[FEATURES], k[SPARSE ? BLOCKS * BLOCK : BLOCK], sums[MACHINES][BLOCK];
    double norm_x = 0.0;
    int b, i, j, m;
    for (j = 0; j < FEATURES; j++) {
        double v = isnan(x[j]) ? missing[j] : x[j];
        if (!(fabs(v) <= DBL_MAX))
            return -1;
        v = (v - shifts[j]) * factors[j];
        v = v < -limit ? -limit : v > limit ? limit : v;
        norm_x += v * v;
        z[j] = (real)v;
    }
    memset(sums, 0, sizeof sums);
#if SPARSE
    memset(k, 0, sizeof k);
    for (j = 0; j < FEATURES; j++)
        if (z[j] != 0)
            for (i = starts[j]; i < starts[j + 1]; i++)
                k[owners[i]] += z[j] * entries[i];
#endif
    for (b = 0; b < BLOCKS; b++) {
#if SPARSE
        real *own = k + b * BLOCK;
#else
        real *own = k;
        multiply(members[b], z, own);
#endif
        map(own, norms + b * BLOCK, rates + b * BLOCK, (real)norm_x);
        for (m = 0; m < MACHINES; m++)
            for (i = 0; i < BLOCK; i++)
                sums[m][i] += coefficients[b][m][i] * own[i];
    }
    for (m = 0; m < MACHINES; m++) {
        f[m] = 0.0;
        for (i = 0; i < BLOCK; i++)
            f[m] += sums[m][i];
        f[m] += biases[m];
        if (!(fabs(f[m]) <= DBL_MAX))
            return -1;
    }
    return 0;
}

/* The probability that a machine gives its first side. */
static double alone(int m, double f)
{
    double t = slopes[m][f > 0] * f;
    return 1.0 / (1.0 + exp(t > 500 ? -500 : t < -500 ? 500 : -t));
}

/* The first label with the largest value. */
static int first_largest(const double *values)
{
    int i, best = 0;
    for (i = 1; i < LABELS; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

/* The probabilities of labels that are told from all others. */
static void shares(const double *f, double *p)
{
    double total = 0.0;
    int i;
    for (i = 0; i < LABELS; i++)
        total += p[i] = alone(i, f[i]);
    for (i = 0; i < LABELS; i++)
        p[i] /= total;
}

/* The votes for each label; sums: those of its decision values, or NULL. A value of 0 is a vote for `at_0`. */
static void count_votes(const double *f, double *votes, double *sums, int at_0)
{
    int i, j, m = 0;
    for (i = 0; i < LABELS; i++)
        votes[i] = sums[i] = 0.0;
    for (i = 0; i < LABELS; i++)
        for (j = i + 1; j < LABELS; j++, m++) {
            votes[f[m] > 0 || (f[m] == 0 && at_0 == 0) ? i : j] += 1.0;
            sums[i] += f[m];
            sums[j] -= f[m];
        }
}

/* Probabilities of all labels from those of all pairs: the second method of Wu, Lin and Weng (2004). */
static void couple(const double *f, double *p)
{
    double Q[LABELS][LABELS], Qp[LABELS];
    int i, j, m = 0, sweep;
    memset(Q, 0, sizeof Q);
    for (i = 0; i < LABELS; i++)
        for (j = i + 1; j < LABELS; j++, m++) {
            double r = alone(m, f[m]);
            r = r < 1e-7 ? 1e-7 : r > 1.0 - 1e-7 ? 1.0 - 1e-7 : r;
            Q[i][i] += (1.0 - r) * (1.0 - r);
            Q[j][j] += r * r;
            Q[i][j] = Q[j][i] = -r * (1.0 - r);
        }
    for (i = 0; i < LABELS; i++)
        p[i] = 1.0 / LABELS;
    for (sweep = 0; sweep < 1000; sweep++) {
        double pQp = 0.0, worst = 0.0;
        for (i = 0; i < LABELS; i++) {
            Qp[i] = 0.0;
            for (j = 0; j < LABELS; j++)
                Qp[i] += Q[i][j] * p[j];
            pQp += p[i] * Qp[i];
        }
        for (i = 0; i < LABELS; i++)
            worst = fmax(worst, fabs(Qp[i] - pQp));
        if (worst < 1e-9)
            return;
        for (i = 0; i < LABELS; i++) {
            double change = (pQp - Qp[i]) / Q[i][i], total = 1.0 + change;
            pQp = (pQp + change * (2.0 * Qp[i] + change * Q[i][i])) / (total * total);
            p[i] += change;
            for (j = 0; j < LABELS; j++) {
                Qp[j] = (Qp[j] + change * Q[j][i]) / total;
                p[j] /= total;
            }
        }
    }
}

/* The nearest probabilities of which the predicted label's is the largest: it shares with all above a common level. */
static void let_lead(int best, double *p)
{
    double level = p[best], total = p[best], last = HUGE_VAL;
    int count = 1, i, taken;
    if (first_largest(p) == best)
        return;
    for (taken = 1; taken < LABELS;) { /* the others, largest first */
        double next = -1.0;
        for (i = 0; i < LABELS; i++)
            if (i != best && p[i] < last && p[i] > next)
                next = p[i];
        for (i = 0; i < LABELS; i++)
            if (i != best && p[i] == next) {
                total += next;
                count += 1;
                taken += 1;
                level = fmax(level, total / count);
            }
        last = next;
    }
    for (i = 0; i < LABELS; i++)
        p[i] = fmin(p[i], level);
    p[best] = nextafter(level, 1.0);
}

static double cut(double v, double most)
{
    return v < -most ? -most : v > most ? most : v;
}

static void probabilities(const double *f, double *p)
{
    if (DECISION == THRESHOLD) {
        p[1] = alone(0, f[0]);
        p[0] = 1.0 - p[1];
    } else if (DECISION == ONE_VS_REST) {
        shares(f, p);
    } else {
        double votes[LABELS], sums[LABELS];
        count_votes(f, votes, sums, 1);
        couple(f, p);
        let_lead(first_largest(votes), p);
    }
    if (CORRECTS) { /* by the errors that were recent at the time of the export */
        p[1] = 1.0 / (1.0 + exp(-cut(@intercept@ + @slope@ * cut(log(p[1] / p[0]), 8.0), 12.0)));
        p[0] = 1.0 - p[1];
    }
}

static int decide(const double *f)
{
    double values[LABELS], sums[LABELS];
    if (DECIDES)
        probabilities(f, values);
    else if (DECISION == THRESHOLD)
        return f[0] > threshold;
    else if (DECISION == ONE_VS_REST)
        shares(f, values);
    else
        count_votes(f, values, sums, 1);
    return first_largest(values);
}

int @name@_values(const double *x, double *values)
{
    double f[MACHINES], sums[LABELS];
    int i;
    if (margins(x, f))
        return -1;
    if (DECISION != ONE_VS_ONE) {
        memcpy(values, f, sizeof f);
        return 0;
    }
    count_votes(f, values, sums, 0);
    for (i = 0; i < LABELS; i++)
        values[i] += sums[i] / (3.0 * (fabs(sums[i]) + 1.0));
    return 0;
}

int @name@_predict(const double *x)
{
    double f[MACHINES];
    return margins(x, f) ? -1 : decide(f);
}

int @name@_probabilities(const double *x, double *p)
{
    double f[MACHINES];
    if (margins(x, f))
        return -1;
    probabilities(f, p);
    return 0;
}

#if DECIDES
int @name@_predict_set(const double *x, int *places)
{
    double f[MACHINES], p[LABELS];
    int i, j, n = 1;
    if (margins(x, f))
        return -1;
    probabilities(f, p);
    places[0] = first_largest(p);
    for (i = 0; i < LABELS; i++)
        if (i != places[0] && p[i] >= thresholds[i]) {
            for (j = n++; j > 1 && p[places[j - 1]] < p[i]; j--)
                places[j] = places[j - 1];
            places[j] = i;
        }
    return n;
}
#endif
