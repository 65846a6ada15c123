/**
 * The OpenAPI document of the demo's pet store. Small, but with what real documents have: server variables, path-level
 * parameters, an array in the query, a circle of references, null, an API key, and an answer that is not JSON.
 */

export const apiKeyHeader = "X-Pet-Key";
export const petStatuses = ["available", "pending", "sold"] as const;

const json = (schema: object) => ({ "application/json": { schema } });
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const answer = (description: string, schema: object) => ({ description, content: json(schema) });
const failure = { $ref: "#/components/responses/Failure" };

const paths = {
  "/pets": {
    get: {
      operationId: "listPets",
      summary: "List pets",
      description: "Pets in the order of their ids. Filters are combined.",
      parameters: [
        { name: "status", in: "query", schema: reference("Status") },
        {
          name: "tags",
          in: "query",
          description: "Only pets that have all of these tags",
          schema: { type: "array", items: { type: "string" } },
          style: "form",
          explode: true,
        },
        { name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 100, default: 20 } },
      ],
      responses: { 200: answer("The pets", { type: "array", items: reference("Pet") }), 400: failure, 401: failure },
    },
    post: {
      operationId: "createPet",
      summary: "Add a pet",
      requestBody: { required: true, content: json(reference("NewPet")) },
      responses: { 201: answer("The new pet", reference("Pet")), 400: failure, 401: failure },
    },
  },
  "/pets/{petId}": {
    parameters: [{ $ref: "#/components/parameters/PetId" }],
    get: {
      operationId: "getPet",
      summary: "Get one pet",
      responses: { 200: answer("The pet", reference("Pet")), 401: failure, 404: failure },
    },
    put: {
      operationId: "updatePet",
      summary: "Replace what is known about a pet",
      requestBody: { required: true, content: json(reference("NewPet")) },
      responses: { 200: answer("The pet", reference("Pet")), 400: failure, 401: failure, 404: failure },
    },
    delete: {
      operationId: "deletePet",
      summary: "Remove a pet",
      responses: { 204: { description: "Removed" }, 401: failure, 404: failure },
    },
  },
  "/pets/{petId}/photo": {
    parameters: [{ $ref: "#/components/parameters/PetId" }],
    get: {
      operationId: "getPetPhoto",
      summary: "A photo of the pet",
      responses: {
        200: {
          description: "A very small PNG",
          content: { "image/png": { schema: { type: "string", format: "binary" } } },
        },
        401: failure,
        404: failure,
      },
    },
  },
  "/orders": {
    post: {
      operationId: "placeOrder",
      summary: "Order a pet",
      description: "The pet must be available and becomes pending.",
      requestBody: { required: true, content: json(reference("NewOrder")) },
      responses: {
        201: answer("The order", reference("Order")),
        400: failure,
        401: failure,
        404: failure,
        409: failure,
      },
    },
  },
  "/categories": {
    get: {
      operationId: "getCategories",
      summary: "The tree of categories",
      responses: { 200: answer("Its root", reference("Category")), 401: failure },
    },
  },
  "/stats": {
    get: {
      operationId: "getStats",
      summary: "Count pets and orders",
      responses: { 200: answer("The counts", reference("Stats")), 401: failure },
    },
  },
  "/slow": {
    get: {
      operationId: "waitForVet",
      summary: "Answers late",
      parameters: [
        {
          name: "milliseconds",
          in: "query",
          description: "How late",
          required: true,
          schema: { type: "integer", minimum: 0, maximum: 60000 },
        },
      ],
      responses: {
        200: answer("How long it took", {
          type: "object",
          required: ["waitedMs"],
          properties: { waitedMs: { type: "integer" } },
        }),
        400: failure,
        401: failure,
      },
    },
  },
};

const schemas = {
  Status: { type: "string", enum: [...petStatuses] },
  NewPet: {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string", minLength: 1, maxLength: 80, examples: ["Tapir Tom"] },
      status: { ...reference("Status"), default: "available" },
      tags: { type: "array", items: { type: "string" } },
      bornOn: { type: ["string", "null"], format: "date", description: "Null when nobody knows" },
    },
  },
  Pet: {
    type: "object",
    required: ["id", "name", "status", "tags", "bornOn"],
    properties: {
      id: { type: "integer" },
      name: { type: "string" },
      status: reference("Status"),
      tags: { type: "array", items: { type: "string" } },
      bornOn: { type: ["string", "null"], format: "date" },
    },
  },
  NewOrder: {
    type: "object",
    required: ["petId"],
    properties: { petId: { type: "integer", examples: [1] }, note: { type: ["string", "null"], maxLength: 200 } },
  },
  Order: {
    type: "object",
    required: ["id", "petId", "note", "placedAt"],
    properties: {
      id: { type: "integer" },
      petId: { type: "integer" },
      note: { type: ["string", "null"] },
      placedAt: { type: "string", format: "date-time" },
    },
  },
  Category: {
    type: "object",
    required: ["name"],
    properties: { name: { type: "string" }, children: { type: "array", items: reference("Category") } },
  },
  Stats: {
    type: "object",
    required: ["pets", "orders", "byStatus"],
    properties: {
      pets: { type: "integer" },
      orders: { type: "integer" },
      byStatus: { type: "object", additionalProperties: { type: "integer" } },
    },
  },
  Failure: {
    type: "object",
    required: ["code", "message"],
    properties: { code: { type: "string" }, message: { type: "string" } },
  },
};

/** It cannot know on which port it is served: whoever installs it sets `port`. */
export const petStoreDocument = {
  openapi: "3.1.0",
  info: {
    title: "Pet Store",
    version: "1.0.0",
    summary: "Pets, orders and photos",
    description: "A small shop with state. It forgets everything when it stops.",
  },
  servers: [
    {
      url: "http://127.0.0.1:{port}/{version}",
      variables: {
        port: { default: "8000", description: "The port the pet store listens on" },
        version: { default: "v1", enum: ["v1"] },
      },
    },
  ],
  security: [{ petKey: [] }],
  paths,
  components: {
    parameters: { PetId: { name: "petId", in: "path", required: true, schema: { type: "integer", minimum: 1 } } },
    responses: { Failure: answer("What was wrong", reference("Failure")) },
    schemas,
    securitySchemes: { petKey: { type: "apiKey", in: "header", name: apiKeyHeader } },
  },
};
