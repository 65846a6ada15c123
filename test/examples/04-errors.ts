// An answer of the target is a result, whatever its status. A call that could not be made is a thrown error with a code.
declare function output(value: object): void;
declare const services: {
  petstore: {
    getPet(parameters: unknown): Promise<{ status: number; body: { message?: string } }>;
    noSuchTool(): Promise<never>;
  };
};

const missing = await services.petstore.getPet({ path: { petId: 999 } });
output({ missing: { status: missing.status, message: missing.body.message } });

for (const [name, attempt] of Object.entries({
  badParameters: () => services.petstore.getPet({ path: { petId: "first" } }),
  unknownTool: () => services.petstore.noSuchTool(),
})) {
  try {
    await attempt();
  } catch (error) {
    const { code, status } = error as Error & { code: string; status: number };
    output({ [name]: { code, status } });
  }
}

// Not caught: the process ends as failed, its error is this message, and the output above is kept.
throw new Error("The example ends here on purpose");
