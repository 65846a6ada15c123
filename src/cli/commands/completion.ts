/** `troupe completion SHELL`: the words of every command, for the shell's Tab key. */
import { Argument, type Command } from "commander";
import type { CommandGroup } from "../command-action.ts";
import { type CompletionWords, completionScripts, type Shell, shells } from "../completion-scripts.ts";
import type { Run } from "../run.ts";

export const completionCommands: CommandGroup = (program, action) => {
  program
    .command("completion")
    .description("print a script that completes commands and options: source <(troupe completion bash)")
    .addArgument(new Argument("<shell>", "the shell it is for").choices(shells))
    .action(action((run: Run, shell: Shell) => run.out.line(completionScripts[shell](wordsOf(program, [])))));
};

function wordsOf(command: Command, path: readonly string[]): readonly CompletionWords[] {
  const shared = path.length === 0 ? [] : rootOf(command).options;
  return [
    {
      path: path.join(" "),
      words: command.commands.map((sub) => ({ word: sub.name(), about: sub.description() })),
      options: [...command.options, ...shared].map(({ long, description, argChoices, required }) => ({
        word: long ?? "",
        about: description,
        takesValue: required,
        choices: argChoices ?? [],
      })),
    },
    ...command.commands.flatMap((sub) => wordsOf(sub, [...path, sub.name()])),
  ];
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}
