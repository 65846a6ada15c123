/** What callers are told when a cell cannot answer them. */
import { Failure } from "../errors/failure.ts";
import { mailboxMessagesMax } from "../limits.ts";
import { type Address, addressText } from "./kind.ts";

/** The cause stays in the log. */
export function crashed(cause: unknown): Failure {
  return new Failure("internal", "The request failed inside the server", { cause });
}

export function parked(address: Address): Failure {
  return new Failure("unavailable", `Actor "${addressText(address)}" is parked until an operator restarts it`);
}

export function leaving(address: Address): Failure {
  return new Failure("unavailable", `Actor "${addressText(address)}" is leaving memory`, { retryAfterSeconds: 1 });
}

export function restarted(address: Address): Failure {
  return new Failure("unavailable", `Actor "${addressText(address)}" was restarted`, { retryAfterSeconds: 1 });
}

export function ended(address: Address): Failure {
  return new Failure("not_found", `Actor "${addressText(address)}" is gone`);
}

export function ownedElsewhere(address: Address): Failure {
  return new Failure("unavailable", `Actor "${addressText(address)}" has another owner now`, { retryAfterSeconds: 1 });
}

export function unconfirmed(): Failure {
  const message = "The store did not confirm the change; whether it took effect is not known";
  return new Failure("unavailable", message, { retryAfterSeconds: 1 });
}

export function mailboxFull(address: Address, now: number): Failure {
  return new Failure("overloaded", `Actor "${addressText(address)}" has ${mailboxMessagesMax} messages waiting`, {
    exhaustion: {
      limit: mailboxMessagesMax,
      remaining: 0,
      resetAt: Math.ceil(now / 1_000) + 1,
      retryAfterSeconds: 1,
    },
  });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
