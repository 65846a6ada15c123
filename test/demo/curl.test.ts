/** Printed commands are pasted into shells, so a real shell is asked what it makes of them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { curlCommand, quoted, type Request } from "../../src/demo/curl.ts";

/** The words curl would get, and what it would read from stdin. */
async function wordsOf(command: string): Promise<string[]> {
  const script = `curl() { printf '%s\\0' "$@"; [ -t 0 ] || cat; }\n${command} </dev/null`;
  const { stdout } = await promisify(execFile)("sh", ["-c", script]);
  return stdout.split("\0").slice(0, -1);
}

const base = "http://127.0.0.1:8080";

test.each<[string, Request, string[]]>([
  ["a plain GET", { method: "GET", path: "/tools" }, ["-sS", `${base}/tools`]],
  ["a query", { method: "GET", path: "/tools?limit=10&query=a b" }, ["-sS", `${base}/tools?limit=10&query=a b`]],
  ["a POST without a body", { method: "POST", path: "/x" }, ["-sS", "-X", "POST", `${base}/x`]],
  ["a DELETE", { method: "DELETE", path: "/x" }, ["-sS", "-X", "DELETE", `${base}/x`]],
  [
    "a body with everything a shell reads something into",
    { method: "POST", path: "/processes", body: { code: "let a = 'b';\n\"$HOME\" `id` \\ !! ''" } },
    [
      "-sS",
      `${base}/processes`,
      "-H",
      "Content-Type: application/json",
      "-d",
      JSON.stringify({ code: "let a = 'b';\n\"$HOME\" `id` \\ !! ''" }),
    ],
  ],
  [
    "a patch",
    { method: "PATCH", path: "/x", body: [] },
    ["-sS", "-X", "PATCH", `${base}/x`, "-H", "Content-Type: application/json", "-d", "[]"],
  ],
])("the shell understands %s as it was meant", async (_, request, words) => {
  expect(await wordsOf(curlCommand(base, request))).toEqual(words);
});

test("a body that comes from a command is piped in", () => {
  const command = curlCommand(base, {
    method: "POST",
    path: "/services",
    body: { long: true },
    bodyFrom: "jq . file.json",
  });
  expect(command.split("\n")).toEqual([
    "jq . file.json |",
    `  curl -sS ${base}/services \\`,
    "    -H 'Content-Type: application/json' \\",
    "    -d @-",
  ]);
});

test.each(["plain-1.0_/x", "", " ", "it's", "''", "$(id)", "a\nb", "*", "~", "#", "a;b", "é"])(
  "the word %j survives quoting",
  async (word) => {
    expect(await wordsOf(`curl ${quoted(word)}`)).toEqual([word]);
  },
);
