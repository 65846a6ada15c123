// Types are stripped before the program runs. Outputs are merged, later keys win, and the console goes to stdout and stderr.
// `declare` lines like these only help an editor; the server needs none of them.
declare function output(value: object): void;
declare const env: { readonly words?: readonly string[] };

interface Count {
  readonly word: string;
  readonly letters: number;
}

function count(word: string): Count {
  return { word, letters: [...word].length };
}

output({ state: "counting", started: true });
const counts: Count[] = (env.words ?? ["tapir", "otter"]).map(count);
console.log("counted", counts.length);
console.warn("nothing to worry about");
output({ state: "done", counts });
