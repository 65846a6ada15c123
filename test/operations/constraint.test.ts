import { describe, expect, it } from "vitest";
import { constraint, newestWithin } from "../../src/operations/constraint.ts";
import { readDescriptor } from "../../src/registries/descriptors.ts";

describe("a constraint", () => {
  it.each(["^1.0.0", " ~1.2 ", "1.x", ">=1.0.0 <2.0.0 || 3.x", "*", "1.2.3-beta.1"])("may be %j", (range) => {
    expect(constraint.safeParse(range).success).toBe(true);
  });

  it.each(["latest", "^", "1.2.3.4", ">=01.2.3", "npm:x@1", "workspace:*", "not a range", "", "   ", 1, true, []])(
    "may not be %j",
    (range) => {
      expect(constraint.safeParse(range).success).toBe(false);
    },
  );

  it.each([
    ["blanks", `1.2.3${" ".repeat(90_000)}<1.3.0`],
    ["x", "x".repeat(90_000)],
    ["1.", "1.".repeat(90_000)],
    ["-", "-".repeat(90_000)],
  ])("of 90,000 %s is refused before anything looks at it", (_, range) => {
    const started = process.cpuUsage();
    expect(constraint.safeParse(range).success).toBe(false);
    expect(process.cpuUsage(started).user).toBeLessThan(50_000);
  });
});

describe("the newest version within a constraint", () => {
  it("is a pre-release only when the range names one", () => {
    const betas = ["1.0.0-beta.1", "1.0.0-beta.2"];
    expect(newestWithin(betas, "1.0.0-beta.2", "^1.0.0")).toBeNull();
    const more = [...betas, "1.0.0", "1.1.0-rc.1"];
    expect(newestWithin(more, "1.0.0", "^1.0.0")).toBe("1.0.0");
    expect(newestWithin(more, "1.0.0", "^1.1.0-rc.0")).toBe("1.1.0-rc.1");
    expect(newestWithin(more, "1.0.0", null)).toBe("1.0.0");
  });

  it("is found among 5,000, and texts that are no versions are left out", () => {
    const good = Array.from({ length: 5_000 }, (_, number) => `1.${number}.0`);
    const odd = ["v1.2.3", "1.2", "banana", `1.0.0-${"x".repeat(300)}`];
    const versions = Object.fromEntries([...odd, ...good].map((version) => [version, { downloadUrl: "/d" }]));
    const document = Buffer.from(JSON.stringify({ latestVersion: "1.4999.0", versions }));
    const descriptor = readDescriptor(document, "http://r.test/d", "The descriptor");
    const kept = new Set(Object.keys(descriptor.versions));
    expect(good.filter((version) => !kept.has(version))).toEqual([]);
    expect(["v1.2.3", "1.2", "banana"].filter((text) => kept.has(text))).toEqual([]);
    const started = process.cpuUsage();
    expect(newestWithin([...kept], descriptor.latestVersion, "^1.0.0")).toBe("1.4999.0");
    expect(process.cpuUsage(started).user).toBeLessThan(200_000);
  });
});
