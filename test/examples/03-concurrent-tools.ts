// Tools of installed services are functions; calls that do not wait for each other run at the same time.
declare function output(value: object): void;
declare const services: {
  petstore: {
    getPet(parameters: {
      path: { petId: number };
    }): Promise<{ status: number; body: { name: string; status: string } }>;
    waitForVet(parameters: { query: { milliseconds: number } }): Promise<{ body: { waitedMs: number } }>;
  };
};

const { petstore } = services;
const started = Date.now();
const [first, second, ...waits] = await Promise.all([
  petstore.getPet({ path: { petId: 1 } }),
  petstore.getPet({ path: { petId: 2 } }),
  ...Array.from({ length: 5 }, () => petstore.waitForVet({ query: { milliseconds: 300 } })),
]);

output({
  pets: [first.body.name, second.body.name],
  waitedMs: waits.map(({ body }) => body.waitedMs),
  tookMs: Date.now() - started,
});
