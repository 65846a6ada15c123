/** The scripts of `troupe completion`, made of the tree of commands: which command the words before the cursor are, and what can follow it. */

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export interface CompletionWord {
  readonly word: string;
  readonly about: string;
}

export interface CompletionOption extends CompletionWord {
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** A command by its path, `processes list`; `""` is the program itself. */
export interface CompletionWords {
  readonly path: string;
  readonly words: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
}

export const completionScripts: Readonly<Record<Shell, (commands: readonly CompletionWords[]) => string>> = {
  bash,
  zsh,
  fish,
};

function bash(commands: readonly CompletionWords[]): string {
  return `_troupe() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" at="" words="" options="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${at:+$at }\${COMP_WORDS[i]}" in
      ${pathPattern(commands)}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
${commands.map(({ path, words, options }) => `    ${quoted(path)}) words=${quoted(wordList(words))} options=${quoted(wordList(options))} ;;`).join("\n")}
  esac
  case "$at \${COMP_WORDS[COMP_CWORD - 1]}" in
${choiceCases(commands, (choices) => `words=${quoted(choices.join(" "))} options=""`)}
  esac
  [[ "$cur" == -* ]] && words="$options"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _troupe troupe`;
}

function zsh(commands: readonly CompletionWords[]): string {
  const described = (list: readonly CompletionWord[]): string =>
    list.map(({ word, about }) => quoted(`${word}:${about.replaceAll(":", "\\:")}`)).join(" ");
  return `#compdef troupe
_troupe() {
  local at="" i
  local -a subcommands options choices
  for ((i = 2; i < CURRENT; i++)); do
    case "\${at:+$at }\${words[i]}" in
      ${pathPattern(commands)}) at="\${at:+$at }\${words[i]}" ;;
    esac
  done
  case "$at" in
${commands.map(({ path, words, options }) => `    ${quoted(path)}) subcommands=(${described(words)}) options=(${described(options)}) ;;`).join("\n")}
  esac
  case "$at \${words[CURRENT - 1]}" in
${choiceCases(commands, (choices) => `choices=(${choices.join(" ")})`)}
  esac
  if (( \${#choices} )); then compadd -a choices
  elif [[ "$PREFIX" == -* ]]; then _describe -o option options
  elif (( \${#subcommands} )); then _describe command subcommands
  else _files
  fi
}
compdef _troupe troupe`;
}

function fish(commands: readonly CompletionWords[]): string {
  const lines = commands.flatMap(({ path, words, options }) => {
    const at = `complete -c troupe -n ${fishQuoted(`__troupe_at ${fishQuoted(path)}`)}`;
    return [
      ...words.map(({ word, about }) => `${at} -f -a ${word} -d ${fishQuoted(about)}`),
      ...options.map(({ word, about, takesValue, choices }) => {
        const value = choices.length > 0 ? ` -x -a ${fishQuoted(choices.join(" "))}` : takesValue ? " -r" : "";
        return `${at} -l ${word.replace(/^--/, "")}${value} -d ${fishQuoted(about)}`;
      }),
    ];
  });
  return `function __troupe_at
  set -l at
  for word in (commandline -opc)[2..]
    set -l next (string join ' ' $at $word)
    contains -- $next ${namedPaths(commands).map(fishQuoted).join(" ")}; and set at $next
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}`;
}

function choiceCases(commands: readonly CompletionWords[], then: (choices: readonly string[]) => string): string {
  return commands
    .flatMap(({ path, options }) =>
      options
        .filter(({ choices }) => choices.length > 0)
        .map(({ word, choices }) => `    ${quoted(`${path} ${word}`)}) ${then(choices)} ;;`),
    )
    .join("\n");
}

function namedPaths(commands: readonly CompletionWords[]): readonly string[] {
  return commands.map(({ path }) => path).filter((path) => path !== "");
}

function pathPattern(commands: readonly CompletionWords[]): string {
  return namedPaths(commands).map(quoted).join(" | ");
}

function wordList(list: readonly CompletionWord[]): string {
  return list.map(({ word }) => word).join(" ");
}

/** For bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
