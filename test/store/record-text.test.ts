import { describe, expect, it } from "vitest";
import { decodeRecord, encodeRecord } from "../../src/store/record-text.ts";
import { change } from "./commits.ts";
import { openMemoryStore } from "./memory-store.ts";
import { keptLog, wallClock } from "./parts.ts";

describe("the text of a record", () => {
  it.each(["", " ", "1 one", "{}", "\n", "\u0000"])("holds any value: %j", (value) => {
    for (const revision of [1, 9, 10, 2 ** 40])
      expect(decodeRecord(encodeRecord({ revision, value }))).toEqual({ revision, value });
  });

  it.each(["", "1", "x", "0 x", "-1 x", "01 x", "1.5 x", "1e3 x", " 1 x", "{} x", "99999999999999999 x"])(
    "is not %j",
    (text) => {
      expect(decodeRecord(text)).toBeUndefined();
    },
  );

  it("an entry read as a record is a crash, and committed to as one a conflict", async () => {
    const store = await openMemoryStore({ clock: wallClock, log: keptLog() });
    await store.commit([
      { epoch: store.epoch, record: { key: "a/1", expect: 0, value: "x" }, writes: [{ key: "x/1", value: "entry" }] },
    ]);
    await expect(store.load("x/1")).rejects.toThrow('Stored text of "x/1" is no record');
    for (const revision of [0, 1])
      expect(await store.commit([change(store, "x/1", revision, "y")])).toEqual(["conflict"]);
    expect(await store.read(["x/1"])).toEqual(["entry"]);
    await store.close();
  });
});
