/** Reads the text format of Prometheus strictly enough to notice what a scraper would refuse. */
export interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  /** By series: name and labels as they are written. */
  readonly values: ReadonlyMap<string, number>;
  /** Of all series of that name whose labels contain these. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)$/;

export function readExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ")) continue;
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line);
    if (type !== null) {
      types.set(type[1] ?? "", type[2] ?? "");
      continue;
    }
    const match = sample.exec(line);
    if (match === null) throw new Error(`Not a line of the text format: ${line}`);
    const [, name = "", labels = "", value = ""] = match;
    const series = `${name}${labels}`;
    if (values.has(series)) throw new Error(`Series twice: ${series}`);
    values.set(series, value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value));
  }
  return {
    types,
    values,
    sum: (name, labels = {}) =>
      [...values]
        .filter(([series]) => series === name || series.startsWith(`${name}{`))
        .filter(([series]) => Object.entries(labels).every(([label, value]) => series.includes(`${label}="${value}"`)))
        .reduce((sum, [, value]) => sum + value, 0),
  };
}
