/**
 * Property tests look at the same cases in every run, so that a red run is about the change at hand. TROUPE_SEED=random (or a
 * number) lets them look elsewhere; a failure prints its seed.
 */
import fc from "fast-check";

const wanted = process.env.TROUPE_SEED ?? "20261128";

if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted) });
