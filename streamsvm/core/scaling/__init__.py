"""The scale of a stream's features: running moments, and the copy of them that is in use.

A model that scales keeps raw features beside the scaled ones.  The running moments follow each example, but the scale
in use stays, so that new examples and members are scaled alike.  When the moments have moved far from the scale, a new
one is *due*: the model copies the moments and scales its members anew.

    w_p <- w_p (1 - 1/M) + 1                                        weight of the examples so far, the newest counts 1
    e = x_p - m_p, cut to +-5 deviations, at first to +-20          an outlier moves the moments a little only
    m_p <- m_p + e / w_p,    S_p <- S_p (1 - 1/M) + e (x_p - m_p)   S_p / w_p is the variance

    z_p = clip((x_p - shift_p) factor_p, -3, 3)                     a scaled feature

Which features are scaled?

- Those with a *place*: the first example named them, or at least half of the examples do since one did.  A hostile
  example with many names costs no more than its own features.
- Never those that stand *apart*, as hashed words do.  They get no place, and do not count in the next two rules.
- Of these, all that had another value than 0 and 1.  The others are left alone.
- None while the input is *sparse*: an example names few of the features that the example before it named, as in text.

A model that does not scale, but has the RBF kernel, shifts features that are far from 0:

    z_p = x_p - shift_p   where gamma m_p^2 > 2^10; otherwise z_p = x_p

||x - z||^2 is computed from squared norms, in single precision, which leaves gamma ||x - z||^2 an error of about
gamma m^2 2^-24.  A constant that is subtracted from all examples changes no distance.  A new shift is due when a mean
has moved as far from the one in use.  If gamma is a number, no moments are kept before an example has such a feature;
then they begin with those that the members give (`awakened`).

A feature that an example does not name is 0, or unknown: see `gaps`.  The moments of a feature that gets a place late
begin then.

``gamma="scale"`` is 1 / V.  The spread V is the sum of two terms:

- the variances of the features with a place, as the kernel sees them;
- the mean square of all features without a place.  Once w > 20, one example adds at most 25 V to it.  While no scale is
  active these are squares of values as they came.  So the mean begins anew when a scale becomes active, which cuts the
  values, and when some of the features get a place before.

V begins with the first example's squared norm, and stays while nothing varies.  So large features alone never make
kernel values huge.

A new scale is due at once when a feature that was 0 or 1 has another value, and when the input becomes sparse or ceases
to be.  It is also due in these cases, but not before as many examples have passed since the last scale as the model had
members then, which bounds the work:

- the scale rests on fewer than 500 examples, and four times as many have been seen by now;
- for one scaled feature in 20, the deviation has moved by a factor 2, or the mean by one deviation;
- V has moved by a factor 1.5;
- a feature deserves a place.

This depends on the raw features and on the number of members only, not on how a stream is cut into batches.

========= ========================================================== ======= ==========================
symbol    name                                                       shape   dtype
========= ========================================================== ======= ==========================
place     place of a feature's moments; -1, or `APART`, without one  (D,)    int64
began     number of the first example that named the feature         (D,)    int64
named     number of the last one, counted from 1                     (D,)    int64
times     number of examples that named it                           (D,)    int64
feature   the feature that has a place                               (P,)    int64
w, m, S   weight, running mean, running variance times w             (P,)    float64
shift     mean in use; 0 for a feature that is left alone            (P,)    float64
factor    1 / deviation in use; 1 for one that is left alone         (P,)    float64
spread    variance in use; 0 for one that is left alone              (P,)    float64
last, E   last value, and how much worse a guess it is; see `gaps`   (P,)    float64
varied    whether the feature had another value than 0 and 1         (P,)    uint8
x         the raw features of one example that have a place          (P,)    float64, scratch
totals    see the names in `state`                                   (4,)    float64
counts    see the names in `state`                                   (12,)   int64
limits    what depends on the model's parameters, likewise           (3,)    float64
========= ========================================================== ======= ==========================

Begin with `state`.  `moments` observes examples, `gaps` guesses what they lack, `renewal` takes a new copy into use,
and `values` scales examples.  The folder imports `blocks` and the compiler.
"""
