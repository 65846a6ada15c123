/** What people see: tables that fit, text of others that does nothing to a terminal, amounts that can be read. */
import { describe, expect, it } from "vitest";
import { bytesText, secondsText } from "../../src/cli/amounts.ts";
import { fit, harmlessJson, harmlessLine, harmlessText, widthOf } from "../../src/cli/harmless.ts";
import { type Column, Table } from "../../src/cli/table.ts";

const plain = (text: string) => text;
const columns: readonly Column[] = [
  { title: "ID", of: "id", align: "right" },
  { title: "NAME", of: "name" },
  { title: "ON", of: "on" },
];

describe("a table", () => {
  it("aligns its columns by the widest cell and keeps that for later pages", () => {
    const table = new Table(columns, undefined);
    expect(
      table.lines(
        [
          { id: 7, name: "otter", on: true },
          { id: 12, name: "a" },
        ],
        plain,
      ),
    ).toEqual(["ID  NAME   ON", " 7  otter  yes", "12  a"]);
    expect(table.lines([{ id: 3, name: "longer than before", on: false }], plain)).toEqual([
      " 3  longer than before  no",
    ]);
  });

  it("is cut to the terminal, its widest column first, and is whole elsewhere", () => {
    const items = [{ id: 1, name: "x".repeat(100), on: true }];
    const [, cut] = new Table(columns, 30).lines(items, plain);
    expect(cut).toBe(` 1  ${"x".repeat(20)}…  yes`);
    expect(new Table(columns, undefined).lines(items, plain)[1]).toContain("x".repeat(100));
  });

  it.each([1, 2, 5, 9, 17])("never has a line wider than a terminal of %i columns", (width) => {
    const items = [{ id: 123_456, name: "狐狸 and 🦦 and é", on: true }];
    for (const line of new Table(columns, width).lines(items, plain)) expect(widthOf(line)).toBeLessThanOrEqual(width);
  });

  it("counts columns of wide characters, emoji and combining marks as a terminal does", () => {
    expect(["狐狸", "🦦", "e\u0301", "ok"].map(widthOf)).toEqual([4, 2, 1, 2]);
    expect(fit("狐狸狐狸", 5)).toBe("狐狸…");
    const lines = new Table(columns, undefined).lines(
      [
        { id: 1, name: "狐狸", on: true },
        { id: 2, name: "fox!", on: true },
      ],
      plain,
    );
    expect(lines.slice(1)).toEqual([" 1  狐狸  yes", " 2  fox!  yes"]);
  });

  it("has one line for each item, whatever is in it", () => {
    const lines = new Table(columns, undefined).lines([{ id: 1, name: "two\nlines\tand \u001b[31m" }], plain);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain("two\\nlines\\tand \\x1b[31m");
  });
});

describe("text of others", () => {
  it.each([
    ["a colour", "\u001b[31mred", "\\x1b[31mred"],
    ["a title", "\u001b]0;owned\u0007", "\\x1b]0;owned\\x07"],
    ["an eight-bit control", "\u009b2J", "\\x9b2J"],
    ["a carriage return", "safe\rEVIL", "safe\\rEVIL"],
    ["a backspace", "ab\b\bcd", "ab\\x08\\x08cd"],
    ["a delete", "\u007f", "\\x7f"],
    ["text turned around", "a\u202etxt.exe", "a\\u202etxt.exe"],
    ["an isolate", "\u2066x\u2069", "\\u2066x\\u2069"],
    ["a line separator", "a\u2028b", "a\\u2028b"],
    ["half a character", "a\ud800b", "a\ufffdb"],
    ["nothing special", "ordinary 狐狸 🦦 text", "ordinary 狐狸 🦦 text"],
  ])("is harmless with %s", (_what, text, shown) => {
    expect(harmlessLine(text)).toBe(shown);
    expect(harmlessText(text)).toBe(shown);
  });

  it("keeps its line feeds and tabs where it may have several lines", () => {
    expect(harmlessText("a\n\tb")).toBe("a\n\tb");
    expect(harmlessLine("a\n\tb")).toBe("a\\n\\tb");
  });

  it("stays the same JSON", () => {
    const value = { text: "\u009b2J\u007f\u202e", lines: "a\nb" };
    const shown = harmlessJson(JSON.stringify(value, null, 2));
    expect(shown).not.toMatch(/[\u007f-\u009f\u202e]/);
    expect(JSON.parse(shown)).toEqual(value);
  });
});

describe("amounts", () => {
  it("are told in the largest unit that fits", () => {
    expect([0, 1_023, 1_024, 1_536, 5 * 1_024 ** 3].map(bytesText)).toEqual([
      "0 B",
      "1023 B",
      "1.0 KiB",
      "1.5 KiB",
      "5.0 GiB",
    ]);
    expect([0, 59, 60, 3_725, 90_000, 864_000].map(secondsText)).toEqual([
      "0s",
      "59s",
      "1m 0s",
      "1h 2m",
      "1d 1h",
      "10d 0h",
    ]);
  });
});
