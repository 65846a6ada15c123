/**
 * The core of what a program sees: console, output, services, env, timers, Math.random, and the entry points through which the
 * child drives it. Files of this folder run inside QuickJS: each exports one function that is sent there as text
 * (`toString`), so it must refer to nothing outside itself but the language.
 *
 * `host` is the only way out. It takes and gives strings, and stays in this closure. Everything used after the program
 * started is held in constants first, because a program may change prototypes (its right: it hurts only itself).
 */
export type HostCall = (operation: string, first?: string, second?: string) => string | undefined;

/** Numbers the guest needs; JSON text on the way in. */
export interface GuestBounds {
  readonly timersMax: number;
  readonly callsInFlightMax: number;
  readonly parametersCharactersMax: number;
  readonly pieceCharactersMax: number;
  readonly errorCharactersMax: number;
}

export interface GuestEntries {
  begin(envJson: string, seed: string): void;
  main(program: () => Promise<unknown>): void;
  answer(callId: string, kind: string, json: string | undefined): void;
  fire(timerId: string, repeats: string): void;
  /** Ends the run as thrown. */
  fail(reason: unknown): void;
}

export function installBridge(host: HostCall, boundsJson: string, lazyJson: string): GuestEntries {
  const { parse, stringify } = JSON;
  const bounds = parse(boundsJson) as GuestBounds;
  const { freeze, keys, defineProperty } = Object;
  const objectPrototype = Object.prototype;
  const PlainError = Error;
  const PlainTypeError = TypeError;
  const PlainProxy = Proxy;
  const PlainPromise = Promise;
  const PlainMap = Map;
  const then = Promise.prototype.then;
  const text = String;
  const { apply } = Reflect;
  const isArray = Array.isArray;
  const { imul, trunc } = Math;
  const charCodeAt = String.prototype.charCodeAt;
  const slice = String.prototype.slice;

  const define = (name: string, value: unknown): void => {
    defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  };

  /** An Error as its stack, text as it is, the rest as indented JSON; never throws for what JSON cannot hold. */
  const show = (value: unknown): string => {
    if (typeof value === "string") return value;
    if (typeof value === "function") return `[Function${value.name ? `: ${text(value.name)}` : ""}]`;
    if (typeof value === "bigint") return `${text(value)}n`;
    if (typeof value !== "object" || value === null) return text(value);
    if (value instanceof PlainError)
      return parse(host("stack", stringify(describeError(value).stack)) as string) as string;
    try {
      return (
        stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? `${text(inner)}n` : inner), 2) ??
        text(value)
      );
    } catch {
      return isArray(value) ? "[Array that JSON cannot hold]" : "[Object that JSON cannot hold]";
    }
  };

  const safely = (value: unknown): string => {
    try {
      return show(value);
    } catch {
      return "[value that cannot be shown]";
    }
  };

  const write = (stream: string, whole: string): void => {
    for (let at = 0; at < whole.length; ) {
      let end = at + bounds.pieceCharactersMax;
      // A character of two units stays in one piece.
      const last = end < whole.length ? (apply(charCodeAt, whole, [end - 1]) as number) : 0;
      if (last >= 0xd800 && last <= 0xdbff) end -= 1;
      if (host(stream, stringify(apply(slice, whole, [at, end]))) === "full") return;
      at = end;
    }
  };

  const line =
    (stream: string) =>
    (...values: unknown[]): void => {
      let whole = "";
      for (let index = 0; index < values.length; index += 1) whole += (index > 0 ? " " : "") + safely(values[index]);
      write(stream, `${whole}\n`);
    };
  define("console", {
    log: line("stdout"),
    info: line("stdout"),
    debug: line("stdout"),
    warn: line("stderr"),
    error: line("stderr"),
  });

  /** JSON text of a value, or a TypeError that says what stands in the way. */
  const toJson = (value: unknown, what: string): string | undefined => {
    try {
      return stringify(value);
    } catch (error) {
      const { message } = describeError(error);
      // Not a fault of the value: the child has its own words for it.
      if (message === "out of memory") throw error;
      throw new PlainTypeError(`Cannot store ${what} as JSON: ${message}`);
    }
  };

  const emit = (value: unknown, what: string): void => {
    const json = toJson(value, what);
    if (json === undefined || json[0] !== "{")
      throw new PlainTypeError(`Cannot store ${what}: it is not a JSON object`);
    const problem = host("output", json);
    if (problem !== undefined) throw new PlainTypeError(`Cannot store ${what}: ${problem}`);
  };
  define("output", (value: unknown): void => {
    if (typeof value !== "object" || value === null || isArray(value)) {
      throw new PlainTypeError("Cannot store the output: output() takes an object");
    }
    emit(value, "the output");
  });

  interface Call {
    resolve(value: unknown): void;
    reject(error: unknown): void;
  }
  const calls = new PlainMap<string, Call>();
  const { get: mapGet, set: mapSet, delete: mapDelete } = PlainMap.prototype;

  const toolError = (message: string, code: string, status: number): Error => {
    const error = new PlainError(message) as Error & { code: string; status: number };
    error.code = code;
    error.status = status;
    return error;
  };

  let callsInFlight = 0;
  const call = (serviceId: string, toolId: string, parameters: unknown): Promise<unknown> =>
    new PlainPromise((resolve, reject) => {
      const json = toJson(parameters, "the parameters");
      if (json !== undefined && json.length > bounds.parametersCharactersMax) {
        throw toolError(`Cannot call tool "${serviceId}.${toolId}": its parameters are too large`, "too_large", 413);
      }
      if (callsInFlight >= bounds.callsInFlightMax) {
        const most = `at most ${bounds.callsInFlightMax} calls may be in flight`;
        throw toolError(`Cannot call tool "${serviceId}.${toolId}": ${most}`, "overloaded", 429);
      }
      const callId = host("call", stringify([serviceId, toolId]), json);
      if (callId === undefined) {
        throw toolError(
          `Cannot call tool "${serviceId}.${toolId}": its parameters are nested too deeply`,
          "invalid_request",
          400,
        );
      }
      callsInFlight += 1;
      apply(mapSet, calls, [callId, { resolve, reject }]);
    });

  /** A proxy that has every name and takes no change. `toJSON` is left out so that showing it calls no tool. */
  const namespace = <T extends object>(resolve: (id: string) => T, hides: (id: string) => boolean): object => {
    const known = new PlainMap<string, T>();
    return new PlainProxy(freeze({}), {
      get(target, id) {
        if (typeof id !== "string" || hides(id)) return (target as Record<string | symbol, unknown>)[id];
        let member = apply(mapGet, known, [id]) as T | undefined;
        if (member === undefined) {
          member = resolve(id);
          apply(mapSet, known, [id, member]);
        }
        return member;
      },
    });
  };
  // Names fixed before the program can add to Object.prototype; `then` would make an awaited service a promise.
  const reserved = new PlainMap<string, true>([
    ["then", true],
    ["toJSON", true],
  ]);
  for (const name of Object.getOwnPropertyNames(objectPrototype)) reserved.set(name, true);
  const isReserved = (id: string): boolean => apply(mapGet, reserved, [id]) === true;

  const toService = (serviceId: string): object => {
    const invoker = (toolId: string): ((parameters?: unknown) => Promise<unknown>) =>
      freeze((parameters?: unknown) => call(serviceId, toolId, parameters));
    const tools = namespace(
      (toolId) => freeze({ __proto__: null, invoke: invoker(toolId) }),
      () => false,
    );
    return namespace((id) => (id === "tools" ? tools : invoker(id)), isReserved);
  };
  define("services", namespace(toService, isReserved));

  let timersWaiting = 0;
  let timerLast = 0;
  const timers = new PlainMap<string, { action: () => unknown; repeats: boolean }>();
  const addTimer = (action: unknown, delayMs: unknown, values: unknown[], repeats: boolean): number => {
    if (typeof action !== "function") throw new PlainTypeError("The first argument of a timer must be a function");
    if (timersWaiting >= bounds.timersMax) {
      throw toolError(`Cannot set a timer: at most ${bounds.timersMax} may wait at once`, "overloaded", 429);
    }
    timersWaiting += 1;
    timerLast += 1;
    const id = text(timerLast);
    apply(mapSet, timers, [id, { action: () => apply(action as () => unknown, undefined, values), repeats }]);
    host(repeats ? "interval" : "timeout", id, text(+(delayMs as number)));
    return timerLast;
  };
  const removeTimer = (id: unknown): void => {
    if (typeof id !== "number" && typeof id !== "string") return;
    if (!apply(mapDelete, timers, [text(id)])) return;
    timersWaiting -= 1;
    host("clear", text(id));
  };
  define("setTimeout", (action: unknown, delayMs?: unknown, ...values: unknown[]) =>
    addTimer(action, delayMs, values, false),
  );
  define("setInterval", (action: unknown, delayMs?: unknown, ...values: unknown[]) =>
    addTimer(action, delayMs, values, true),
  );
  define("clearTimeout", removeTimer);
  define("clearInterval", removeTimer);
  const settled = PlainPromise.resolve();
  define("queueMicrotask", (action: unknown): void => {
    if (typeof action !== "function") throw new PlainTypeError("The argument of queueMicrotask must be a function");
    const guarded = (): void => {
      try {
        action();
      } catch (error) {
        fail(error);
      }
    };
    apply(then, settled, [guarded]);
  });
  define("performance", freeze({ now: () => +(host("now") as string) }));

  /** Never throws, whatever the value's getters do. */
  function describeError(reason: unknown): { message: string; stack: string } {
    const most = bounds.errorCharactersMax;
    try {
      if (!(reason instanceof PlainError)) {
        const message = typeof reason === "string" ? reason : (stringify(reason) ?? text(reason));
        return { message: apply(slice, message, [0, most]) as string, stack: "" };
      }
      const name = text(reason.name);
      const message = apply(slice, text(reason.message) || name, [0, most]) as string;
      const frames = typeof reason.stack === "string" ? reason.stack : "";
      return { message, stack: apply(slice, `${name}: ${message}\n${frames}`, [0, most]) as string };
    } catch {
      return { message: "A value was thrown that cannot be described", stack: "" };
    }
  }

  /** Out of memory arrives as an InternalError, or as null when not even that could be made: the child decides. */
  function fail(reason: unknown): void {
    let name = "";
    try {
      name = reason instanceof PlainError ? text(reason.name) : "";
    } catch {
      // A hostile getter: the name is only needed for errors of the engine.
    }
    const { message, stack } = describeError(reason);
    host("failed", stringify({ name, message, stack, isNull: reason === null || reason === undefined }));
  }

  const finish = (value: unknown): void => {
    try {
      if (value !== undefined) {
        const json = toJson(value, "the returned value");
        if (typeof value === "object" && json !== undefined && json[0] === "{") emit(value, "the returned value");
        else if (json !== undefined) emit({ result: value }, "the returned value");
      }
    } catch (error) {
      fail(error);
      return;
    }
    host("succeeded");
  };

  const deepFreeze = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    for (const key of keys(value)) deepFreeze((value as Record<string, unknown>)[key]);
    return freeze(value);
  };

  /** Mulberry32: 32 bits of state are enough for programs, and a seed gives the same run again. */
  const seededRandom = (seed: number): (() => number) => {
    let state = trunc(seed) | 0;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
    };
  };

  // The rest of the globals is made when first touched: most programs need none of it, and making it takes a millisecond.
  // biome-ignore lint/security/noGlobalEval: inside the sandbox, on our own text
  const evaluate = globalThis.eval;
  for (const { names, source } of parse(lazyJson) as { names: string[]; source: string }[]) {
    let made: Record<string, unknown> | undefined;
    for (const name of names) {
      defineProperty(globalThis, name, {
        configurable: true,
        enumerable: false,
        get() {
          made ??= (evaluate(`(${source})`) as (host: HostCall) => Record<string, unknown>)(host);
          define(name, made[name]);
          return made[name];
        },
        set(value: unknown) {
          define(name, value);
        },
      });
    }
  }

  return {
    begin(envJson, seed) {
      define("env", deepFreeze(parse(envJson)));
      Math.random = seededRandom(+seed);
    },
    main(program) {
      apply(then, program(), [finish, fail]);
    },
    answer(callId, kind, json) {
      const waiting = apply(mapGet, calls, [callId]) as Call | undefined;
      if (waiting === undefined) return;
      apply(mapDelete, calls, [callId]);
      callsInFlight -= 1;
      if (kind === "value") {
        waiting.resolve(json === undefined ? undefined : parse(json));
        return;
      }
      const failure = parse(json as string) as { message: string; code: string; status: number };
      waiting.reject(toolError(failure.message, failure.code, failure.status));
    },
    fire(timerId) {
      const timer = apply(mapGet, timers, [timerId]) as { action: () => unknown; repeats: boolean } | undefined;
      if (timer === undefined) return;
      if (!timer.repeats) {
        apply(mapDelete, timers, [timerId]);
        timersWaiting -= 1;
      }
      try {
        timer.action();
      } catch (error) {
        fail(error);
      }
    },
    fail,
  };
}
