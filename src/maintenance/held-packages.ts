/**
 * Packages that stay while somebody reads them: a backup names the packages of a moment, and a module that is updated or deleted meanwhile
 * must not take them away. What is to be removed while they are held is removed when nobody holds them any more; a server that ends before
 * that removes it at its next start.
 */
import type { Log } from "../ports/log.ts";
import type { Packages } from "../ports/packages.ts";

export interface HeldPackages extends Packages {
  /** The answer lets go, once. */
  hold(): () => void;
}

export function holdablePackages(packages: Packages, log: Log): HeldPackages {
  let holders = 0;
  const leaving = new Map<string, { readonly id: string; readonly hash: string }>();
  const removeAll = async (): Promise<void> => {
    for (const [name, { id, hash }] of leaving) {
      if (holders > 0) return;
      leaving.delete(name);
      await packages.remove(id, hash).catch((error: unknown) => {
        log.warn("package-not-removed", "A package that is not needed any more could not be removed", {
          moduleId: id,
          error,
        });
      });
    }
  };
  return {
    async add(archive, hash) {
      const added = await packages.add(archive, hash);
      leaving.delete(nameOf(added.manifest.id, added.hash));
      return added;
    },
    open: (id, hash) => packages.open(id, hash),
    icon: (modulePackage) => packages.icon(modulePackage),
    async remove(id, hash) {
      if (holders === 0) return packages.remove(id, hash);
      leaving.set(nameOf(id, hash), { id, hash });
    },
    keepOnly: (kept) => packages.keepOnly(kept),
    hold() {
      holders += 1;
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        holders -= 1;
        if (holders === 0) void removeAll();
      };
    },
  };
}

function nameOf(id: string, hash: string): string {
  return `${id}/${hash}`;
}
