// What is in each card. A card is drawn once, and filled again whenever rows or filters change.

const EMPTY = "no data yet";
const NO_MATCH = "nothing in this selection";
const cards = new Map(); // by widget name: {element, body, note, view, drawn}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function makeCard(widget) {
  const { x, y, width, height } = widget.position;
  const card = element("section", `card ${widget.kind}`);
  card.id = `widget-${widget.name}`;
  card.style.setProperty("--column", `${x + 1} / span ${width}`);
  card.style.setProperty("--row", `${y + 1} / span ${height}`);
  card.style.setProperty("--rows", height);
  if (widget.kind === "text") {
    for (const line of widget.text.split("\n")) {
      if (line.startsWith("# ")) card.append(element("h1", "", line.slice(2)));
      else if (line.trim()) card.append(element("p", "", line));
    }
    return card;
  }
  const head = element("div", "head");
  if (widget.title) head.append(element("h2", "", widget.title));
  const note = element("p", "cut");
  note.hidden = true;
  if (widget.description) head.append(element("p", "description", widget.description));
  const body = element("div", "body");
  const empty = element("p", "empty", EMPTY);
  empty.hidden = true;
  card.append(head, body, empty, note);
  cards.set(widget.name, { card, body, empty, note, view: null });
  return card;
}

/** Show the rows of now. `dataset` is the whole data set, `rows` those that the filters let pass. */
function fillCard(widget, dataset, rows) {
  const card = cards.get(widget.name);
  const result = evaluate(widget, dataset, rows);
  const isEmpty = !rows.length || (widget.kind === "counter" && result[0][widget.value.index] === null);
  card.empty.textContent = dataset.rows.length && !rows.length ? NO_MATCH : EMPTY;
  card.empty.hidden = !isEmpty;
  card.body.hidden = isEmpty;
  card.note.hidden = !dataset.cut;
  card.note.textContent = `Only the newest ${quantity(dataset.rows.length)} rows are shown.`;
  card.card.dataset.rows = isEmpty ? 0 : result.length;
  if (isEmpty) return null;
  if (widget.kind === "counter") return fillCounter(widget, card, result[0][widget.value.index]);
  if (widget.kind === "table") return fillTable(widget, card, dataset, result);
  return fillChart(widget, card, result);
}

function fillCounter(widget, card, value) {
  const number = card.body.firstChild || card.body.appendChild(element("div", "number"));
  number.textContent = quantity(value, widget.value.format);
  const rules = widget.value.style ? widget.value.style.rules : [];
  const rule = rules.find((item) => holds(item.condition, value));
  number.style.color = rule ? rule.color : "";
}

function holds({ operator, operand }, value) {
  if (value === null) return false;
  const other = typeof value === "number" ? Number(operand.value) : operand.value;
  if (operator === "=") return value === other;
  if (operator === "!=") return value !== other;
  if (operator === ">") return value > other;
  if (operator === ">=") return value >= other;
  return operator === "<" ? value < other : value <= other;
}

const SHOWN_ROWS = 200;

function fillTable(widget, card, dataset, result) {
  const types = widget.columns.map((column) => {
    const field = widget.fields[column.index];
    return dataset.columns[indexOf(dataset, field.column)].type;
  });
  let table = card.body.firstChild;
  if (!table) {
    table = card.body.appendChild(element("table"));
    card.body.tabIndex = 0; // so that keys scroll it
    const row = table.createTHead().insertRow();
    widget.columns.forEach((column, at) => row.append(element("th", types[at], column.displayName)));
    table.createTBody();
  }
  const rows = result.slice(0, SHOWN_ROWS).map((values) => {
    const row = element("tr");
    widget.columns.forEach((column, at) => row.append(tableCell(column, types[at], values[column.index])));
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
  if (result.length > SHOWN_ROWS) {
    card.note.hidden = false;
    card.note.textContent = `${quantity(SHOWN_ROWS)} of ${quantity(result.length)} rows; the filters narrow them down.`;
  }
}

function tableCell(column, type, value) {
  const text = type === "time" ? instant(value) : quantity(value, column.format);
  const cell = element("td", value === null ? `${type} none` : type, text);
  if (type === "text" && text.length > 36) cell.classList.add("long");
  const rule = column.style && column.style.rules.find((item) => holds(item.condition, value));
  if (rule) {
    cell.style.color = `var(--color-${rule.foregroundColor.position})`;
    cell.classList.add("marked");
  }
  return cell;
}

function chartRows(result) {
  return result.map((values) => Object.fromEntries(values.map((value, index) => [`c${index}`, value])));
}

async function fillChart(widget, card, result) {
  if (widget.chart === "heatmap") fitHeatmap(widget, card, result);
  const rows = chartRows(result);
  if (card.view) {
    await card.view.data("rows", rows).runAsync();
    return;
  }
  const host = element("div", "chart-host");
  card.body.replaceChildren(host);
  const drawn = ++card.drawing || (card.drawing = 1);
  const made = await vegaEmbed(host, { ...widget.spec, datasets: { rows } }, {
    actions: false,
    renderer: "svg",
    ast: true, // expressions are interpreted: the page's policy forbids to make code of text
    config: chartConfig(host.clientWidth),
    expressionFunctions: { quantity, instant, clock },
    tooltip: { theme: shade },
  });
  if (card.drawing !== drawn) made.finalize(); // drawn again meanwhile
  else card.view = made.view;
}

/** Rows of a heat map do not get thinner than a line of text: the card scrolls instead. */
function fitHeatmap(widget, card, result) {
  const field = widget.spec.encoding.y.field;
  const lines = new Set(result.map((row) => row[Number(field.slice(1))])).size;
  card.body.style.setProperty("--lines", lines);
}

function forgetCharts() {
  for (const card of cards.values()) {
    if (!card.view) continue;
    card.view.finalize();
    card.view = null;
    card.drawing = (card.drawing || 0) + 1;
  }
}
