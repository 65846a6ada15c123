/**
 * The last look at what a log line says before it is written: values under names that secrets go by are masked, and whatever a field holds
 * becomes JSON of bounded size. Secrets have no business in a log line; this is for the day one gets there inside something else.
 */
export const mask = "[masked]";

/** Compared without case, `-` and `_`, and by their end: `clientSecret`, `x-api-key` and `proxy-authorization` are meant as well. */
const secretNames = [
  ...["authorization", "cookie", "password", "passwd", "passphrase", "secret", "token", "credential", "credentials"],
  ...["apikey", "accesskey", "privatekey", "secretkey", "registrykey", "jwt", "assertion"],
];
const secretName = new RegExp(`(?:${secretNames.join("|")})$`);

export function namesSecret(name: string): boolean {
  const known = judged.get(name);
  if (known !== undefined) return known;
  const isSecret = secretName.test(name.toLowerCase().replace(/[-_]/g, ""));
  if (judged.size >= namesJudgedMax) judged.clear();
  if (name.length <= nameCharactersMax) judged.set(name, isSecret);
  return isSecret;
}

/** Fields of our own lines have some hundred names, and every line asks about each of its own. */
const judged = new Map<string, boolean>();
const namesJudgedMax = 1_000;
const nameCharactersMax = 256;

/** As those names are written in texts: with `-` or `_` between any two letters would be too slow to look for, so where words meet. */
const written =
  "[\\w-]{0,64}?(?:authorization|cookie|password|passwd|passphrase|secret|token|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|secret[-_]?key|registry[-_]?key|jwt|assertion)";

/** `name: 'value'`, `"name":"value"`: what JSON and the inspection of an object look like. */
const quoted = new RegExp(
  `((["'\`]?)\\b${written}\\2\\s*[:=]\\s*)(?:'(?:[^'\\\\\\n]|\\\\.)*'?|"(?:[^"\\\\\\n]|\\\\.)*"?|\`(?:[^\`\\\\]|\\\\.)*\`?)`,
  "gi",
);
/** `Authorization: Bearer abc` up to the end of the line. */
const header = /(\b(?:proxy-)?authorization|\b(?:set-)?cookie)(\s*[:=]\s*)(?!\[masked\])[^\s"'`][^\r\n"'`]*/gi;
/** `?access_token=abc&` */
const parameter = new RegExp(`([?&;]${written}=)(?!\\[masked\\])[^&#\\s"'\`]+`, "gi");

/** Names are looked for only in texts that could have one. */
const hint = /auth|cookie|passw|passphrase|secret|token|credential|key|jwt|assertion/i;

export function maskText(text: string): string {
  if (!hint.test(text)) return text;
  return text.replace(quoted, `$1'${mask}'`).replace(header, `$1$2${mask}`).replace(parameter, `$1${mask}`);
}

export interface Allowance {
  /** Characters that all fields of one record may still take. */
  characters: number;
}

const depthMax = 6;
const membersMax = 100;

/** JSON of what a field holds; undefined where it holds nothing that could be said. Never throws. */
export function toLoggable(value: unknown, allowance: Allowance, depth = 0): unknown {
  switch (typeof value) {
    case "string":
      return taken(maskText(value.slice(0, Math.max(0, allowance.characters) + 1).toWellFormed()), allowance);
    case "number":
    case "boolean":
      allowance.characters -= 8;
      return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
    case "bigint":
    case "symbol":
      return taken(String(value), allowance);
    case "object":
      return value === null ? null : fromObject(value, allowance, depth);
    default:
      return undefined;
  }
}

function fromObject(value: object, allowance: Allowance, depth: number): unknown {
  if (depth >= depthMax || allowance.characters <= 0) return "…";
  try {
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return toLoggable(toJSON.call(value), allowance, depth + 1);
    if (value instanceof Error) return taken(maskText(`${value.name}: ${value.message}`), allowance);
    if (Array.isArray(value)) {
      const items = value.slice(0, membersMax).map((item) => toLoggable(item, allowance, depth + 1) ?? null);
      return value.length > membersMax ? [...items, "…"] : items;
    }
    return membersOf(value, allowance, depth);
  } catch {
    return "[unreadable]";
  }
}

function membersOf(value: object, allowance: Allowance, depth: number): unknown {
  const members: [string, unknown][] = [];
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue;
    if (members.length >= membersMax || allowance.characters <= 0) {
      members.push(["…", "…"]);
      break;
    }
    allowance.characters -= name.length;
    const member = (value as Record<string, unknown>)[name];
    const loggable = namesSecret(name) && member != null ? mask : toLoggable(member, allowance, depth + 1);
    if (loggable !== undefined) members.push([name.slice(0, nameCharactersMax), loggable]);
  }
  return Object.fromEntries(members);
}

function taken(text: string, allowance: Allowance): string {
  const kept = text.length <= allowance.characters ? text : `${text.slice(0, Math.max(0, allowance.characters))}…`;
  allowance.characters -= kept.length;
  return kept;
}
