/** Local `$ref`s: pointer text to value. What points outside the document is never fetched. */
import { isTree, own, type Tree } from "./read-document.ts";

/** Longest chain of references to references that is followed. */
const chainMax = 32;

export class References {
  private readonly root: Tree;
  private readonly documentUrl: string | undefined;
  private anchors: Map<string, unknown> | undefined;

  constructor(root: Tree, documentUrl: string | undefined) {
    this.root = root;
    this.documentUrl = documentUrl;
  }

  /** `#/…` or `#name`, decoded; undefined when the reference leaves the document. */
  fragment(ref: string): string | undefined {
    const hash = ref.indexOf("#");
    const address = hash < 0 ? ref : ref.slice(0, hash);
    if (address !== "" && !this.isOwnAddress(address)) return undefined;
    try {
      return decodeURIComponent(hash < 0 ? "" : ref.slice(hash + 1));
    } catch {
      return ref.slice(hash + 1);
    }
  }

  /** Value at a decoded fragment; undefined when nothing is there. */
  at(fragment: string): unknown {
    if (fragment === "") return this.root;
    if (!fragment.startsWith("/")) return this.anchored().get(fragment);
    let value: unknown = this.root;
    for (const token of fragment.slice(1).split("/")) {
      value = own(value, token.replaceAll("~1", "/").replaceAll("~0", "~"));
      if (value === undefined) return undefined;
    }
    return value;
  }

  /** Follows `$ref`s of parameters, bodies, responses, headers and path items; siblings of the reference win over its target. */
  resolve(value: unknown): Tree | undefined {
    let siblings: Tree = {};
    let current = value;
    for (let step = 0; step < chainMax; step += 1) {
      if (!isTree(current)) return undefined;
      const ref = own(current, "$ref");
      if (typeof ref !== "string") return step === 0 ? current : { ...current, ...siblings };
      const { $ref: _, ...rest } = current;
      siblings = { ...rest, ...siblings };
      const fragment = this.fragment(ref);
      current = fragment === undefined ? undefined : this.at(fragment);
    }
    return undefined;
  }

  private isOwnAddress(address: string): boolean {
    if (this.documentUrl === undefined) return false;
    try {
      return new URL(address, this.documentUrl).href === new URL(this.documentUrl).href.split("#")[0];
    } catch {
      return false;
    }
  }

  private anchored(): Map<string, unknown> {
    if (this.anchors) return this.anchors;
    this.anchors = new Map();
    const stack: unknown[] = [own(own(this.root, "components"), "schemas")];
    while (stack.length > 0) {
      const value = stack.pop();
      if (typeof value !== "object" || value === null) continue;
      const anchor = own(value, "$anchor");
      if (typeof anchor === "string" && !this.anchors.has(anchor)) this.anchors.set(anchor, value);
      for (const child of Object.values(value)) stack.push(child);
    }
    return this.anchors;
  }
}
