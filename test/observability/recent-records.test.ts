/** Against a plain array, for any mix of adding and looking. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentRecords } from "../../src/observability/recent-records.ts";
import type { LogRecord } from "../../src/ports/log-records.ts";
import "../property-seed.ts";

const record = (seq: number, characters = 0): LogRecord => ({
  timestamp: "2026-11-28T09:30:00.000Z",
  seq,
  level: "info",
  event: "e",
  message: "x".repeat(characters),
});
const seqs = (records: readonly LogRecord[]): number[] => records.map(({ seq }) => seq);

describe("recent records", () => {
  it("are the last ones, in both directions from anywhere", () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ add: fc.integer({ min: 1, max: 3 }) }) },
      {
        weight: 1,
        arbitrary: fc.record({ look: fc.integer({ min: 0, max: 80 }), limit: fc.integer({ min: 1, max: 9 }) }),
      },
      { weight: 1, arbitrary: fc.record({ shift: fc.integer({ min: 1, max: 5 }) }) },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 60 }), (countMax, steps) => {
        const recent = new RecentRecords(countMax, 1_000_000);
        let model: number[] = [];
        let seq = 0;
        for (const one of steps) {
          if ("add" in one) {
            seq += one.add;
            const left = model.length === countMax ? model.slice(0, 1) : [];
            expect(seqs(recent.add(record(seq)))).toEqual(left);
            model = [...model, seq].slice(-countMax);
          } else if ("shift" in one) {
            recent.shift(one.shift);
            seq += one.shift;
            model = model.map((each) => each + one.shift);
          } else {
            expect(seqs(recent.above(one.look, one.limit))).toEqual(
              model.filter((each) => each > one.look).slice(0, one.limit),
            );
            const below = model.filter((each) => each < one.look).reverse();
            expect(seqs(recent.below(one.look, one.limit))).toEqual(below.slice(0, one.limit));
          }
          expect(recent.last?.seq).toBe(model.at(-1));
        }
      }),
    );
  });

  it("leave when they are too large together, but the newest never", () => {
    const recent = new RecentRecords(100, 10_000);
    for (let seq = 1; seq <= 10; seq++) recent.add(record(seq, 3_000));
    expect(seqs(recent.above(0, 100))).toEqual([8, 9, 10]);
    expect(seqs(recent.add(record(11, 1_000_000)))).toEqual([8, 9, 10]);
    expect(seqs(recent.above(0, 100))).toEqual([11]);
    recent.add(record(12));
    expect(seqs(recent.above(0, 100))).toEqual([12]);
  });

  it("say from where on they are complete", () => {
    const recent = new RecentRecords(2, 10_000);
    expect(recent.lowest).toBe(Number.MAX_SAFE_INTEGER);
    recent.add(record(5));
    expect(recent.lowest).toBe(5);
    recent.add(record(7));
    recent.add(record(9));
    expect(recent.lowest).toBe(6);
  });
});
