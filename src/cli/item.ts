/** What the server answers, as plain JSON: what a table shows and `--json` prints. */
export interface Item {
  readonly [name: string]: unknown;
}
