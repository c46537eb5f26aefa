// The filters that all pages share. Each acts on the data sets that the file names for it.

const chosen = new Map(); // by filter name: a Set of values, or {from, to} in ms, or nothing

/** The tests that rows of a data set have to pass. */
function testsFor(name) {
  return STATE.dashboard.filters
    .filter((filter) => filter.targets[name] && chosen.get(filter.name))
    .map((filter) => {
      const wanted = chosen.get(filter.name);
      const passes = filter.kind === "values"
        ? (value) => wanted.has(value)
        : (value) => value !== null && value >= wanted.from && value <= wanted.to;
      return { column: filter.targets[name], passes };
    });
}

function makeFilters(onChange) {
  const bar = document.getElementById("filters");
  for (const filter of STATE.dashboard.filters) {
    bar.append(filter.kind === "values" ? makeValues(filter, onChange) : makeTime(filter, onChange));
  }
}

function makeValues(filter, onChange) {
  const box = element("details", "filter");
  box.id = `filter-${filter.name}`;
  const summary = element("summary");
  summary.append(element("span", "name", filter.title), element("span", "chosen", "all"));
  const panel = element("div", "panel");
  const search = element("input", "search");
  search.type = "search";
  search.placeholder = `find a ${filter.title.toLowerCase()}`;
  search.setAttribute("aria-label", search.placeholder);
  const list = element("div", "list");
  const all = element("button", "all", "show all");
  all.type = "button";
  all.addEventListener("click", () => choose(filter, box, [], onChange));
  search.addEventListener("input", () => hideOthers(list, search.value));
  panel.append(search, list, all);
  box.append(summary, panel);
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) box.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.open = false;
  });
  list.addEventListener("change", () => {
    choose(filter, box, [...list.querySelectorAll("input:checked")].map((input) => input.value), onChange);
  });
  return box;
}

function choose(filter, box, values, onChange) {
  if (values.length) chosen.set(filter.name, new Set(values));
  else chosen.delete(filter.name);
  box.querySelectorAll(".list input").forEach((input) => (input.checked = values.includes(input.value)));
  const shown = values.length > 1 ? `${values.length} chosen` : values[0] || "all";
  box.querySelector(".chosen").textContent = shown;
  box.classList.toggle("active", values.length > 0);
  onChange();
}

function hideOthers(list, text) {
  const wanted = text.toLowerCase();
  for (const label of list.children) label.hidden = !label.textContent.toLowerCase().includes(wanted);
}

/** Offer the values that there are; what is chosen stays chosen. */
function fillFilters(data) {
  for (const filter of STATE.dashboard.filters) {
    if (filter.kind !== "values") continue;
    const found = new Set();
    for (const [name, column] of Object.entries(filter.targets)) {
      const index = indexOf(data.datasets[name], column);
      for (const row of data.datasets[name].rows) if (row[index] !== null) found.add(row[index]);
    }
    const list = document.querySelector(`#filter-${filter.name} .list`);
    const there = [...list.querySelectorAll("input")].map((input) => input.value);
    const values = [...found].sort();
    if (values.join("\n") === there.join("\n")) continue;
    const wanted = chosen.get(filter.name) || new Set();
    list.replaceChildren(...values.map((value) => {
      const label = element("label");
      const input = element("input");
      input.type = "checkbox";
      input.value = value;
      input.checked = wanted.has(value);
      label.append(input, element("span", "", value));
      return label;
    }));
    hideOthers(list, document.querySelector(`#filter-${filter.name} .search`).value);
  }
}

const SPANS = [["1h", "last hour", 3600e3], ["6h", "last 6 hours", 6 * 3600e3], ["24h", "last 24 hours", 86400e3],
  ["7d", "last 7 days", 7 * 86400e3], ["all", "all there is", null], ["own", "from … to …", null]];

function makeTime(filter, onChange) {
  const box = element("div", "filter time");
  box.id = `filter-${filter.name}`;
  const label = element("label");
  label.append(element("span", "name", filter.title));
  const select = element("select");
  for (const [value, text] of SPANS) select.append(new Option(text, value));
  label.append(select);
  const from = element("input"), to = element("input"), own = element("span", "own");
  for (const [input, text] of [[from, "from (UTC)"], [to, "to (UTC)"]]) {
    input.type = "datetime-local";
    input.setAttribute("aria-label", text);
    input.title = text;
    input.addEventListener("change", () => onChange());
  }
  own.append(from, "–", to, "UTC");
  own.hidden = true;
  const span = filter.chosen && /^now-(\d+[hd])/.exec(filter.chosen.min.value);
  select.value = span && SPANS.some(([value]) => value === span[1]) ? span[1] : "all";
  select.addEventListener("change", () => {
    own.hidden = select.value !== "own";
    onChange();
  });
  filter.update = (now) => {
    const [, , length] = SPANS.find(([value]) => value === select.value);
    const ms = (input, otherwise) => (input.value ? Date.parse(`${input.value}Z`) : otherwise);
    if (select.value === "own") chosen.set(filter.name, { from: ms(from, -Infinity), to: ms(to, Infinity) });
    else if (length === null) chosen.delete(filter.name);
    else chosen.set(filter.name, { from: now - length, to: Infinity });
  };
  box.append(label, own);
  return box;
}
