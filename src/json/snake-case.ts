/** Names as languages spell them that write snake_case: what docs show and what calls are matched with must be one rule. */

/** `getPet`, `get-pet` and `getHTTPStatus` become `get_pet`, `get_pet` and `get_http_status`. */
export function toSnakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9_]+/g, "_")
    .toLowerCase();
}
