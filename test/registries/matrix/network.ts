/**
 * The addresses and names of the matrix. Addresses beyond loopback are put on the loopback device for as long as the test runs
 * (that needs root and `ip`); which ones are used depends on the process id, so that runs beside each other do not meet.
 */
import { execFileSync } from "node:child_process";
import type { Lookup } from "../../../src/egress/resolver.ts";

/** How the registry's own host resolves. */
export const addressClasses = ["loopback4", "loopback6", "listed4", "listed6", "unlisted", "flipping"] as const;
export type AddressClass = (typeof addressClasses)[number];

const hostBits = `${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`;

export const addresses = {
  loopback4: `127.77.${hostBits}`,
  loopback6: "::1",
  /** In the list of those that may have credentials in clear. */
  listed4: `10.77.${hostBits}`,
  listed6: `fd77::${(process.pid & 0xffff).toString(16)}`,
  /** May be connected to, but credentials in clear may not go there. */
  unlisted: `10.78.${hostBits}`,
  /** May not be connected to at all. */
  forbidden: `10.79.${hostBits}`,
  /** Of every other host: loopback as well, so that the transport alone would allow a credential. */
  other: `127.78.${hostBits}`,
} as const;

export const insecureCidrs = ["10.77.0.0/16", "fd77::/64"];
export const allowedCidrs = ["10.77.0.0/16", "fd77::/64", "10.78.0.0/16"];

const added = ["listed4", "listed6", "unlisted", "forbidden"] as const;

export interface OuterAddresses {
  /** "" when they are there; else why they are not. */
  readonly missing: string;
  remove(): void;
}

export function addOuterAddresses(): OuterAddresses {
  const done: string[] = [];
  const remove = (): void => {
    for (const address of done.splice(0)) ip("del", address);
  };
  try {
    for (const name of added) {
      ip("replace", addresses[name]);
      done.push(addresses[name]);
    }
    return { missing: "", remove };
  } catch (error) {
    remove();
    return { missing: firstLine(error), remove };
  }
}

/** For titles, which are made before anything is set up: "" or a remark on what the run has to do without. */
export function remarkOnAddresses(): string {
  const { missing, remove } = addOuterAddresses();
  remove();
  return missing === "" ? "" : ` (addresses beyond loopback left out: ${missing})`;
}

function ip(verb: "replace" | "del", address: string): void {
  const bits = address.includes(":") ? [`${address}/128`, "nodad"] : [`${address}/32`];
  const words = verb === "replace" ? bits : bits.slice(0, 1);
  execFileSync("ip", ["addr", verb, ...words, "dev", "lo"], { stdio: ["ignore", "ignore", "pipe"] });
}

function firstLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: Buffer; message: string };
  return (stderr?.toString().trim() || message).split("\n")[0] ?? "";
}

/** A name of the registry per class. Lower case, so that changes of case are changes. */
export const hosts: Readonly<Record<AddressClass, string>> = {
  loopback4: "four.test",
  loopback6: "six.test",
  listed4: "listed.test",
  listed6: "listed6.test",
  unlisted: "unlisted.test",
  flipping: "flip.test",
};

export interface Names {
  readonly lookup: Lookup;
  /** What each look-up since the last `restart` was answered, in order. */
  readonly given: readonly { readonly host: string; readonly addresses: readonly string[] }[];
  /** Of names the classes do not cover; and whether flip.test starts on its unsafe address. */
  restart(extra?: Readonly<Record<string, readonly string[]>>, flipsFrom?: "safe" | "unsafe"): void;
}

/** Any name not known resolves to the other host: whatever strays is recorded there. */
export function openNames(): Names {
  let given: { host: string; addresses: readonly string[] }[] = [];
  let extra: Readonly<Record<string, readonly string[]>> = {};
  let flips = 0;

  const fixed: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
    addressClasses
      .filter((name) => name !== "flipping")
      .map((name) => [hosts[name], [addresses[name as Exclude<AddressClass, "flipping">]]]),
  );

  function resolve(host: string): readonly string[] {
    if (host !== hosts.flipping) return extra[host] ?? fixed[host] ?? [addresses.other];
    flips += 1;
    return [flips % 2 === 1 ? addresses.loopback4 : addresses.unlisted];
  }

  return {
    lookup: async (host) => {
      const found = resolve(host);
      given.push({ host, addresses: found });
      return found;
    },
    get given() {
      return given;
    },
    restart(names = {}, flipsFrom = "safe") {
      given = [];
      extra = names;
      flips = flipsFrom === "safe" ? 0 : 1;
    },
  };
}
