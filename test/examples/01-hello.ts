// The smallest program: what is output is the output of the process.
declare function output(value: object): void;

output({ hello: "world" });
