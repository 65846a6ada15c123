/** Envelopes: what is sealed comes back, and nothing else ever does. */
import { execFile } from "node:child_process";
import { createCipheriv, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Failure, isFailure } from "../../src/errors/failure.ts";
import { checkCanary, makeCanary } from "../../src/secrets/canary.ts";
import { parseSecretsKey } from "../../src/secrets/secrets-key.ts";
import { openVault } from "../../src/secrets/vault.ts";

const key = randomBytes(32).toString("base64");
const otherKey = randomBytes(32).toString("base64");
const context = { kind: "service", id: "petstore", field: "secrets" };
const canary = "canary-4711";

function failure(action: () => unknown): Failure {
  try {
    action();
  } catch (error) {
    if (isFailure(error)) return error;
    throw error;
  }
  throw new Error("Nothing failed");
}

describe("sealing", () => {
  const vault = openVault({ key });

  test("gives back any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(vault.open(vault.seal(text, context), context)).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });

  test("never makes the same envelope twice, and hides the text", () => {
    const envelopes = Array.from({ length: 1_000 }, () => vault.seal(canary, context));
    expect(new Set(envelopes).size).toBe(1_000);
    for (const hidden of [canary, Buffer.from(canary).toString("base64url"), key])
      expect(envelopes[0]).not.toContain(hidden);
  });

  test("uses another IV in each of 20,000 seals over four processes", async () => {
    const source = `
      import { openVault } from ${JSON.stringify(new URL("../../src/secrets/vault.ts", import.meta.url).href)};
      const vault = openVault({ key: process.argv[1] });
      const ivs = Array.from({ length: 5000 }, () => vault.seal("x", { kind: "a", id: "b", field: "c" }).split(".")[2]);
      console.log(ivs.join("\\n"));`;
    const run = promisify(execFile);
    const outputs = await Promise.all(
      [1, 2, 3, 4].map(() =>
        run(process.execPath, ["--input-type=module", "-e", source, key], { maxBuffer: 4 * 1024 * 1024 }),
      ),
    );
    const ivs = outputs.flatMap(({ stdout }) => stdout.trim().split("\n"));
    expect(ivs).toHaveLength(20_000);
    expect(new Set(ivs).size).toBe(20_000);
    expect(ivs.every((iv) => Buffer.from(iv, "base64url").length === 12)).toBe(true);
  });
});

describe("opening what was not sealed", () => {
  const vault = openVault({ key });
  const envelope = vault.seal(canary, context);
  const parts = envelope.split(".");
  const changed = (at: number, part: string): string => parts.with(at, part).join(".");
  const bytes = (at: number): Buffer => Buffer.from(parts[at] ?? "", "base64url");

  test("10,000 flips of one bit are all refused, without a word of the secret", () => {
    for (let round = 0; round < 10_000; round += 1) {
      const at = Math.floor(Math.random() * envelope.length);
      const flipped = envelope.charCodeAt(at) ^ (1 << Math.floor(Math.random() * 8));
      const text = envelope.slice(0, at) + String.fromCharCode(flipped) + envelope.slice(at + 1);
      const error = failure(() => vault.open(text, context));
      expect(error.kind).toBe("internal");
      expect(error.message).not.toContain("canary");
    }
    expect(vault.open(envelope, context)).toBe(canary);
  });

  test("every single bit of IV, tag and ciphertext counts", () => {
    for (const part of [2, 3, 4]) {
      for (let bit = 0; bit < bytes(part).length * 8; bit += 1) {
        const flipped = bytes(part);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        failure(() => vault.open(changed(part, flipped.toString("base64url")), context));
      }
    }
  });

  test.each([15, 14, 13, 12, 8, 4, 0])(
    "a tag cut to %i bytes is refused, though the cipher would take it",
    (length) => {
      failure(() => vault.open(changed(3, bytes(3).subarray(0, length).toString("base64url")), context));
    },
  );

  test.each([0, 8, 11, 13, 16])("an IV of %i bytes is refused, also with a matching tag", (length) => {
    const secretsKey = parseSecretsKey(key, "key");
    // OpenSSL makes no cipher with an empty IV.
    const iv = randomBytes(length);
    const cipher = createCipheriv("aes-256-gcm", secretsKey.bytes, length === 0 ? randomBytes(12) : iv);
    cipher.setAAD(Buffer.from(JSON.stringify(["t1", secretsKey.id, "service", "petstore", "secrets"])));
    const ciphertext = Buffer.concat([cipher.update("forged"), cipher.final()]);
    const forged = [
      "t1",
      secretsKey.id,
      ...[iv, cipher.getAuthTag(), ciphertext].map((part) => part.toString("base64url")),
    ].join(".");
    expect(failure(() => vault.open(forged, context)).message).toContain("no envelope of this service");
  });

  test.each([
    ["nothing", ""],
    ["plain text", canary],
    ["JSON", '{"token":"x"}'],
    ["another version", changed(0, "t2")],
    ["no version", parts.slice(1).join(".")],
    ["a part more", `${envelope}.`],
    ["padding", `${envelope}==`],
    ["the other alphabet", changed(4, "ab+/")],
    ["a line break", `${envelope}\n`],
    ["a longer ciphertext", changed(4, `${parts[4]}AAAA`)],
    ["no ciphertext", changed(4, "")],
  ])("%s is refused", (_name, text) => {
    expect(failure(() => vault.open(text, context)).message).toMatch(
      /^Cannot read the secrets of service "petstore", field "secrets": /,
    );
    expect(vault.isCurrent(text) && text !== changed(4, "") && !text.endsWith("AAAA")).toBe(false);
  });

  test.each([
    { ...context, kind: "module" },
    { ...context, id: "petstore2" },
    { ...context, field: "auth" },
    { kind: "service", id: "petstoresecrets", field: "" },
    { kind: 'service","petstore', id: "secrets", field: "" },
  ])("it does not open in another place: %j", (elsewhere) => {
    expect(failure(() => vault.open(envelope, elsewhere)).message).toContain("written for another place");
  });
});

describe("keys", () => {
  test("a previous key still reads and is not current; sealing again makes it current", () => {
    const old = openVault({ key: otherKey }).seal(canary, context);
    const vault = openVault({ key, previousKeys: [otherKey] });
    expect(vault.open(old, context)).toBe(canary);
    expect(vault.isCurrent(old)).toBe(false);
    expect(vault.isCurrent(vault.seal(canary, context))).toBe(true);
  });

  test("an unknown key is named by its id only", () => {
    const message = failure(() =>
      openVault({ key }).open(openVault({ key: otherKey }).seal(canary, context), context),
    ).message;
    expect(message).toMatch(/written with the key "[0-9a-f]{16}", which is not among the secrets keys$/);
    expect(message).not.toContain(otherKey);
  });

  test("an id of a known key on a foreign ciphertext does not open", () => {
    const foreign = openVault({ key: otherKey }).seal(canary, context);
    const keyId = openVault({ key }).seal(canary, context).split(".")[1] ?? "";
    failure(() => openVault({ key }).open(foreign.split(".").with(1, keyId).join("."), context));
  });

  test.each([
    ["empty", "", "must be base64"],
    ["text", "not base64 at all!", "must be base64"],
    ["31 bytes", randomBytes(31).toString("base64"), "not 31"],
    ["33 bytes", randomBytes(33).toString("base64"), "not 33"],
    ["hex of 32 bytes", randomBytes(32).toString("hex"), "not 48"],
    ["all zero", Buffer.alloc(32).toString("base64"), "must not be all zero"],
    ["two keys", `${key},${otherKey}`, "must be base64"],
  ])("%s is refused without being repeated", (_name, text, reason) => {
    for (const options of [{ key: text }, { key, previousKeys: [text] }]) {
      const error = failure(() => openVault(options));
      expect(error.message).toContain(reason);
      if (text !== "") expect(error.message).not.toContain(text);
    }
  });

  test.each([
    [{ key, previousKeys: [key] }],
    [{ key, previousKeys: [otherKey, otherKey] }],
    [{ key, previousKeys: [key.replaceAll("+", "-").replaceAll("/", "_").replace("=", "")] }],
  ])("the same key twice is refused, in any spelling", (options) => {
    expect(failure(() => openVault(options)).message).toContain("given twice");
  });

  test("the same key is taken with a line break, unpadded and in the URL alphabet", () => {
    const envelope = openVault({ key }).seal(canary, context);
    for (const spelling of [`${key}\n`, key.replace(/=$/, ""), key.replaceAll("+", "-").replaceAll("/", "_")]) {
      expect(openVault({ key: spelling }).open(envelope, context)).toBe(canary);
    }
  });
});

describe("canary", () => {
  test("proves the key, current or previous", () => {
    const envelope = makeCanary(openVault({ key: otherKey }));
    expect(checkCanary(openVault({ key: otherKey }), envelope)).toBe("current");
    expect(checkCanary(openVault({ key, previousKeys: [otherKey] }), envelope)).toBe("previous");
  });

  test("a wrong key or a changed canary refuses the start with a clear sentence", () => {
    const envelope = makeCanary(openVault({ key: otherKey }));
    for (const text of [
      envelope,
      "",
      "x",
      openVault({ key }).seal("something", { kind: "vault", id: "canary", field: "proof" }),
    ]) {
      const error = failure(() => checkCanary(openVault({ key }), text));
      expect(error.kind).toBe("refused");
      expect(error.message).toMatch(/^The secrets key is not the one this data directory was written with/);
    }
  });
});
