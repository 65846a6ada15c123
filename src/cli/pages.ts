/** A list, page after page, until it ends or there is enough. */
import { readCount } from "./input.ts";
import type { Item } from "./item.ts";
import type { Run } from "./run.ts";

/** As large as the server gives them. */
const pageItemsMax = 100;

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** Option `--limit` of a command that lists; undefined: all. Throws CliError for what is no number above 0. */
export function limitOf(run: Run): number | undefined {
  const { limit } = run.options as { limit?: string };
  return limit === undefined ? undefined : readCount(limit, "Option --limit");
}

/** `itemsMax` undefined: all. */
export async function* pagesOf(
  page: (request: PageRequest) => Promise<Item>,
  itemsMax: number | undefined,
  field = "items",
): AsyncGenerator<readonly Item[]> {
  let left = itemsMax ?? Number.POSITIVE_INFINITY;
  let cursor: string | undefined;
  do {
    const answer = await page({ limit: Math.min(left, pageItemsMax), ...(cursor === undefined ? {} : { cursor }) });
    const items = answer[field] as readonly Item[];
    yield items.slice(0, left);
    left -= items.length;
    cursor = answer.nextCursor as string | undefined;
  } while (cursor !== undefined && left > 0);
}
