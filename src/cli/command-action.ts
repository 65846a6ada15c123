/** How a command group says what its commands do: each is a function of its run and the words after its name. */
import type { Command } from "commander";
import type { ExitCode } from "./exit-codes.ts";
import type { Run } from "./run.ts";

/** Resolves with the exit code, 0 when it says nothing. */
export type Work<Words extends readonly unknown[]> = (
  run: Run,
  ...words: Words
) => Promise<ExitCode | undefined> | Promise<void>;

export type CommandAction = <Words extends readonly unknown[]>(
  work: Work<Words>,
) => (this: Command, ...given: unknown[]) => Promise<void>;

/** Adds the commands of one group. */
export type CommandGroup = (program: Command, action: CommandAction) => void;
