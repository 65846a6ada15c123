/** What process code sees beyond standard ECMAScript, as TypeScript declarations. The executors provide it; agents read it. */
export const declarations = `\
/** Adds to the output of the process. Calls are shallow-merged, later keys win. The value must be JSON-serialisable. */
declare function output(value: object): void;

/** The envConfig of the process, deeply frozen; {} when none was given. */
declare const env: any;

/**
 * Installed services by id. services.<id>.<toolId>(parameters) calls a tool; each call starts at once and calls run
 * concurrently. The second form works for every tool id.
 */
declare const services: {
  readonly [serviceId: string]: {
    readonly [toolId: string]: (parameters?: object) => Promise<any>;
  } & {
    readonly tools: { readonly [toolId: string]: { invoke(parameters?: object): Promise<any> } };
  };
};

/** What a failed tool call throws. */
interface ToolError extends Error {
  /** Stable and machine-readable, such as "not_found". */
  readonly code: string;
  /** The HTTP status that belongs to the code, such as 404. */
  readonly status: number;
}

/** log, info and debug go to stdout; warn and error to stderr. */
declare const console: {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
};

declare function setTimeout(callback: (...values: any[]) => void, milliseconds?: number, ...values: any[]): number;
declare function setInterval(callback: (...values: any[]) => void, milliseconds?: number, ...values: any[]): number;
declare function clearTimeout(timer?: number): void;
declare function clearInterval(timer?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<Value>(value: Value): Value;
declare function atob(base64: string): string;
declare function btoa(binary: string): string;
declare const crypto: {
  randomUUID(): string;
  getRandomValues<Numbers extends ArrayBufferView>(numbers: Numbers): Numbers;
};
`;
