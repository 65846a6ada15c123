/** OpenAPI 3.0 with what 3.1 no longer has: `nullable`, `exclusiveMinimum` as a flag and a single `example`. */

const json = (schema: object) => ({ "application/json": { schema } });
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const problem = { description: "What was wrong", content: json(reference("Problem")) };
const stationId = {
  name: "stationId",
  in: "path",
  required: true,
  schema: { type: "string", pattern: "^[A-Z]{4}$", example: "EDDH" },
};

export const weatherStationDocument = {
  openapi: "3.0.3",
  info: {
    title: "Weather Station",
    version: "2.1.0",
    description: "Readings of a network of small weather stations, and alarms when a value leaves its range.",
  },
  servers: [
    {
      url: "http://127.0.0.1:{port}/weather",
      variables: { port: { default: "8100", description: "The port the network listens on" } },
    },
  ],
  security: [{ token: [] }],
  tags: [{ name: "readings" }, { name: "alarms" }],
  paths: {
    "/stations": {
      get: {
        operationId: "listStations",
        summary: "List the stations",
        tags: ["readings"],
        responses: {
          200: { description: "Stations by id", content: json({ type: "array", items: reference("Station") }) },
          401: problem,
        },
      },
    },
    "/stations/{stationId}/readings": {
      parameters: [stationId],
      get: {
        operationId: "listReadings",
        summary: "Readings of one station",
        description: "The newest first.",
        tags: ["readings"],
        parameters: [
          { name: "since", in: "query", schema: { type: "string", format: "date-time" } },
          {
            name: "quantity",
            in: "query",
            style: "form",
            explode: false,
            schema: { type: "array", items: reference("Quantity"), minItems: 1 },
          },
        ],
        responses: {
          200: { description: "The readings", content: json({ type: "array", items: reference("Reading") }) },
          404: problem,
        },
      },
    },
    "/stations/{stationId}/alarms": {
      parameters: [stationId],
      post: {
        operationId: "createAlarm",
        summary: "Watch a value",
        tags: ["alarms"],
        requestBody: { required: true, content: json(reference("NewAlarm")) },
        responses: {
          201: { description: "The alarm", content: json(reference("Alarm")) },
          400: problem,
          404: problem,
        },
      },
    },
  },
  components: {
    schemas: {
      Quantity: { type: "string", enum: ["temperature", "humidity", "pressure", "wind"] },
      Station: {
        type: "object",
        required: ["id", "name"],
        properties: {
          id: { type: "string" },
          name: { type: "string" },
          altitude: { type: "number", nullable: true, description: "Metres; null when it was never measured" },
        },
      },
      Reading: {
        type: "object",
        required: ["at", "quantity", "value"],
        properties: {
          at: { type: "string", format: "date-time" },
          quantity: reference("Quantity"),
          value: { type: "number", nullable: true },
        },
      },
      NewAlarm: {
        type: "object",
        required: ["quantity", "above"],
        properties: {
          quantity: reference("Quantity"),
          above: { type: "number", example: 30.5 },
          quietMinutes: { type: "integer", minimum: 0, exclusiveMinimum: true, maximum: 1440, default: 60 },
        },
      },
      Alarm: {
        allOf: [
          reference("NewAlarm"),
          { type: "object", required: ["id"], properties: { id: { type: "string", format: "uuid" } } },
        ],
      },
      Problem: {
        type: "object",
        required: ["title"],
        properties: { title: { type: "string" }, detail: { type: "string", nullable: true } },
      },
    },
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
  },
};
