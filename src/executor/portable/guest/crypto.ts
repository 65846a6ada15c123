/** crypto.getRandomValues and crypto.randomUUID, from the child's own generator. Runs inside QuickJS: see bridge.ts. */
import type { HostCall } from "./bridge.ts";

export function installCrypto(host: HostCall): Record<string, unknown> {
  const bytesMax = 65_536;
  const getRandomValues = <T extends ArrayBufferView>(target: T): T => {
    if (
      !ArrayBuffer.isView(target) ||
      target instanceof DataView ||
      target instanceof Float32Array ||
      target instanceof Float64Array
    ) {
      throw new TypeError("getRandomValues takes an integer typed array");
    }
    if (target.byteLength > bytesMax) throw new RangeError(`getRandomValues fills at most ${bytesMax} bytes`);
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    const hex = host("random", String(bytes.length)) as string;
    for (let index = 0; index < bytes.length; index += 1)
      bytes[index] = Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16);
    return target;
  };
  const crypto = Object.freeze({ getRandomValues, randomUUID: () => host("uuid") as string });
  return { crypto };
}
