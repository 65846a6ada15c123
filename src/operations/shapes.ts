/** Shapes that many rows share: text forms of path and query fields, lists, well-formed text. */
import { z } from "zod";
import { cursorCharactersMax, pageLimitDefault, pageLimitMax } from "../limits.ts";

/** Path and query fields arrive as text over REST and as numbers over gRPC. Plain digits only. */
function digits(description: string): z.ZodType<number> {
  return z
    .union([
      z.number(),
      z
        .string()
        .regex(/^[0-9]+$/, "must be plain digits")
        .transform(Number),
    ])
    .describe(description) as unknown as z.ZodType<number>;
}

/** A process id: an integer above 0, in plain decimal without leading zeros. */
export const processId = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^[1-9][0-9]*$/, "must be an integer above 0")
      .transform(Number),
  ])
  .pipe(
    z.number().int("must be an integer above 0").positive("must be an integer above 0").max(Number.MAX_SAFE_INTEGER),
  );

/** A page size: digits, at least 1; larger ones are clamped to the most we serve. */
export const pageLimit = digits("Maximum number of items, 1 to 100; larger values are clamped")
  .pipe(z.number().min(1, "must be at least 1"))
  .transform((limit) => Math.min(limit, pageLimitMax))
  .default(pageLimitDefault);

/** Checked by `page.ts`, which tells apart what is wrong; here only the type and a bound on what is looked at. */
export const cursor = z
  .string()
  .max(cursorCharactersMax * 2)
  .optional();

/** Seconds to wait for a process to become idle; longer waits are shortened. */
export const waitSeconds = digits("Seconds to wait until the process is idle; above 60 acts as 60").optional();

/** A boolean in a query is spelled true or false; over gRPC it is a boolean. */
export const flag = z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")]);

/** Text that can be stored and sent as UTF-8: no lone surrogates, no NUL. */
export function text(): z.ZodString {
  return z
    .string()
    .refine((value) => value.isWellFormed() && !value.includes("\u0000"), "must be well-formed Unicode without NUL");
}

/** Trimmed and not blank. */
export const label = text().trim().min(1, "must not be blank");

export const instant = z.iso.datetime();

export function page<Item extends z.ZodType>(
  item: Item,
): z.ZodObject<{ items: z.ZodArray<Item>; nextCursor: z.ZodNullable<z.ZodString>; hasMore: z.ZodBoolean }> {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable(), hasMore: z.boolean() });
}

export const jsonObject = z.record(z.string(), z.unknown());

export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
