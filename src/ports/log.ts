/** Structured log: `event` names what happened in kebab-case, `message` is for people, fields are the known ones only. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a line is about; records can be looked up by most of it. */
export interface LogSubject {
  readonly requestId?: string | undefined;
  readonly processId?: number | undefined;
  readonly serviceId?: string | undefined;
  readonly moduleId?: string | undefined;
  readonly registryId?: string | undefined;
  readonly toolId?: string | undefined;
  readonly durationMs?: number | undefined;
}

export interface LogFields extends LogSubject {
  readonly actor?: string | undefined;
  /** Rendered as name, message and stack: the only place where a cause is written down. */
  readonly error?: unknown;
  readonly [field: string]: unknown;
}

export interface Log {
  /** Whether lines of this level go anywhere, for those who write one for each request. Absent: they do. */
  writes?(level: LogLevel): boolean;
  debug(event: string, message: string, fields?: LogFields): void;
  info(event: string, message: string, fields?: LogFields): void;
  warn(event: string, message: string, fields?: LogFields): void;
  error(event: string, message: string, fields?: LogFields): void;
}
