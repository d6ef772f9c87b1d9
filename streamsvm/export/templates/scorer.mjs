/* A classifier, written by streamsvm @version@. A JavaScript module for browsers and Node, which needs nothing else.

     import { predict, values, probabilities, predictSet, features, labels } from "./FILE";

     predict(x)          the label
     values(x)           the decision values: of the one machine, or of each of `labels`
     probabilities(x)    the probabilities of `labels`
     predictSet(x)       the labels that cannot be excluded, the most probable first, if the model decides:
                         one label is decided, and several are a question for a person

   x is an object of numbers by feature name, or an array of numbers in the order of `features`. A feature that is
   absent, null or NaN is missing, and the model's guess stands for it. An object may have features that the model does
   not know, as the model itself takes them. What else is not a finite number is an error.

   If the model takes raw records, an object is one: numbersOf(record) makes numbers of strings and nested objects.

   scorer(JSON.parse(text)) has these functions for the model of a text that `streamsvm export --to json` wrote; its
   `decides` says whether it has predictSet. */

export function scorer(model) {
  if (model.format !== "streamsvm model" || model.version !== 1) {
    throw new TypeError("this is no model of version 1, as `streamsvm export --to json` writes it");
  }
  const { labels, machines, decision, threshold, guarantee } = model, { name: kernel, degree, coef0 } = model.kernel;
  const features = model.features.map((feature) => feature.name);
  const places = new Map(features.map((name, place) => [String(name), place]));
  const [shift, factor, missing] = ["shift", "factor", "missing"].map((own) => numbers(model.features, own));
  const limit = model.limit === null ? Infinity : model.limit;
  // Member s has the features columns[starts[s]], ..., columns[starts[s + 1] - 1].
  const starts = Int32Array.from(model.members.starts), columns = Int32Array.from(model.members.columns);
  const entries = numbers(model.members.values), gamma = numbers(model.members.gamma);
  const norms = gamma.map((_, s) => entries.slice(starts[s], starts[s + 1]).reduce((sum, v) => sum + v * v, 0));
  const coefficients = machines.map((machine) => numbers(machine.coefficients));
  const numbersOf = model.records === null ? null : converter(model.records);

  function numbers(list, own = null) {
    return Float64Array.from(list, (value) => (own === null ? value : value[own]));
  }

  function cut(value) {
    return Math.min(Math.max(value, -limit), limit);
  }

  /* The features in their order, and the squares of those that are unknown. */
  function ordered(x) {
    const raw = Float64Array.from(missing);
    let unknown = 0;
    const given = Array.isArray(x) || ArrayBuffer.isView(x);
    if (given && x.length !== features.length) {
      throw new RangeError(`x has ${x.length} numbers; it must have ${features.length}, in the order of features`);
    }
    for (const [name, value] of given || numbersOf === null ? Object.entries(x) : numbersOf(x)) {
      if (value === null || value === undefined || Number.isNaN(value)) continue;
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
    const f = machines.map((machine) => machine.bias), n = norms.length;
    for (let s = 0; s < n; s++) {
      let product = 0;
      for (let i = starts[s]; i < starts[s + 1]; i++) product += z[columns[i]] * entries[i];
      const k = kernelValue(product, norm, s);
      for (let m = 0; m < f.length; m++) f[m] += coefficients[m][s] * k;
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
    const t = machines[m].slopes[f > 0 ? 1 : 0] * f;
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
    return guarantee === null ? byRule(f) : firstLargest(probabilitiesOf(f));
  }

  function byRule(f) {
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

  function predict(x) {
    return labels[decide(margins(x))];
  }

  function values(x) {
    const f = margins(x);
    if (decision !== "one-vs-one") return f;
    const sums = labels.map(() => 0);
    forPairs((m, i, j) => {
      sums[i] += f[m];
      sums[j] -= f[m];
    });
    return votes(f, true).map((count, i) => count + sums[i] / (3 * (Math.abs(sums[i]) + 1)));
  }

  function probabilitiesOf(f) {
    let p = [1 - alone(0, f[0]), alone(0, f[0])];
    if (decision === "one-vs-rest") p = shares(f);
    if (decision === "one-vs-one") p = ledBy(byRule(f), coupled(f));
    if (guarantee === null || guarantee.correction === null) return p;
    const [intercept, slope] = guarantee.correction;
    const t = Math.min(Math.max(Math.log(p[1] / p[0]), -8), 8);
    const q = 1 / (1 + Math.exp(-Math.min(Math.max(intercept + slope * t, -12), 12)));
    return [1 - q, q];
  }

  function probabilities(x) {
    return probabilitiesOf(margins(x));
  }

  function predictSet(x) {
    if (guarantee === null) throw new TypeError("the model does not say which labels cannot be excluded");
    const p = probabilities(x), best = firstLargest(p);
    const others = labels.map((_, i) => i).filter((i) => i !== best && p[i] >= guarantee.thresholds[i]);
    return [best, ...others.sort((i, j) => p[j] - p[i])].map((i) => labels[i]);
  }

  const decides = guarantee !== null;
  return { features, labels, predict, values, probabilities, decides, predictSet, numbersOf };
}
