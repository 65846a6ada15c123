/**
 * URLs that redirects lead to, picked by hand from what went wrong elsewhere, each with the decision written down by hand: a
 * second opinion on the oracle, and spellings that a generator would not think of.
 */
import { addresses } from "./network.ts";
import type { Decision } from "./oracle.ts";

export interface UrlRow {
  readonly why: string;
  readonly base: string;
  readonly location: string;
  /** Absolute, as resolved, user info included. */
  readonly means: string;
  readonly decision: Decision;
  readonly mayStop?: boolean;
  readonly isOpen?: boolean;
  readonly names?: Readonly<Record<string, readonly string[]>>;
}

export interface Sites {
  readonly main: number;
  readonly other: number;
}

type Row = readonly [why: string, location: string, means: string, decision: Decision, more?: Partial<UrlRow>];

const mayStop = { mayStop: true };
const isOpen = { isOpen: true };

export function urlRows({ main, other }: Sites): readonly UrlRow[] {
  const four = `http://four.test:${main}`;
  const secure = `https://four.test:${main}`;
  const evil = `http://evil.test:${main}`;
  const literal = `http://${addresses.loopback4}:${main}`;
  const number = String(addresses.loopback4.split(".").reduce((sum, part) => sum * 256 + Number(part), 0));
  const hex = `0x${Number(number).toString(16)}`;
  const mapped = `http://[::ffff:${mappedTail(addresses.loopback4)}]:${main}`;

  const below = (base: string, rows: readonly Row[]): readonly UrlRow[] =>
    rows.map(([why, location, means, decision, more]) => ({ why, base, location, means, decision, ...more }));

  return [
    ...below(`${four}/api`, [
      ["R-019 another host", `${evil}/defs`, `${evil}/defs`, "anonymous"],
      ["R-020 another port", `http://four.test:${other}/api/defs`, `http://four.test:${other}/api/defs`, "anonymous"],
      ["R-021 up to https", `${secure}/api/defs`, `${secure}/api/defs`, "anonymous"],
      ["R-022 absolute path", "/api/x", `${four}/api/x`, "attach"],
      ["R-022 last segment", "x", `${four}/api/x`, "attach"],
      ["R-022 query alone", "?q=1", `${four}/api/definitions?q=1`, "attach"],
      ["R-022 protocol-relative elsewhere", `//evil.test:${main}/x`, `${evil}/x`, "anonymous"],
      ["R-023 longer name", `${four}/api-evil`, `${four}/api-evil`, "anonymous"],
      ["R-023 longer name without a mark", `${four}/apix`, `${four}/apix`, "anonymous"],
      ["R-023 shorter name", `${four}/ap`, `${four}/ap`, "anonymous"],
      ["R-023 other case", `${four}/API/x`, `${four}/API/x`, "anonymous"],
      ["R-023 prefix further down", `${four}/other/api/x`, `${four}/other/api/x`, "anonymous"],
      ["R-023 the prefix itself", `${four}/api`, `${four}/api`, "attach"],
      ["R-023 the prefix with a slash", `${four}/api/`, `${four}/api/`, "attach"],
      ["R-023 the prefix with a query", `${four}/api?x=1`, `${four}/api?x=1`, "attach"],
      ["R-023 a segment parameter", `${four}/api;v=1/x`, `${four}/api;v=1/x`, "anonymous"],
      ["R-023 an empty segment in front", `${four}//api/x`, `${four}//api/x`, "anonymous"],
      ["R-023 an empty segment inside", `${four}/api//x`, `${four}/api//x`, "attach"],
      ["R-023 the prefix in a query", `${four}/x?/api/`, `${four}/x?/api/`, "anonymous"],
      ["R-024 dots out", "/api/../admin", `${four}/admin`, "anonymous"],
      ["R-024 single and double dots", "/api/./../admin", `${four}/admin`, "anonymous"],
      ["R-024 encoded dots", "/api/%2e%2e/admin", `${four}/admin`, "anonymous"],
      ["R-024 half encoded dots", "/api/.%2E/admin", `${four}/admin`, "anonymous"],
      ["R-024 two levels", "/api/x/../../admin", `${four}/admin`, "anonymous"],
      ["R-024 dots back in", "/x/../api/y", `${four}/api/y`, "attach"],
      ["R-024 backslashes as slashes", "/api\\..\\admin", `${four}/admin`, "anonymous"],
      ["R-024 encoded slash", "/api/..%2fadmin", `${four}/api/..%2fadmin`, "anonymous"],
      ["R-024 encoded slash, capitals", "/api/..%2Fadmin", `${four}/api/..%2Fadmin`, "anonymous"],
      ["R-024 encoded backslash", "/api/..%5cadmin", `${four}/api/..%5cadmin`, "anonymous"],
      ["R-024 encoded slash without dots", "/api/a%2fb", `${four}/api/a%2fb`, "anonymous"],
      ["R-024 encoded slash in the query", "/api/a?b=%2f..%2f", `${four}/api/a?b=%2f..%2f`, "attach"],
      ["R-024 encoded letter of the prefix", "/%61pi/x", `${four}/%61pi/x`, "anonymous"],
      ["R-024 three dots are a name", "/api/.../x", `${four}/api/.../x`, "attach"],
      ["R-024 dots inside a name", "/api/a..b", `${four}/api/a..b`, "attach"],
      ["R-024 doubly encoded dots", "/api/%252e%252e/x", `${four}/api/%252e%252e/x`, "attach", isOpen],
      ["R-024 an encoded dot inside a name", "/api/file%2ejson", `${four}/api/file%2ejson`, "attach", isOpen],
      ["R-024 dots with a parameter", "/api/..;/admin", `${four}/api/..;/admin`, "attach", isOpen],
      [
        "R-025 host as a prefix",
        `http://four.test.evil.test:${main}/api`,
        `http://four.test.evil.test:${main}/api`,
        "anonymous",
      ],
      ["R-025 host as a suffix", `http://evilfour.test:${main}/api`, `http://evilfour.test:${main}/api`, "anonymous"],
      ["R-025 host in a query", `${evil}/?${four}/api`, `${evil}/?${four}/api`, "anonymous"],
      ["R-025 host in a fragment", `${evil}/#${four}/api`, `${evil}/`, "anonymous"],
      ["R-025 host in a path", `${evil}/four.test/api`, `${evil}/four.test/api`, "anonymous"],
      ["R-025 a dot at the end", `http://four.test.:${main}/api`, `http://four.test.:${main}/api`, "anonymous"],
      ["R-025 an encoded host", `http://%66our.test:${main}/api/x`, `${four}/api/x`, "attach"],
      ["R-025 a host in wide letters", `http://%EF%BD%86our.test:${main}/api/x`, `${four}/api/x`, "attach"],
      ["R-025 host and scheme in capitals", `HTTP://FOUR.TEST:${main}/api/x`, `${four}/api/x`, "attach"],
      ["R-025 backslash before the host", `/\\evil.test:${main}/api`, `${evil}/api`, "anonymous"],
      ["R-025 backslashes after the scheme", `http:\\\\evil.test:${main}\\api`, `${evil}/api`, "anonymous"],
      ["R-025 a tab inside the slashes", `/\t/evil.test:${main}/api`, `${evil}/api`, "anonymous"],
      ["R-025 a tab inside the scheme", `ht\ttp://evil.test:${main}/api`, `${evil}/api`, "anonymous"],
      ["R-025 one slash after the scheme", "http:/api/x", `${four}/api/x`, "attach"],
      [
        "R-025 three slashes after another scheme",
        `https:///evil.test:${main}/api`,
        `https://evil.test:${main}/api`,
        "anonymous",
      ],
      [
        "R-025 backslash ends the host",
        `http://evil.test:${main}\\@four.test/api`,
        `${evil}/@four.test/api`,
        "anonymous",
      ],
      ["R-025 a port with zeros in front", `http://four.test:0${main}/api/x`, `${four}/api/x`, "attach"],
      ["R-025 the address instead of the name", `${literal}/api/x`, `${literal}/api/x`, "anonymous"],
      [
        "R-026 user info on our host",
        `http://u:p@four.test:${main}/api/x`,
        `http://u:p@four.test:${main}/api/x`,
        "anonymous",
        mayStop,
      ],
      [
        "R-026 user info elsewhere",
        `http://u:p@evil.test:${main}/`,
        `http://u:p@evil.test:${main}/`,
        "anonymous",
        mayStop,
      ],
      [
        "R-026 our host as user info",
        `http://four.test:${main}@evil.test:${main}/api`,
        `http://four.test:${main}@evil.test:${main}/api`,
        "anonymous",
        mayStop,
      ],
      ["R-026 an empty user", `http://@four.test:${main}/api/x`, `${four}/api/x`, "attach"],
      ["R-026 an at sign in the path", `${four}/api/u:p@x`, `${four}/api/u:p@x`, "attach"],
      [
        "an elsewhere that shares our address",
        `http://alias.test:${main}/api`,
        `http://alias.test:${main}/api`,
        "anonymous",
        { names: { "alias.test": [addresses.loopback4] } },
      ],
    ]),
    ...below(`${secure}/api`, [
      ["R-021 down to http", `${four}/api/defs`, `${four}/api/defs`, "anonymous"],
      [
        "R-021 down to http on loopback, and another port",
        `http://four.test:${other}/api`,
        `http://four.test:${other}/api`,
        "anonymous",
      ],
      ["R-021 protocol-relative keeps https", `//four.test:${main}/api/x`, `${secure}/api/x`, "attach"],
      ["R-019 another host over https", `https://evil.test:${main}/api`, `https://evil.test:${main}/api`, "anonymous"],
    ]),
    ...below(`${four}/`, [
      ["a base without path covers the root", `${four}/`, `${four}/`, "attach"],
      ["a base without path covers every path", `${four}/any/where`, `${four}/any/where`, "attach"],
      ["a base without path and an empty segment", `${four}//evil.test/x`, `${four}//evil.test/x`, "attach"],
      ["a base without path and an encoded slash", `${four}/a%2fb`, `${four}/a%2fb`, "anonymous"],
      ["a base without path, another port", `http://four.test:${other}/`, `http://four.test:${other}/`, "anonymous"],
    ]),
    ...below(`${four}/api/`, [
      ["a base with a slash at its end", `${four}/api/x`, `${four}/api/x`, "attach"],
      ["a base with a slash at its end, and a longer name", `${four}/apix`, `${four}/apix`, "anonymous"],
      ["a base with a slash at its end, asked without", `${four}/api`, `${four}/api`, "attach", isOpen],
    ]),
    ...below(`${four}/a/b`, [
      ["a deep base covers below", `${four}/a/b/c`, `${four}/a/b/c`, "attach"],
      ["a deep base does not cover above", `${four}/a`, `${four}/a`, "anonymous"],
      ["a deep base does not cover beside", `${four}/a/bc`, `${four}/a/bc`, "anonymous"],
      ["a deep base is not met by an encoded slash", `${four}/a%2fb/c`, `${four}/a%2fb/c`, "anonymous"],
    ]),
    ...below(`${four}/a%20b`, [
      ["a base with an escape", `${four}/a%20b/c`, `${four}/a%20b/c`, "attach"],
      ["a base with an escape, written plainly", "/a b/c", `${four}/a%20b/c`, "attach"],
    ]),
    ...below(`${literal}/api`, [
      ["R-029 an address as one number", `http://${number}:${main}/api/x`, `${literal}/api/x`, "attach"],
      ["R-029 an address in hexadecimal", `http://${hex}:${main}/api/x`, `${literal}/api/x`, "attach"],
      [
        "R-029 another loopback address",
        `http://${addresses.other}:${main}/api`,
        `http://${addresses.other}:${main}/api`,
        "anonymous",
      ],
      ["R-029 the same address inside IPv6", `${mapped}/api`, `${mapped}/api`, "anonymous"],
      ["a name of our address", `${four}/api/x`, `${four}/api/x`, "anonymous"],
    ]),
  ];
}

/** As URLs write the IPv4 part of a mapped address. */
function mappedTail(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}
