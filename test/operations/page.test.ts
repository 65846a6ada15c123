import { describe, expect, it } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { decodeCursor, encodeCursor, walk } from "../../src/operations/page.ts";

const shape = ["number", "string"] as const;
const encoded = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const good = encodeCursor([5, "a"]);

function told(text: string): string {
  try {
    return JSON.stringify(decodeCursor(text, shape));
  } catch (error) {
    return isFailure(error) ? error.kind : `crash: ${error}`;
  }
}

describe("a cursor", () => {
  it("comes back as the position it was made of", () => {
    expect(told(good)).toBe('[5,"a"]');
  });

  const refused: Record<string, string> = {
    "of no characters": "",
    "of percent signs": "%%%",
    "that is a word": "abc",
    "of an empty object": encoded({}),
    "of null": encoded("null"),
    "of an array": encoded([]),
    "of a number": encoded("5"),
    "without a position": encoded({ v: 1 }),
    "without a version": encoded({ k: [5, "a"] }),
    "with a text as version": encoded({ v: "1", k: [5, "a"] }),
    "with another member": encoded({ v: 1, k: [5, "a"], x: 1 }),
    "with one key too few": encoded({ v: 1, k: [5] }),
    "with one key too many": encoded({ v: 1, k: [5, "a", 1] }),
    "with keys of other types": encoded({ v: 1, k: ["5", "a"] }),
    "with null as a key": encoded({ v: 1, k: [5, null] }),
    "of invalid UTF-8": Buffer.from([0x7b, 0xff, 0xfe]).toString("base64url"),
    "of a NUL": Buffer.from([0]).toString("base64url"),
    "with padding": `${good}=`,
    "in the other alphabet": encodeCursor([5, "???>>>"]).replace(/-/g, "+").replace(/_/g, "/"),
    "with a blank inside": `${good.slice(0, 4)} ${good.slice(4)}`,
    "with a line end": `${good}\n`,
    "with something after it": `${good}!`,
    "encoded twice": encoded(good),
    "of 2,049 characters": encodeCursor([5, "a".repeat(2_000)]).slice(0, 2_049),
    "of another list": encodeCursor([5, 6]),
  };
  for (const [what, text] of Object.entries(refused)) {
    it(`${what} is invalid_cursor`, () => {
      expect(told(text)).toBe("invalid_cursor");
    });
  }

  for (const version of [0, 2, 99]) {
    it(`of version ${version} is cursor_expired, whatever it holds`, () => {
      expect(told(encoded({ v: version, k: [5, "a"] }))).toBe("cursor_expired");
      expect(told(encoded({ v: version, k: ["other"] }))).toBe("cursor_expired");
    });
  }
});

describe("a walk", () => {
  const rows = Array.from({ length: 250 }, (_, number) => String(number).padStart(3, "0"));
  const read = async (
    after: string | undefined,
    limit: number,
  ): Promise<{ items: string[]; next: string | undefined }> => {
    const start = after === undefined ? 0 : rows.indexOf(after) + 1;
    const items = rows.slice(start, start + limit);
    return { items, next: items.length < limit ? undefined : items.at(-1) };
  };

  async function all(limit: number, keep: (row: string) => boolean): Promise<string[]> {
    const seen: string[] = [];
    let after: string | undefined;
    for (let page = 0; page < 1_000; page++) {
      const { kept, last } = await walk({ read, sortOf: (row) => row, keep }, after, limit);
      expect(kept.length).toBeLessThanOrEqual(limit);
      seen.push(...kept);
      if (last === undefined) return seen;
      after = last;
    }
    throw new Error("The walk does not end");
  }

  for (const limit of [1, 7, 100]) {
    it(`with pages of ${limit} sees each row once, in order`, async () => {
      expect(await all(limit, () => true)).toEqual(rows);
    });

    it(`with pages of ${limit} sees each row that passes a filter once`, async () => {
      const wanted = rows.filter((row) => row.endsWith("7"));
      expect(await all(limit, (row) => row.endsWith("7"))).toEqual(wanted);
    });
  }

  it("has no next page when the last page is exactly full", async () => {
    const { kept, last } = await walk({ read, sortOf: (row) => row, keep: () => true }, "149", 100);
    expect([kept.length, last]).toEqual([100, undefined]);
  });
});
