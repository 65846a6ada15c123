import { describe, expect, it } from "vitest";
import { faultCode, faultReason } from "../../src/store/fault-reason.ts";

const level = (message: string, code: string) => Object.assign(new Error(message), { code });

describe("the reason of a storage fault", () => {
  it.each([
    [
      "LevelDB, disk full",
      level("IO error: /data/000012.log: No space left on device", "LEVEL_IO_ERROR"),
      "no space left on device",
    ],
    [
      "LevelDB, colon in the path",
      level("IO error: /a:b/000012.log: Input/output error", "LEVEL_IO_ERROR"),
      "input/output error",
    ],
    [
      "LevelDB, corruption",
      level("Corruption: block checksum mismatch", "LEVEL_CORRUPTION"),
      "block checksum mismatch",
    ],
    [
      "LevelDB, corruption with a file",
      level("Corruption: 2 missing files; e.g.: /data/000005.ldb", "LEVEL_CORRUPTION"),
      "unexpected error",
    ],
    ["Node, disk full", level("ENOSPC: no space left on device, write", "ENOSPC"), "no space left on device"],
    ["Node, with a path", level("EACCES: permission denied, open '/data/secret'", "EACCES"), "permission denied"],
    ["Node, with a slash in it", level("EIO: i/o error, read", "EIO"), "i/o error"],
    ["a text with a path", new Error("cannot touch /data/secret"), "unexpected error"],
    ["a plain text", new Error("Database is not open"), "database is not open"],
    ["no text", new Error(""), "unexpected error"],
  ])("is free of paths: %s", (_what, error, reason) => {
    expect(faultReason(error)).toBe(reason);
    expect(faultReason(new Error("Database failed to open", { cause: error }))).toBe(reason);
    expect(reason).not.toMatch(/\/data|secret/);
  });

  it("is free of paths even where no error was thrown", () => {
    expect(faultReason("/data/secret")).toBe("unexpected error");
  });

  it("has the code of the innermost error that has one", () => {
    const inner = level("IO error: lock /data/LOCK: busy", "LEVEL_LOCKED");
    const outer = Object.assign(new Error("Database failed to open", { cause: inner }), {
      code: "LEVEL_DATABASE_NOT_OPEN",
    });
    expect(faultCode(outer)).toBe("LEVEL_LOCKED");
    expect(faultCode(new Error("x"))).toBeUndefined();
    expect(faultCode(undefined)).toBeUndefined();
  });
});
