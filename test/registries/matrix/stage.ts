/** Sets up recorder, names, addresses and the client that a matrix is played on. */
import { type Egress, openEgress } from "../../../src/egress/egress.ts";
import type { Clock } from "../../../src/ports/clock.ts";
import type { Log } from "../../../src/ports/log.ts";
import { realClock } from "../../egress/fixtures.ts";
import type { Ports } from "./cells.ts";
import { trustedIdentity } from "./identity.ts";
import { type AddressClass, addOuterAddresses, addressClasses, addresses, allowedCidrs, openNames } from "./network.ts";
import type { Reader, Stage } from "./play.ts";
import { openRecorder, type Recorder } from "./recorder.ts";
import { certifiedNames } from "./targets.ts";

export interface Parts {
  readonly egress: Egress;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Theatre {
  readonly ports: Ports;
  readonly classes: readonly AddressClass[];
  /** Sentences that say which classes are left out and why. */
  readonly leftOut: readonly string[];
  stage(openReader: (parts: Parts) => Reader): Stage;
  readonly egress: Egress;
  close(): Promise<void>;
}

export async function openTheatre(): Promise<Theatre> {
  const outer = addOuterAddresses();
  const names = openNames();
  const literals = Object.values(addresses);
  const recorder = openRecorder(trustedIdentity([...certifiedNames, ...literals]));
  const lines: string[] = [];
  const note = (...line: unknown[]): void => void lines.push(line.map(described).join(" "));
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const leftOut = outer.missing === "" ? [] : [`no addresses beyond loopback (${outer.missing})`];
  const hasLoopback6 = await canListen(recorder, addresses.loopback6);
  if (!hasLoopback6) leftOut.push("no IPv6 loopback");
  const classes = addressClasses.filter(
    (name) => name === "loopback4" || (name === "loopback6" ? hasLoopback6 : outer.missing === ""),
  );
  const listened = [
    addresses.other,
    ...classes.filter((name) => name !== "flipping").map((name) => addresses[name]),
    ...(outer.missing === "" ? [addresses.forbidden] : []),
  ];
  const main = await listenEverywhere(recorder, listened);
  const other = await listenEverywhere(recorder, listened);
  const hasDefaults =
    (await canListen(recorder, addresses.loopback4, 80)) && (await canListen(recorder, addresses.loopback4, 443));
  if (!hasDefaults) leftOut.push("no default ports (80 and 443 cannot be listened on)");
  const egress = openEgress({ allowedCidrs, blockedCidrs: [], clock: realClock, log, lookup: names.lookup });
  return {
    ports: { main, other, hasDefaults },
    classes,
    leftOut,
    egress,
    stage: (openReader) => ({
      reader: openReader({ egress, clock: realClock, log }),
      recorder,
      names,
      takeLog: () => lines.splice(0).join("\n"),
    }),
    async close() {
      await egress.close();
      recorder.close();
      outer.remove();
    },
  };
}

async function canListen(recorder: Recorder, address: string, port = 0): Promise<boolean> {
  return recorder.listen(address, port).then(
    () => true,
    () => false,
  );
}

/** One port that is free on all of them: hosts that differ in nothing else must be comparable. */
async function listenEverywhere(recorder: Recorder, [first = "", ...rest]: readonly string[]): Promise<number> {
  for (let tries = 0; tries < 20; tries += 1) {
    const port = await recorder.listen(first, 0);
    const listening = await Promise.all(rest.map((address) => canListen(recorder, address, port)));
    if (listening.every(Boolean)) return port;
  }
  throw new Error("no port is free on all addresses of the matrix");
}

function described(value: unknown): string {
  if (value instanceof Error) return `${value.stack ?? value.message} ${described(value.cause ?? "")}`;
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, inner]) => `${name}=${described(inner)}`)
    .join(" ");
}
