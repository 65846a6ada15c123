/** Prints what `pythonUnavailable` says on the machine it is started on, which its test has made poorer. */
import { pythonUnavailable } from "../../src/executor/python/availability.ts";

process.stdout.write(`${await pythonUnavailable()}\n`);
