// Numbers and times as people read them. Charts, counters and tables all write through these.

const EN = "en-US";

/** A number in one of the formats of the dashboard's file; null is a dash. */
function quantity(value, format) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const wanted = format && typeof format === "object" ? format : {};
  const options = { maximumFractionDigits: 2 };
  if (wanted.type === "number-plain") options.useGrouping = false;
  if (wanted.type === "number-percent") options.style = "percent";
  if (wanted.abbreviation === "compact") options.notation = "compact";
  if (wanted.decimalPlaces) {
    options.maximumFractionDigits = wanted.decimalPlaces.places;
    if (wanted.decimalPlaces.type === "exact") options.minimumFractionDigits = wanted.decimalPlaces.places;
  }
  return new Intl.NumberFormat(EN, options).format(value) + (wanted.suffix || "");
}

/** A moment, given in ms, to the second, in UTC. */
function instant(ms) {
  return ms === null || ms === undefined ? "–" : new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

/** A moment on an axis, in UTC: the time of day, or the day at its beginning. */
function clock(ms) {
  const at = new Date(ms);
  const text = at.toISOString();
  if (text.slice(11, 19) === "00:00:00") {
    return new Intl.DateTimeFormat(EN, { month: "short", day: "numeric", timeZone: "UTC" }).format(at);
  }
  return at.getUTCSeconds() ? text.slice(11, 19) : text.slice(11, 16);
}
