// A widget's query over the rows of its data set: filters, groups, aggregates, order. As the SQL warehouse would.

const UNITS = { MINUTE: 60e3, HOUR: 3600e3, DAY: 86400e3 };

/** The rows of a data set that every filter lets pass; a filter is {column, passes(value)}. */
function passing(dataset, tests) {
  const used = tests
    .map((test) => ({ passes: test.passes, index: indexOf(dataset, test.column) }))
    .filter((test) => test.index >= 0);
  if (!used.length) return dataset.rows;
  return dataset.rows.filter((row) => used.every((test) => test.passes(row[test.index])));
}

function indexOf(dataset, column) {
  return dataset.columns.findIndex((item) => item.name === column);
}

/** The result of a widget's query: rows as lists, one value for each field. */
function evaluate(widget, dataset, rows) {
  const fields = widget.fields.map((field) => ({ ...field, index: indexOf(dataset, field.column) }));
  const missing = fields.find((field) => field.index < 0 && field.column !== "*");
  if (missing) throw new Error(`${widget.name}: its data set has no column ${missing.column}`);
  const sorted = ordered(widget, dataset, rows);
  if (widget.raw) return sorted.map((row) => fields.map((field) => plainValue(field, row)));
  return grouped(fields, sorted);
}

function plainValue(field, row) {
  const value = row[field.index];
  if (field.kind !== "trunc" || value === null) return value;
  return Math.floor(value / UNITS[field.unit]) * UNITS[field.unit];
}

function grouped(fields, rows) {
  const keys = fields.filter((field) => field.kind === "plain" || field.kind === "trunc");
  const groups = new Map();
  for (const row of rows) {
    const key = JSON.stringify(keys.map((field) => plainValue(field, row)));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups.values()].map((members) =>
    fields.map((field) => (keys.includes(field) ? plainValue(field, members[0]) : aggregate(field, members))));
}

/** As SQL has it: null is left out, and of nothing it is null, but for a count. */
function aggregate(field, rows) {
  if (field.column === "*") return rows.length;
  const values = rows.map((row) => row[field.index]).filter((value) => value !== null);
  if (field.kind === "count") return values.length;
  if (field.kind === "countdistinct") return new Set(values).size;
  if (!values.length) return null;
  if (field.kind === "min") return values.reduce((a, b) => (b < a ? b : a));
  if (field.kind === "max") return values.reduce((a, b) => (b > a ? b : a));
  const sum = values.reduce((a, b) => a + b, 0);
  return field.kind === "avg" ? sum / values.length : sum;
}

/** Rows in the query's order; null comes last. */
function ordered(widget, dataset, rows) {
  if (!widget.orders.length) return rows;
  const keys = widget.orders.map((order) => ({ index: indexOf(dataset, order.column), sign: order.falls ? -1 : 1 }));
  return [...rows].sort((a, b) => {
    for (const { index, sign } of keys) {
      const [x, y] = [a[index], b[index]];
      if (x === y) continue;
      if (x === null || y === null) return x === null ? 1 : -1;
      return x < y ? -sign : sign;
    }
    return 0;
  });
}
