/* A classifier, written by streamsvm @version@. A JavaScript module for browsers and Node, which needs nothing else.

     import { predict, values, probabilities, features, labels } from "./FILE";

     predict(x)          the label
     values(x)           the decision values: of the one machine, or of each of `labels`
     probabilities(x)    the probabilities of `labels`

   x is an object of numbers by feature name, or an array of numbers in the order of `features`. A missing feature is
   0. An object may have features that the model does not know, as the model itself takes them. What is not a finite
   number is an error.@usage@ */

export const features = @features@;
export const labels = @labels@;

const kernel = "@kernel@", decision = "@decision@";
const degree = @degree@, coef0 = @coef0@, limit = @limit@, threshold = @threshold@;
const shift = doubles("@shift@"), factor = doubles("@factor@");
const bias = doubles("@bias@"), slopes = doubles("@slopes@"), coefficients = doubles("@coefficients@");
// Member s has the features columns[starts[s]], ..., columns[starts[s + 1] - 1].
const starts = integers("@starts@"), columns = integers("@columns@"), entries = doubles("@entries@");
const norms = doubles("@norms@"), gamma = doubles("@gamma@");
const places = new Map(features.map((name, place) => [String(name), place]));

function bytes(text) {
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer;
}

function doubles(text) {
  const view = new DataView(bytes(text));
  return Float64Array.from({ length: view.byteLength / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

function integers(text) {
  const view = new DataView(bytes(text));
  return Int32Array.from({ length: view.byteLength / 4 }, (_, i) => view.getInt32(4 * i, true));
}

function cut(value) {
  return Math.min(Math.max(value, -limit), limit);
}

/* The features in their order, and the squares of those that are unknown. */
function ordered(x) {
  const raw = new Float64Array(features.length);
  let unknown = 0;
  const given = Array.isArray(x) || ArrayBuffer.isView(x);
  if (given && x.length !== features.length) {
    throw new RangeError(`x has ${x.length} numbers; it must have ${features.length}, in the order of features`);
  }
  for (const [name, value] of @entries_of_x@) {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      throw new TypeError(`x[${JSON.stringify(name)}] is ${value}; features must be finite numbers`);
    }
    const place = given ? Number(name) : places.get(name);
    if (place === undefined) unknown += cut(value) ** 2;
    else raw[place] = value;
  }
  return [raw, unknown];
}

/* f of each machine. */
function margins(x) {
  const [z, unknown] = ordered(x);
  let norm = unknown;
  for (let j = 0; j < z.length; j++) {
    z[j] = cut((z[j] - shift[j]) * factor[j]);
    norm += z[j] * z[j];
  }
  const f = Array.from(bias), n = norms.length;
  for (let s = 0; s < n; s++) {
    let product = 0;
    for (let i = starts[s]; i < starts[s + 1]; i++) product += z[columns[i]] * entries[i];
    const k = kernelValue(product, norm, s);
    for (let m = 0; m < f.length; m++) f[m] += coefficients[m * n + s] * k;
  }
  if (!f.every(Number.isFinite)) throw new RangeError("a decision value is not finite: the features are too large");
  return f;
}

function kernelValue(product, norm, s) {
  if (kernel === "rbf") return Math.exp(-gamma[s] * Math.max(norm + norms[s] - 2 * product, 0));
  if (kernel === "linear") return product;
  const base = gamma[s] * product + coef0;
  return kernel === "poly" ? base ** degree : Math.tanh(base);
}

/* The probability that machine m gives its first side. */
function alone(m, f) {
  const t = slopes[2 * m + (f > 0 ? 1 : 0)] * f;
  return 1 / (1 + Math.exp(-Math.min(Math.max(t, -500), 500)));
}

function firstLargest(list) {
  return list.indexOf(Math.max(...list));
}

/* The probabilities of labels that are told from all others. */
function shares(f) {
  const p = f.map((value, m) => alone(m, value));
  const total = p.reduce((sum, value) => sum + value, 0);
  return p.map((value) => value / total);
}

/* Call visit(m, i, j) for the machine m of each pair of labels. */
function forPairs(visit) {
  for (let i = 0, m = 0; i < labels.length; i++) for (let j = i + 1; j < labels.length; j++, m++) visit(m, i, j);
}

/* The votes for each label; a value of 0 is a vote for the second label of a pair, or for the first. */
function votes(f, zeroForFirst) {
  const list = labels.map(() => 0);
  forPairs((m, i, j) => (list[f[m] > 0 || (f[m] === 0 && zeroForFirst) ? i : j] += 1));
  return list;
}

function decide(f) {
  if (decision === "threshold") return f[0] > threshold ? 1 : 0;
  return firstLargest(decision === "one-vs-rest" ? shares(f) : votes(f, false));
}

/* Probabilities of all labels from those of all pairs: the second method of Wu, Lin and Weng (2004). */
function coupled(f) {
  const n = labels.length, Q = labels.map(() => new Float64Array(n)), Qp = new Float64Array(n);
  const p = labels.map(() => 1 / n);
  forPairs((m, i, j) => {
    const r = Math.min(Math.max(alone(m, f[m]), 1e-7), 1 - 1e-7);
    Q[i][i] += (1 - r) ** 2;
    Q[j][j] += r ** 2;
    Q[i][j] = Q[j][i] = -r * (1 - r);
  });
  for (let sweep = 0; sweep < 1000; sweep++) {
    let pQp = 0;
    for (let i = 0; i < n; i++) {
      Qp[i] = Q[i].reduce((sum, q, j) => sum + q * p[j], 0);
      pQp += p[i] * Qp[i];
    }
    if (Qp.every((value) => Math.abs(value - pQp) < 1e-9)) break;
    for (let i = 0; i < n; i++) {
      const change = (pQp - Qp[i]) / Q[i][i], total = 1 + change;
      pQp = (pQp + change * (2 * Qp[i] + change * Q[i][i])) / total ** 2;
      p[i] += change;
      for (let j = 0; j < n; j++) {
        Qp[j] = (Qp[j] + change * Q[j][i]) / total;
        p[j] /= total;
      }
    }
  }
  return p;
}

/* The nearest probabilities of which that of `best` is the largest: it shares with all above a common level. */
function ledBy(best, p) {
  if (firstLargest(p) === best) return p;
  let level = p[best], total = p[best];
  p.filter((_, i) => i !== best).sort((a, b) => b - a).forEach((value, i) => {
    total += value;
    level = Math.max(level, total / (i + 2));
  });
  return p.map((value, i) => (i === best ? level * (1 + Number.EPSILON) : Math.min(value, level)));
}

export function predict(x) {
  return labels[decide(margins(x))];
}

export function values(x) {
  const f = margins(x);
  if (decision !== "one-vs-one") return f;
  const sums = labels.map(() => 0);
  forPairs((m, i, j) => {
    sums[i] += f[m];
    sums[j] -= f[m];
  });
  return votes(f, true).map((count, i) => count + sums[i] / (3 * (Math.abs(sums[i]) + 1)));
}

export function probabilities(x) {
  const f = margins(x);
  if (decision === "one-vs-rest") return shares(f);
  if (decision === "one-vs-one") return ledBy(decide(f), coupled(f));
  const p = alone(0, f[0]);
  return [1 - p, p];
}
@records@