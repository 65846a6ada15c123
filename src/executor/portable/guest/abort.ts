/** DOMException, AbortController and AbortSignal. Runs inside QuickJS: see bridge.ts. */
export function installAbort(): Record<string, unknown> {
  const setTimer = globalThis.setTimeout as unknown as (action: () => void, ms: number) => number;
  const codes: Record<string, number> = {
    InvalidCharacterError: 5,
    AbortError: 20,
    TimeoutError: 23,
    DataCloneError: 25,
  };

  class DOMException extends Error {
    readonly code: number;
    constructor(message: unknown = "", name: unknown = "Error") {
      super(String(message));
      Object.defineProperty(this, "name", { value: String(name), configurable: true });
      this.code = codes[String(name)] ?? 0;
    }
  }

  interface AbortEvent {
    readonly type: string;
    readonly target: AbortSignal;
  }
  type Listener = ((event: AbortEvent) => void) | { handleEvent(event: AbortEvent): void };
  const key = {};

  class AbortSignal {
    #aborted = false;
    #reason: unknown;
    #listeners: { listener: Listener; once: boolean }[] = [];
    onabort: ((event: AbortEvent) => void) | null = null;

    constructor(held?: unknown) {
      if (held !== key) throw new TypeError("An AbortSignal comes from an AbortController");
    }
    static trigger(signal: AbortSignal, reason: unknown): void {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
      const event = { type: "abort", target: signal };
      signal.onabort?.(event);
      const told = signal.#listeners;
      signal.#listeners = told.filter(({ once }) => !once);
      for (const { listener } of told) {
        if (typeof listener === "function") listener.call(signal, event);
        else listener.handleEvent(event);
      }
    }
    static abort(reason?: unknown): AbortSignal {
      const signal = new AbortSignal(key);
      trigger(signal, reason);
      return signal;
    }
    static timeout(ms: number): AbortSignal {
      const signal = new AbortSignal(key);
      setTimer(() => trigger(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")), ms);
      return signal;
    }
    static any(signals: Iterable<AbortSignal>): AbortSignal {
      const all = [...signals];
      const combined = new AbortSignal(key);
      const first = all.find((signal) => signal.#aborted);
      if (first !== undefined) trigger(combined, first.#reason);
      else
        for (const signal of all)
          signal.addEventListener("abort", () => trigger(combined, signal.#reason), { once: true });
      return combined;
    }
    get aborted(): boolean {
      return this.#aborted;
    }
    get reason(): unknown {
      return this.#reason;
    }
    throwIfAborted(): void {
      if (this.#aborted) throw this.#reason;
    }
    addEventListener(type: string, listener: Listener | null, options?: boolean | { once?: boolean }): void {
      if (type !== "abort" || listener === null || this.#listeners.some((held) => held.listener === listener)) return;
      this.#listeners.push({ listener, once: typeof options === "object" && Boolean(options.once) });
    }
    removeEventListener(type: string, listener: Listener | null): void {
      if (type === "abort") this.#listeners = this.#listeners.filter((held) => held.listener !== listener);
    }
  }

  const { trigger } = AbortSignal;
  Reflect.deleteProperty(AbortSignal, "trigger");

  class AbortController {
    readonly #signal = new AbortSignal(key);
    get signal(): AbortSignal {
      return this.#signal;
    }
    abort(reason?: unknown): void {
      trigger(this.#signal, reason);
    }
  }

  return { DOMException, AbortController, AbortSignal };
}
