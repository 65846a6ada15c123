/** Times as callers read them. */
import { describe, expect, it } from "vitest";
import { isoTime } from "../../src/operations/shapes.ts";

describe("isoTime", () => {
  it.each([
    0, 1, 999, 1_000, 1_700_000_000_000, 1_700_000_000_007, 1_700_000_000_070, 1_700_000_000_700, -1, -1_000, -1_001,
  ])("says %i as a date does", (epochMs) => {
    expect(isoTime(epochMs)).toBe(new Date(epochMs).toISOString());
    expect(isoTime(epochMs)).toBe(new Date(epochMs).toISOString());
  });

  it("says ten thousand times of as many seconds as dates do", () => {
    for (let at = 0; at < 10_000; at++) {
      const epochMs = 1_600_000_000_000 + at * 7_919_333;
      expect(isoTime(epochMs)).toBe(new Date(epochMs).toISOString());
    }
  });
});
