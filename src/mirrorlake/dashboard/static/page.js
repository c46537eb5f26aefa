// The page: tabs, cards, and looking again.

let data = STATE.data;
let shownPage = null;

function makePages() {
  const tabs = document.getElementById("tabs");
  const main = document.getElementById("main");
  for (const page of STATE.dashboard.pages) {
    const link = element("a", "", page.title);
    link.href = `#${page.name}`;
    tabs.append(link);
    const grid = element("div", "grid");
    grid.id = `page-${page.name}`;
    grid.hidden = true;
    grid.append(...page.widgets.map(makeCard));
    main.append(grid);
  }
}

function openPage() {
  const { pages } = STATE.dashboard;
  shownPage = pages.find((page) => `#${page.name}` === location.hash) || pages[0];
  pages.forEach((page, index) => {
    const isShown = page === shownPage;
    document.getElementById(`page-${page.name}`).hidden = !isShown;
    const link = document.getElementById("tabs").children[index];
    if (isShown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  document.title = `${shownPage.title} · mirrorlake`;
  fill();
}

/** Fill the cards of the page that is looked at. */
async function fill() {
  if (!data) return;
  for (const filter of STATE.dashboard.filters) if (filter.update) filter.update(data.at);
  const passed = new Map();
  const work = [];
  for (const widget of shownPage.widgets) {
    if (widget.kind === "text") continue;
    const dataset = data.datasets[widget.dataset];
    if (!passed.has(widget.dataset)) passed.set(widget.dataset, passing(dataset, testsFor(widget.dataset)));
    work.push(fillCard(widget, dataset, passed.get(widget.dataset)));
  }
  await Promise.all(work);
  document.body.dataset.filled = data.at; // for those who wait for it
}

function say(text, isWrong) {
  const state = document.getElementById("state");
  state.textContent = text;
  state.classList.toggle("wrong", Boolean(isWrong));
}

function sayState() {
  const cut = Object.entries(data.datasets).filter(([, dataset]) => dataset.cut).map(([name]) => STATE.dashboard.titles[name]);
  say(`as of ${instant(data.at)} UTC`);
  const again = STATE.refresh ? `read again every ${STATE.refresh} s` : "a copy; it does not change any more";
  const shortened = cut.length ? ` Cut to the newest rows: ${cut.join(", ")}.` : "";
  document.getElementById("footer").textContent = `${STATE.place} · read in ${data.seconds} s, ${again}. Times are in UTC.${shortened}`;
}

async function look() {
  try {
    const answer = await fetch("/data.json", { cache: "no-store" });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    data = found;
    fillFilters(data);
    sayState();
    await fill();
  } catch (error) {
    const since = data ? `; shown as of ${instant(data.at)} UTC` : "";
    say(`${error instanceof TypeError ? "mirrorlake dashboard does not answer" : error.message}${since}`, true);
  }
  setTimeout(look, STATE.refresh * 1000);
}

applyTheme();
makePages();
makeFilters(fill);
onThemeChange(() => {
  forgetCharts();
  fill();
});
let widthBefore = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === widthBefore) return;
  widthBefore = innerWidth;
  forgetCharts();
  fill();
});
addEventListener("hashchange", openPage);
if (data) {
  fillFilters(data);
  sayState();
}
openPage();
if (STATE.refresh) look();
