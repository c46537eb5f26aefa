// Light and dark: the system's choice until the user chooses.

const THEME = STATE.dashboard.theme;
const THEME_KEY = "mirrorlake-theme";
const INK = {
  light: { soft: "#5B6875", line: "#E4E9EE", ramp: ["#EEF3F8", "#F6C667", "#E07B39", "#A6212F"] },
  dark: { soft: "#97A5B2", line: "#2A333B", ramp: ["#232C34", "#7A5A22", "#D07A35", "#FF6B5E"] },
};

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null; // a file's page may have no storage
  }
}

let shade = storedTheme() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** Put the colours of the file's theme where the style sheet reads them. */
function applyTheme() {
  const root = document.documentElement;
  root.dataset.theme = shade;
  const set = (name, value) => root.style.setProperty(name, value);
  set("--canvas", THEME.canvasBackgroundColor[shade]);
  set("--card", THEME.widgetBackgroundColor[shade]);
  set("--border", THEME.widgetBorderColor[shade]);
  set("--ink", THEME.fontColor[shade]);
  set("--accent", THEME.selectionColor[shade]);
  set("--soft", INK[shade].soft);
  THEME.visualizationColors.forEach((color, index) => set(`--color-${index + 1}`, color));
  document.getElementById("theme").textContent = shade === "dark" ? "☀ light" : "☾ dark";
}

function onThemeChange(redraw) {
  const change = (next) => {
    shade = next;
    applyTheme();
    redraw();
  };
  document.getElementById("theme").addEventListener("click", () => {
    const next = shade === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(THEME_KEY, next);
    } catch {
      // it holds for as long as the page is open
    }
    change(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (!storedTheme()) change(event.matches ? "dark" : "light");
  });
}

/** Vega's settings in the colours of now, for a chart this many pixels wide. */
function chartConfig(width) {
  const { soft, line, ramp } = INK[shade];
  const ink = THEME.fontColor[shade];
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  return {
    background: "transparent",
    font,
    customFormatTypes: true,
    view: { stroke: null },
    axis: {
      labelColor: soft, titleColor: soft, titleFontWeight: "normal", titleFontSize: 11, labelFontSize: 11,
      gridColor: line, domainColor: line, tickColor: line, titlePadding: 8,
    },
    axisX: { grid: false, ticks: false, labelPadding: 6 },
    axisY: { domain: false, ticks: false, labelPadding: 6 },
    legend: {
      orient: "top", direction: "horizontal", labelColor: ink, titleColor: soft, titleFontWeight: "normal",
      labelFontSize: 11, titleFontSize: 11, symbolSize: 80, symbolStrokeWidth: 2, labelLimit: 170,
      columns: Math.max(1, Math.floor(width / 150)), offset: 8,
    },
    rect: { stroke: THEME.widgetBackgroundColor[shade], strokeWidth: 2 },
    range: { category: THEME.visualizationColors, heatmap: ramp, ramp },
  };
}
