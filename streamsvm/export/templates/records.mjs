
/* From a raw record to numbers, as streamsvm's Records makes them; docs/records.md has the rules. */
function converter(records) {
  const absent = new Set(records.absent), valuesOf = records.fields.map((field) => new Set(field.values));
  const utf8 = new TextEncoder();
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const iso = /^(\d{4})([-/])(\d\d)\2(\d\d)([T ](\d\d):(\d\d)(:(\d\d)(\.\d+)?)?( ?(Z|UTC|([+-])(\d\d)(:?(\d\d))?))?)?$/;
  const grouped = records.thousands === null ? null : new RegExp(
    "^[+-]?\\d{1,3}(?:S\\d{2,3})*S\\d{3}(?:\\.\\d*)?$".replaceAll(
      "S", () => records.thousands.replace(/[\\^$.*+?()[\]{}|/-]/, (sign) => `\\${sign}`)));

  /* The numbers of a raw record by the names of their columns. */
  function numbersOf(record) {
    if (typeof record !== "object" || record === null || Array.isArray(record)) {
      throw new TypeError(`a record is ${record}; it must be an object of fields`);
    }
    const given = new Map(), out = new Map();
    flatten(record, "", 16, given);
    records.fields.forEach((field, i) => {
      if (field.is_rare && !given.has(String(field.name))) return;
      const value = read(field, given.get(String(field.name)));
      writers[field.kind](field, value, (column, v) => out.set(column, v), valuesOf[i]);
      if (value === null && records.indicators) out.set(`~${field.name}?`, 1);
    });
    return out;
  }

  function flatten(record, prefix, depth, given) {
    for (const [name, value] of Object.entries(record)) {
      const nested = typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
      if (nested && depth) flatten(value, `${prefix}${name}.`, depth - 1, given);
      else if (given.has(prefix + name)) throw new TypeError(`two fields of the record are named ${prefix + name}`);
      else given.set(prefix + name, value);
    }
  }

  /* A value as one of the field's kind; null if it is missing or of another kind. */
  function read(field, value) {
    if (value === undefined || value === null) return null;
    if (field.kind === "category") return word(value);
    if (field.kind === "text") return text(value);
    if (field.kind === "time") return time(value);
    if (field.kind === "list") {
      const fits = Array.isArray(value) && value.length === field.length && value.length > 0;
      return fits && value.every((v) => typeof v === "boolean" || isNumber(v)) ? value.map(Number) : null;
    }
    if (field.kind === "number") return plainNumber(value);
    const since = plainNumber(value), unit = { epoch_s: 1, epoch_ms: 1e3, epoch_us: 1e6 }[field.kind];
    return since === null ? null : instant(since / unit, 0);
  }

  function isNumber(value) {
    return typeof value === "number" && Math.abs(value) < 1e18;
  }

  function plainNumber(value) {
    if (typeof value === "boolean") return Number(value);
    if (typeof value === "string") {
      let written = value.trim();
      if (grouped !== null && grouped.test(written)) written = written.replaceAll(records.thousands, "");
      if (!number.test(written)) return null;
      value = Number(written);
    }
    return isNumber(value) ? value : null;
  }

  /* Seconds since 1970 in UTC, and the clock that a zone so many seconds east shows; null outside the years 1 to 9999. */
  function instant(seconds, east) {
    const t = Math.round(seconds * 1e6) / 1e6, clock = new Date(Math.floor(t + east) * 1000);
    const year = clock.getUTCFullYear();
    return year >= 1 && year <= 9999 ? { seconds: t, clock } : null;
  }

  function time(value) {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : instant(value.getTime() / 1000, 0);
    const found = typeof value === "string" ? iso.exec(value.trim()) : null;
    if (found === null) return null;
    const [year, month, day, hour, minute, second] = [1, 3, 4, 6, 7, 9].map((i) => Number(found[i] ?? 0));
    const wall = new Date(0);
    wall.setUTCFullYear(year, month - 1, day);
    const exists = year > 0 && wall.getUTCMonth() === month - 1 && wall.getUTCDate() === day;
    if (!exists || hour > 23 || minute > 59 || second > 59) return null;
    const zone = found[13] ? Number(`${found[13]}1`) * (Number(found[14]) * 3600 + Number(found[16] ?? 0) * 60) : 0;
    if (Number(found[14] ?? 0) > 23 || Number(found[16] ?? 0) > 59) return null;
    const fraction = Number((found[10] ?? ".0").slice(0, 7));
    return instant(wall.getTime() / 1000 + hour * 3600 + minute * 60 + second + fraction - zone, zone);
  }

  /* A category's value, as Python writes it. */
  function word(value) {
    let written = Array.isArray(value) ? text(value) : value;
    if (typeof written === "boolean") written = written ? "True" : "False";
    else if (typeof written === "number") written = Number.isNaN(written) ? null : pythonNumber(written);
    else if (written instanceof Date) return null;
    if (typeof written !== "string") return null;
    const signs = [...written.trim()];
    const own = signs.join("");
    if (signs.length <= 64) return own || null;
    return `${signs.slice(0, 40).join("")}...${checksum(own).toString(16).padStart(8, "0")}`;
  }

  function pythonNumber(value) {
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    if (Number.isInteger(value)) return BigInt(value).toString();
    return Math.abs(value) < 1e-4 ? value.toExponential().replace(/e-(\d)$/, "e-0$1") : String(value);
  }

  function text(value) {
    if (Array.isArray(value)) return value.every((part) => typeof part === "string") ? value.join(" ").trim() || null : null;
    return typeof value === "string" ? value.trim() || null : null;
  }

  /* CRC-32 of a text. */
  function checksum(written) {
    let crc = -1;
    for (const byte of utf8.encode(written)) {
      crc ^= byte;
      for (let k = 0; k < 8; k++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return (crc ^ -1) >>> 0;
  }

  function turn(name, share, put) {
    put(`${name}.sin`, Math.sin(2 * Math.PI * share));
    put(`${name}.cos`, Math.cos(2 * Math.PI * share));
  }

  function writeTime(field, value, put) {
    if (value === null && field.guesses === null) return;
    const { seconds, clock } = value ?? instant(field.guesses[0] * 86400, 0), { name } = field;
    const start = new Date(clock);
    start.setUTCMonth(0, 1);
    put(`${name}.days`, seconds / 86400);
    if (field.has_clock) turn(`${name}.hour`, (clock.getUTCHours() + clock.getUTCMinutes() / 60) / 24, put);
    turn(`${name}.weekday`, ((clock.getUTCDay() + 6) % 7) / 7, put);
    turn(`${name}.yearday`, (Math.round((clock - start) / 86400000) + 1) / 366, put);
  }

  /* Hashed words and n-grams: FNV-1a, mixed. */
  function hashed(signs) {
    const words = signs.join("").toLowerCase().match(/[\p{L}\p{N}_]+/gu);
    if (words === null) return [];
    const letters = utf8.encode(` ${words.join(" ")} `), counts = new Map();
    const step = (h, letter) => Math.imul(h ^ letter, 0x01000193);
    const note = (kind, h) => {
      h = Math.imul(h ^ (h >>> 16), 0x85ebca6b) >>> 0;
      const column = ((h ^ (h >>> 13)) >>> 0) % records.width;
      if (!counts.has(column)) counts.set(column, [0, 0]);
      counts.get(column)[kind] += 1;
    };
    const basis = 0x811c9dc5;
    for (let t = 1, h = basis; t < letters.length; t++) {
      if (letters[t] !== 32) h = step(h, letters[t]);
      else {
        note(0, h);
        h = basis;
      }
    }
    for (const size of [3, 4]) {
      for (let t = 0; t + size <= letters.length; t++) note(1, letters.slice(t, t + size).reduce(step, basis + size));
    }
    const factors = [0.6, 1 - 0.6].map((share, kind) => {
      const total = [...counts.values()].reduce((sum, count) => sum + Math.log1p(count[kind]) ** 2, 0);
      return total > 0 ? Math.sqrt((9 * share) / total) : 0;
    });
    return [...counts].map(([j, [c, d]]) => [j, factors[0] * Math.log1p(c) + factors[1] * Math.log1p(d)]);
  }

  function writeText(field, value, put) {
    let numbers = field.guesses;
    if (value !== null) {
      const signs = [...value].slice(0, 10000), n = signs.length;
      for (const [j, v] of hashed(signs)) put(`~${field.name}#${j}`, v);
      const share = (kind) => signs.filter((sign) => kind.test(sign)).length / n;
      numbers = [Math.log1p(n), share(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]$/u), share(/^\p{Uppercase}$/u)];
    }
    if (numbers !== null) ["length", "digits", "capitals"].forEach((what, i) => put(`${field.name}.${what}`, numbers[i]));
  }

  const writers = {
    number: (field, value, put) => {
      if (value !== null || field.guesses !== null) put(String(field.name), value ?? field.guesses[0]);
    },
    category: (field, value, put, known) => {
      if (value === null) put(`~${field.name}?`, 1);
      else if (known.has(value) || known.size < records.own_values) put(`~${field.name}=${value}`, 1);
      else put(`~${field.name}#${checksum(value) % records.shared}`, 1);
    },
    list: (field, value, put) => {
      if (value !== null || field.guesses !== null) (value ?? field.guesses).forEach((v, j) => put(`${field.name}.${j}`, v));
    },
    text: writeText,
    time: writeTime,
    epoch_s: writeTime,
    epoch_ms: writeTime,
    epoch_us: writeTime,
  };

  return numbersOf;
}
