/** The names a server's certificate is for: host names and addresses, as they are typed, in the form a certificate has them. */
import { domainToASCII } from "node:url";
import { Failure } from "../errors/failure.ts";
import { parseAddress } from "../net/address.ts";

/** A GeneralName (RFC 5280, 4.2.1.6): `type` is its tag, `value` holds a byte in each character. */
export interface AlternativeName {
  readonly type: 2 | 7;
  readonly value: string;
}

/** Without repetitions. Throws Failure invalid_request. */
export function alternativeNames(hosts: readonly string[]): readonly AlternativeName[] {
  const names = hosts.map(alternativeName);
  return [...new Map(names.map((name) => [`${name.type} ${name.value}`, name])).values()];
}

function alternativeName(host: string): AlternativeName {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  // A zone is dropped on reading, and means nothing to anybody else.
  const address = bare.includes("%") ? undefined : parseAddress(bare);
  if (address !== undefined) return { type: 7, value: String.fromCharCode(...address.toByteArray()) };
  const name = isAscii(bare) ? bare.toLowerCase() : domainToASCII(bare);
  if (!isHostName(name)) {
    throw new Failure(
      "invalid_request",
      `Cannot make a certificate for host "${host}": expected a name or an address, without scheme, port or path`,
    );
  }
  return { type: 2, value: name };
}

function isAscii(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text);
}

/** Underscores are in use, wherever compose files make the names. A wildcard stands for one label, and not for all there is. */
function isHostName(name: string): boolean {
  const labels = name.split(".");
  const isWild = labels[0] === "*";
  const given = isWild ? labels.slice(1) : labels;
  return (
    name.length <= 253 &&
    given.length > (isWild ? 1 : 0) &&
    given.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) &&
    // Else it is taken for an address by some, such as 127.1 or 0x7f.1.
    !/^(?:[0-9]+|0x[0-9a-f]*)$/.test(given.at(-1) ?? "")
  );
}
