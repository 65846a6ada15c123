/** The paths that exist, asked only when no route matched: is it the path that is unknown (404), or the method (405)? */
import type { RouteOptions } from "fastify";

export interface KnownPaths {
  add(route: Pick<RouteOptions, "method" | "url">): void;
  /** Methods the path answers to, sorted; empty when the path is unknown. `path` is as sent, without the query. */
  methodsOf(path: string): readonly string[];
}

export function knownPaths(): KnownPaths {
  const templates: { readonly segments: readonly string[]; readonly methods: readonly string[] }[] = [];
  return {
    add({ method, url }) {
      templates.push({ segments: url.split("/"), methods: Array.isArray(method) ? method : [method] });
    },
    methodsOf(path) {
      const segments = path.split("/");
      const methods = new Set<string>();
      for (const template of templates) {
        if (matches(template.segments, segments)) for (const method of template.methods) methods.add(method);
      }
      return methods.size === 0
        ? []
        : [...methods, "OPTIONS"].filter((method, at, all) => all.indexOf(method) === at).sort();
    },
  };
}

function matches(template: readonly string[], segments: readonly string[]): boolean {
  if (template.at(-1) === "*") {
    const stem = template.slice(0, -1);
    return segments.length > stem.length && matches(stem, segments.slice(0, stem.length));
  }
  return (
    template.length === segments.length &&
    template.every((part, at) => (part.startsWith(":") ? segments[at] !== "" : part === segments[at]))
  );
}
