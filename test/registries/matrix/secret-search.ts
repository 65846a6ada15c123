/** Finds traces of a secret in bytes: any run of it, as it is, in base64 at any alignment, or percent-encoded. */

/** Shortest run that counts. Shorter ones would be met by chance. */
const runBytes = 10;

export type Search = (bytes: string) => number;

/** @returns a function that tells where in a text the first trace begins, or -1. The text is bytes read as latin1. */
export function searchFor(secret: string): Search {
  const forms = [secret, everyBytePercentEncoded(secret), encodeURIComponent(secret), ...base64Forms(secret)];
  const runs = new Set(forms.flatMap((form) => [form, form.toLowerCase(), form.toUpperCase()]).flatMap(runsOf));
  return (bytes) => {
    for (let at = 0; at + runBytes <= bytes.length; at += 1) if (runs.has(bytes.slice(at, at + runBytes))) return at;
    return -1;
  };
}

function runsOf(form: string): readonly string[] {
  return Array.from({ length: Math.max(0, form.length - runBytes + 1) }, (_, at) => form.slice(at, at + runBytes));
}

function everyBytePercentEncoded(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

/** With 0, 1 and 2 bytes before it (as in `user:secret`), less the characters that the bytes around it decide. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    const inside = (form: string): string => form.replace(/=+$/, "").slice(before === 0 ? 0 : before + 1, -1);
    return [inside(padded.toString("base64")), inside(padded.toString("base64url"))];
  });
}
