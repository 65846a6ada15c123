// A process that takes longer than its timeoutMs ends with exitState "timeout". What it had output until then is kept.
declare function output(value: object): void;

output({ reached: "the loop" });
for (;;) await new Promise((resolve) => setTimeout(resolve, 10));
