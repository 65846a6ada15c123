/**
 * Takes away, inside the process, the ways to the network and to other processes: a module that reaches for one gets an error that says
 * so. Under bubblewrap this is a second lock, and makes every machine refuse alike. Where only Node's permission model holds, it is the
 * only lock on the network, and not a strong one: whoever finds a way to one of Node's internal objects is past it.
 */
import { writeSync } from "node:fs";
import { builtinModules, registerHooks } from "node:module";
import { Writable } from "node:stream";

/** Neither sockets nor processes can be had through these. */
const builtinsAllowed = new Set([
  "assert",
  "assert/strict",
  "buffer",
  "console",
  "constants",
  "crypto",
  "events",
  "fs",
  "fs/promises",
  "path",
  "path/posix",
  "path/win32",
  "perf_hooks",
  "process",
  "punycode",
  "querystring",
  "stream",
  "stream/consumers",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "timers",
  "timers/promises",
  "url",
  "util",
  "util/types",
  "vm",
  "zlib",
]);

const builtins = new Set(builtinModules.map((name) => name.replace(/^node:/, "")));

/** `kill` would reach processes of the same user, `_debugProcess` opens a debugger in them, the handles lead to sockets. */
const processMembersRemoved = [
  "_debugEnd",
  "_debugProcess",
  "_getActiveHandles",
  "_getActiveRequests",
  "_kill",
  "_linkedBinding",
  "_startProfilerIdleNotifier",
  "binding",
  "dlopen",
  "execve",
  "getBuiltinModule",
  "kill",
  "report",
];

/** All of them load Node's HTTP client, which leaves itself where everybody finds it. */
const globalsRemoved = [
  "CloseEvent",
  "EventSource",
  "FormData",
  "Headers",
  "MessageEvent",
  "Request",
  "Response",
  "WebSocket",
  "fetch",
];

/** Where it does: a client that is there already is left alone. */
const clientPlaces = ["undici.globalDispatcher.1", "undici.globalDispatcher.2"];

export function restrict(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const name = specifier.replace(/^node:/, "");
      const isBuiltin = specifier.startsWith("node:") || builtins.has(name);
      if (isBuiltin && !builtinsAllowed.has(name)) {
        throw new Error(`Cannot import "${specifier}" in a module: its only way out is context.fetch`);
      }
      return next(specifier, context);
    },
  });
  // Node's own streams on pipes are sockets, and a socket's constructor makes others.
  for (const [stream, descriptor] of [
    ["stdout", 1],
    ["stderr", 2],
  ] as const) {
    Object.defineProperty(process, stream, { value: printer(descriptor), configurable: true });
  }
  for (const member of processMembersRemoved) remove(process, member);
  for (const member of globalsRemoved) remove(globalThis, member);
  for (const place of clientPlaces) Object.defineProperty(globalThis, Symbol.for(place), { value: Object.freeze({}) });
}

function remove(holder: object, member: string): void {
  if (!Reflect.deleteProperty(holder, member)) Object.defineProperty(holder, member, { value: undefined });
}

function printer(descriptor: number): Writable {
  return new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _encoding, done) {
      try {
        for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at);
      } catch {
        // The host is not reading now; a line is not worth an error in the module.
      }
      done();
    },
  });
}
