/** A fresh runtime and context with all globals in place, made before a program comes, so that it starts without waiting. */
import type { QuickJSContext, QuickJSHandle, QuickJSRuntime } from "quickjs-emscripten-core";
import {
  runErrorCharactersMax,
  streamPieceCharactersMax,
  timersPerRunMax,
  toolCallsInFlightMax,
  toolParametersCharactersMax,
} from "../../../limits.ts";
import { installAbort } from "../guest/abort.ts";
import { type GuestBounds, type GuestEntries, installBridge } from "../guest/bridge.ts";
import { installClone } from "../guest/clone.ts";
import { installCrypto } from "../guest/crypto.ts";
import { installText } from "../guest/text.ts";
import { installUrl } from "../guest/url.ts";
import type { Instance } from "./engine.ts";

export type HostOperation = (operation: string, first: string, second: string | undefined) => string | undefined;

/** Neither may throw: the engine would hand the exception, stack and all, to the program. */
export interface StageListener {
  host: HostOperation;
  interrupt: () => boolean;
}

export interface Stage {
  readonly instance: Instance;
  readonly runtime: QuickJSRuntime;
  readonly context: QuickJSContext;
  readonly entries: Readonly<Record<keyof GuestEntries, QuickJSHandle>>;
  /** Rejections that nobody handled so far, oldest first. */
  readonly rejections: Map<bigint, QuickJSHandle>;
  /** Whom the program talks to: set by the run that takes the stage. */
  readonly listener: StageListener;
  dispose(): void;
}

/** Unhandled rejections kept; one is enough to fail a run. */
const rejectionsKeptMax = 64;

const bounds: GuestBounds = {
  timersMax: timersPerRunMax,
  callsInFlightMax: toolCallsInFlightMax,
  parametersCharactersMax: toolParametersCharactersMax,
  pieceCharactersMax: streamPieceCharactersMax,
  errorCharactersMax: runErrorCharactersMax,
};

const lazy = JSON.stringify([
  { names: ["TextEncoder", "TextDecoder", "atob", "btoa"], source: installText.toString() },
  { names: ["URL", "URLSearchParams"], source: installUrl.toString() },
  { names: ["DOMException", "AbortController", "AbortSignal"], source: installAbort.toString() },
  { names: ["structuredClone"], source: installClone.toString() },
  { names: ["crypto"], source: installCrypto.toString() },
]);
const bridge = `(${installBridge.toString()})`;

export function setStage(instance: Instance): Stage {
  const runtime = instance.newRuntime();
  const context = runtime.newContext();
  const rejections = new Map<bigint, QuickJSHandle>();
  const watched = instance.watchRejections(context, (promise, handled, reason) => {
    if (!handled && rejections.size < rejectionsKeptMax) rejections.set(promise, reason());
    else if (handled) {
      rejections.get(promise)?.dispose();
      rejections.delete(promise);
    }
  });
  if (!watched) throw new Error("The engine's hook for unhandled rejections was not found");
  const listener: StageListener = { host: () => undefined, interrupt: () => false };
  runtime.setInterruptHandler(() => listener.interrupt());

  const host = context.newFunction("host", (operation, first, second) => {
    const text = second === undefined || context.typeof(second) === "undefined" ? undefined : context.getString(second);
    const answer = listener.host(
      context.getString(operation),
      first === undefined ? "" : context.getString(first),
      text,
    );
    return answer === undefined ? context.undefined : context.newString(answer);
  });
  const install = context.unwrapResult(context.evalCode(bridge, "globals.js"));
  const values = [context.newString(JSON.stringify(bounds)), context.newString(lazy)];
  const installed = context.unwrapResult(context.callFunction(install, context.undefined, host, ...values));
  const entry = (name: keyof GuestEntries): QuickJSHandle => context.getProp(installed, name);
  const entries = {
    begin: entry("begin"),
    main: entry("main"),
    answer: entry("answer"),
    fire: entry("fire"),
    fail: entry("fail"),
  };
  for (const handle of [host, install, installed, ...values]) handle.dispose();

  return {
    instance,
    runtime,
    context,
    entries,
    rejections,
    listener,
    dispose() {
      for (const handle of [...Object.values(entries), ...rejections.values()]) handle.dispose();
      context.dispose();
      runtime.dispose();
    },
  };
}
