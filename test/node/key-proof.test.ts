import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { isFailure } from "../../src/errors/failure.ts";
import { forgetPreviousKeys, proveKeys } from "../../src/node/key-proof.ts";
import { openVault } from "../../src/secrets/vault.ts";
import { ManualClock } from "../runtime/manual-clock.ts";
import { silentLog } from "../runtime/stage.ts";
import { openMemoryStore } from "../store/memory-store.ts";

const [a, b, c] = [1, 2, 3].map(() => randomBytes(32).toString("base64")) as [string, string, string];
const vault = (key: string, ...previousKeys: string[]) => openVault({ key, previousKeys });

async function openProof() {
  const store = await openMemoryStore({ clock: new ManualClock(), log: silentLog });
  const prove = (key: string, ...previous: string[]): Promise<string> =>
    proveKeys(store, vault(key, ...previous)).then(
      () => "proved",
      (error: unknown) => (isFailure(error) ? error.kind : `crash: ${error}`),
    );
  const forget = (key: string, ...previous: string[]): Promise<void> =>
    forgetPreviousKeys(store, vault(key, ...previous));
  return { prove, forget };
}

describe("the proof of the secrets keys", () => {
  it("takes the first key, and from then on no other", async () => {
    const { prove } = await openProof();
    expect([await prove(a), await prove(a), await prove(b)]).toEqual(["proved", "proved", "refused"]);
  });

  it("needs the previous key until nothing is sealed with it any more, and the current one as soon as it was used", async () => {
    const { prove, forget } = await openProof();
    await prove(a);
    expect([await prove(b, a), await prove(b), await prove(a), await prove(b, a)]).toEqual([
      "proved",
      "refused",
      "refused",
      "proved",
    ]);
    await forget(b, a);
    expect([await prove(b), await prove(a), await prove(a, b)]).toEqual(["proved", "refused", "proved"]);
  });

  it("needs every key of rotations that were never finished", async () => {
    const { prove, forget } = await openProof();
    await prove(a);
    await prove(b, a);
    expect([await prove(c, b), await prove(c, a, b), await prove(c, b)]).toEqual(["refused", "proved", "refused"]);
    await forget(c, a, b);
    expect(await prove(c)).toBe("proved");
  });
});
