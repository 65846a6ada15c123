/** Shapes that many rows share: text forms of path and query fields, lists, well-formed text. */
import { z } from "zod";
import {
  browseLimitDefault,
  browseLimitMax,
  cursorCharactersMax,
  labelCharactersMax,
  pageLimitDefault,
  pageLimitMax,
  registrySlugCharactersMax,
  urlCharactersMax,
  waitSecondsMax,
} from "../limits.ts";

/** Path and query fields arrive as text over REST and as numbers over gRPC. Plain digits only, so nothing else is a number. */
function fromDigits<Schema extends z.ZodType>(pattern: RegExp, schema: Schema): z.ZodPreprocess<Schema> {
  return z.preprocess((value) => (typeof value === "string" && pattern.test(value) ? Number(value) : value), schema);
}

const notAnId = "must be an integer above 0";

/** A process id: an integer above 0, in plain decimal without leading zeros. */
export const processId = fromDigits(
  /^[1-9][0-9]*$/,
  z.number(notAnId).int(notAnId).positive(notAnId).max(Number.MAX_SAFE_INTEGER, notAnId),
).meta({ description: "Id of the process", example: 42 });

/** A page size: digits, at least 1; larger ones are clamped to the most we serve. */
export const pageLimit = fromDigits(
  /^[0-9]+$/,
  z
    .number("must be plain digits")
    .min(1, "must be at least 1")
    .overwrite((limit) => Math.min(limit, pageLimitMax))
    .default(pageLimitDefault),
).meta({
  description: `Items on a page; more than ${pageLimitMax} counts as ${pageLimitMax}`,
  type: "integer",
  maximum: pageLimitMax,
});

const browseRange = `must be an integer from 1 to ${browseLimitMax}`;

/** A page size for registries, which may ignore it; larger ones are refused, not clamped. */
export const browseLimit = fromDigits(
  /^[0-9]+$/,
  z
    .number(browseRange)
    .int(browseRange)
    .min(1, browseRange)
    .max(browseLimitMax, browseRange)
    .default(browseLimitDefault),
).describe("Entries on a page; the registry may ignore it");

/** Ids of registries and their entries. */
export const slug = z
  .string()
  .max(registrySlugCharactersMax, `must have at most ${registrySlugCharactersMax} characters`)
  .regex(/^[A-Za-z0-9_-]+$/, "must be letters, digits, _ or -")
  .meta({ example: "community" });

/** Checked by `page.ts`, which tells apart what is wrong; here only the type and a bound on what is looked at. */
export const cursor = z
  .string()
  .max(cursorCharactersMax * 2)
  .optional()
  .meta({ description: "The nextCursor of the page before; absent: the first page", maxLength: cursorCharactersMax });

/** Seconds to wait for a process to become idle; longer waits are shortened. */
export const waitSeconds = fromDigits(
  /^[0-9]+$/,
  z.number("must be plain digits").min(0, "must not be negative").optional(),
).meta({
  description: `Seconds to wait until the process is idle; more than ${waitSecondsMax} counts as that`,
  type: "integer",
});

/** A boolean in a query is spelled true or false, in any case; over gRPC it is a boolean. */
export const flag = z.preprocess(
  (value) => (typeof value === "string" && /^(true|false)$/i.test(value) ? value.toLowerCase() === "true" : value),
  z.boolean("must be true or false"),
);

/** Text that can be stored and sent as UTF-8: no lone surrogates, no NUL. */
export function text(): z.ZodString {
  return z
    .string()
    .refine((value) => value.isWellFormed() && !value.includes("\u0000"), "must be well-formed Unicode without NUL");
}

/** Trimmed and not blank. */
export const label = text()
  .trim()
  .min(1, "must not be blank")
  .max(labelCharactersMax, `must have at most ${labelCharactersMax} characters`);

/** An absolute URL, looked at further by whoever uses it. */
export const urlText = text()
  .trim()
  .min(1, "must not be blank")
  .max(urlCharactersMax, `must have at most ${urlCharactersMax} characters`);

export const instant = z.iso.datetime().meta({ example: "2026-11-28T09:30:00.000Z" });

/** Path fields with the id of a record. */
export const serviceIdField = z.string().min(1).meta({ description: "Id of the service", example: "petstore" });
export const moduleIdField = z.string().min(1).meta({ description: "Id of the module", example: "openapi" });
export const registryIdField = z.string().min(1).meta({ description: "Slug of the registry", example: "community" });

export function page<Item extends z.ZodType>(
  item: Item,
): z.ZodObject<{ items: z.ZodArray<Item>; nextCursor: z.ZodNullable<z.ZodString>; hasMore: z.ZodBoolean }> {
  return z.object({
    items: z.array(item).describe("Matching records"),
    nextCursor: z.string().nullable().meta({ description: "Null when there are no more items", example: null }),
    hasMore: z.boolean().meta({ description: "When true, nextCursor is a valid cursor", example: false }),
  });
}

export const jsonObject = z.record(z.string(), z.unknown());

/** A JSON Schema. */
export const schemaShape = z
  .union([jsonObject, z.boolean()])
  .meta({ id: "JsonSchema", description: "A JSON Schema, draft 2020-12 or draft-07", example: { type: "object" } });

/** ISO-8601 with milliseconds. Dates are costly to format, and many records are of the same seconds. */
export function isoTime(epochMs: number): string {
  const second = Math.floor(epochMs / 1_000);
  let text = isoSeconds.get(second);
  if (text === undefined) {
    text = new Date(second * 1_000).toISOString().slice(0, -"000Z".length);
    if (isoSeconds.size >= isoSecondsMax) isoSeconds.clear();
    isoSeconds.set(second, text);
  }
  return `${text}${String(epochMs - second * 1_000).padStart(3, "0")}Z`;
}

const isoSeconds = new Map<number, string>();
const isoSecondsMax = 4_096;
