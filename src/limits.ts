/**
 * Every bound of the server that is not a setting: unit in the name, reason beside it. Settings live in `config.ts`.
 */

/** REST and Connect request bodies. 102,400 astral characters escaped as JSON are 1.2 MiB; the rest is head room. */
export const bodyBytesMax = 2 * 1024 * 1024;
/** Nesting of request JSON: far above any real body, far below what overflows a stack. */
export const jsonDepthMax = 64;
/** POST /processes `code`, in Unicode code points (API document section 8). */
export const codeCharactersMax = 102_400;
/** Page size of standard lists (API document section 8). */
export const pageLimitDefault = 20;
export const pageLimitMax = 100;
/** Cursor text (API document section 8). */
export const cursorCharactersMax = 2048;
/** `?wait=` on processes: longer waits are shortened to this, so that proxies do not cut them. */
export const waitSecondsMax = 60;
/** JSON Patch operations in one request: 5,000 apply in well under 200 ms. */
export const patchOperationsMax = 5_000;
/** A call without a deadline of its own gets this one; a wait or a tool call adds its own allowance. */
export const callDeadlineMs = 60_000;

/** Messages waiting in one actor's mailbox before `overloaded`. */
export const mailboxMessagesMax = 1_024;
/** Restarts of one actor within the window before it is parked. */
export const restartsMax = 5;
export const restartsWindowMs = 60_000;
/** Restart backoff: doubling between these, with jitter. */
export const restartBackoffMinMs = 100;
export const restartBackoffMaxMs = 30_000;
/** An actor nobody asked for this long leaves memory. */
export const passivateIdleMs = 120_000;
/** Resident actors; beyond it the least recently used leave memory. */
export const residentActorsMax = 50_000;
/** Ring of undeliverable messages kept for the operator. */
export const deadLettersMax = 1_000;
/** Answers kept in a record so that a retried command gets the first one. */
export const commandIdsKeptMax = 8;
/** Tries of a due wake that does not settle, and the first wait between them (doubling). */
export const wakeAttemptsMax = 6;
export const wakeBackoffMinMs = 2_000;
/** Due wakes loaded from the store at once. */
export const wakesLoadedMax = 1_000;
/** A store that fails this long ends the node, so that the process manager restarts it. */
export const storeFailingMsMax = 30_000;
/** Operations in one LevelDB batch: more raises latency, not throughput. */
export const batchWritesMax = 1_024;

/** OpenAPI and other definition documents, as text. */
export const documentBytesMax = 30 * 1024 * 1024;
/** Downloading one document, redirects included. */
export const documentFetchMs = 10_000;
/** Parsing one document, and checking the parameters of one call, in the definition worker. */
export const documentParseMs = 10_000;
export const parametersCheckMs = 1_000;
/** Redirects followed when a document is fetched. Tool calls follow none. */
export const redirectsMax = 5;
/** Body of a tool's answer. */
export const toolAnswerBytesMax = 10 * 1024 * 1024;

/** Tool calls of one run in flight at once. */
export const toolCallsInFlightMax = 256;
/** A run told to stop gets this long before its child process is killed. */
export const stopGraceMs = 1_000;
/** Runs served by one child of the portable executor: a new child costs some 200 runs' worth of processor time. */
export const runsPerChildMax = 2_000;

/** Commits and their text waiting for a synced batch before `overloaded`: about a second of writing on an ordinary disk. */
export const commitsQueuedMax = 20_000;
export const commitCharactersQueuedMax = 128 * 1024 * 1024;
/** Text in one LevelDB batch: a batch is copied whole into the log, so this bounds both memory and the wait of its commits. */
export const batchCharactersMax = 8 * 1024 * 1024;
/** Records whose revision is remembered, so that a commit needs no read: as many as there are resident actors. */
export const revisionsKnownMax = 50_000;
/** Waits between tries to reopen a failing store (doubling): well within the 10 s in which it must work again. */
export const storeReopenMinMs = 100;
export const storeReopenMaxMs = 2_000;
/** Table bytes whose checksums are proved before the store is opened (about a second); the rest is proved while it serves. */
export const tableBytesProvedMax = 128 * 1024 * 1024;
/** Between two tables proved while serving: one takes about 10 ms of the event loop, so this keeps it to a twentieth. */
export const tableProofPauseMs = 200;
/** Asking for a folder's lock: others that start or stop in the same moment hold it for an instant. */
export const folderLockAttemptsMax = 4;

/** Everything the copy operations of one JSON Patch may write, in characters and nodes: copies double, so few are enough to fill memory. */
export const patchCopiedWeightMax = 512 * 1024;
/** A stored configuration or set of secrets after a patch, in characters and nodes. */
export const settingsWeightMax = 1024 * 1024;
/** Problems of one value named in an error; the rest is counted. */
export const schemaProblemsMax = 20;
/** A foreign JSON Schema as text; the largest real configuration schemas are some 100 KiB. */
export const schemaCharactersMax = 1024 * 1024;
/** Nesting of a foreign JSON Schema. */
export const schemaDepthMax = 128;
/** Subschemas once every `$ref` is followed: thirty that each refer twice to the next would be a thousand million checks. */
export const schemaUnfoldedMax = 200_000;
/** Compiled schemas kept. */
export const schemasCompiledMax = 256;

/** Connections to one address of one origin at once; more requests wait within their own deadline. */
export const outboundConnectionsMax = 128;
/** Origins with connections of their own kept ready; the least recently used is closed. */
export const outboundPoolsMax = 256;
/** One address that does not accept a connection; then the next one is tried. */
export const outboundConnectMs = 5_000;
/** An idle outbound connection is closed after this, before most servers close it under a request. */
export const outboundIdleMs = 1_000;
/** Header block of an outbound answer. */
export const outboundHeaderBytesMax = 32 * 1024;
/** Content codings around one body: real servers use one. */
export const outboundCodingsMax = 2;

/** Requests waiting for a supervised worker; each is served in milliseconds unless a foreign document stands in front. */
export const workerRequestsWaitingMax = 1_024;
/** Longest wait for a turn in a supervised worker: three documents that each use up their time. */
export const workerRequestWaitMs = 30_000;
/** From fork to ready: 0.3 s alone, more when every core is busy. */
export const workerStartMs = 30_000;
/** Heap of the worker that reads documents, MiB: the largest JSON documents need some 600, YAML that fits its time some 1,500. */
export const documentWorkerMemoryMb = 2_048;
/** It is ended after this without work, to give its heap back. */
export const documentWorkerIdleMs = 30_000;
/** Heap of the worker that checks parameters, MiB: the plans it keeps take some 400. */
export const definitionWorkerMemoryMb = 1_024;
/** Plans kept parsed in the worker, by characters of their text (about five bytes of heap each). */
export const plansCachedCharactersMax = 64 * 1024 * 1024;
/** Tools with a compiled parameter check kept in the worker. */
export const parameterChecksCachedMax = 256;
/** Nesting of a definition document, once read: real ones stay under 40; recursion over it is safe. */
export const documentDepthMax = 256;
/** Values of a definition document with every alias written out: 30 MiB of real JSON holds about two million. */
export const documentValuesMax = 6_000_000;
/** Characters of a definition document with every alias written out. */
export const documentCharactersMax = 128 * 1024 * 1024;
/** Operations of one document; the largest public ones have some 12,000. */
export const documentOperationsMax = 50_000;
/** Nesting of the JSON a tool answers with: deeper overflows whoever serialises it. */
export const toolAnswerDepthMax = 512;
/** Problems named when parameters do not fit. */
export const parameterProblemsMax = 10;

/** Request headers of both faces together, and their number: ordinary clients send 1 KiB in 20. */
export const headerBytesMax = 16 * 1024;
export const headersMax = 200;
/** A client gets this long to send its headers, and then the rest of its request. */
export const headersReceiveMs = 20_000;
export const requestReceiveMs = 50_000;
/** Node looks for connections over those times this often, so they may be late by as much. */
export const receiveCheckMs = 5_000;
/** Idle connections are kept longer than the 60 s that proxies keep theirs, so that the proxy closes first. */
export const keepAliveMs = 65_000;
/** Open connections of one face: each idle one costs a few KiB and a descriptor. */
export const connectionsMax = 10_000;
/** Of a body that was refused for its size this much is still read away, so that the client can finish and see the answer. */
export const refusedBodyBytesDrainedMax = 32 * 1024 * 1024;
/** One answer of the control plane: the largest tool answer with head room for its envelope. */
export const rpcAnswerBytesMax = 16 * 1024 * 1024;
/** Calls in flight on one HTTP/2 connection. */
export const streamsPerConnectionMax = 256;

/** Services hydrated at once; each holds its configuration and credentials. The next call of one that left makes it again. */
export const hydratedServicesMax = 1_000;
/** Tool lists kept parsed, counted in tools over all services. */
export const cataloguedToolsMax = 50_000;

/** Runs waiting for a child of the portable executor: the run queue in front never sends more than the concurrency. */
export const executorQueueMax = 1_024;
/** A child that is not ready by then counts as a failed start; measured: 150 ms, 1 s on a busy machine. */
export const executorStartMs = 15_000;
/** Failed starts in a row before waiting runs end `not_started`, and the wait between them (doubling). */
export const executorStartsMax = 5;
export const executorStartBackoffMinMs = 100;
export const executorStartBackoffMaxMs = 5_000;
/** A child that waits answers a stop at once and can be used again; one that computes is killed after this. */
export const executorStopSoftMs = 300;
/** Idle children kept for the next run; others leave after the idle time. */
export const executorWarmChildren = 2;
export const executorIdleMs = 30_000;
/** Room above the run's memory for what the child itself needs to serve it: frames, copies of strings, the TypeScript parser. */
export const executorSlackMb = 64;
/** Timers of one run waiting at once. */
export const timersPerRunMax = 1_000;
/** Parameters of one tool call as JSON text, in characters: as large as a request body may be. */
export const toolParametersCharactersMax = 2 * 1024 * 1024;
/** Error text of a failed run, in UTF-16 units: it is stored in the process record. */
export const runErrorCharactersMax = 8_192;
/** One piece of stdout or stderr on its way to the host, in UTF-16 units. */
export const streamPieceCharactersMax = 64 * 1024;
/** Nesting of a run's structured output: deeper overflows whoever serialises it. */
export const runOutputDepthMax = 512;
/** Actors asked at once to seal their secrets with a new key, so that the pass leaves room for callers. */
export const resealPageMax = 50;
/** Old processes deleted in one step of the retention sweep, and the rest between sweeps. */
export const retentionPageMax = 100;
export const retentionSweepMs = 60_000;

/** One exchange with a registry or a token endpoint: look-up, redirects and body included. */
export const registryExchangeMs = 10_000;
/** One read of a registry, however it goes: the wait for a token, the exchange, and its repetition after a 401. */
export const registryReadMs = 15_000;
/** Downloading one artifact: the largest, 30 MiB, at 1 MiB a second. */
export const registryArtifactMs = 30_000;
/** Well-known document: real ones are under 4 KiB. */
export const wellKnownBytesMax = 256 * 1024;
/** Capability page or entry descriptor: 200 entries with long descriptions are some 400 KiB. */
export const registryDocumentBytesMax = 1024 * 1024;
/** Answer of a token endpoint. */
export const tokenAnswerBytesMax = 64 * 1024;
/** An access token or key in one header: more than most servers accept for all headers together. */
export const credentialCharactersMax = 16 * 1024;
/** Ids a registry gives to itself and its entries, and header names it asks for: they become keys and path segments. */
export const registrySlugCharactersMax = 256;
/** Foreign text quoted in an error. */
export const foreignQuoteCharactersMax = 64;
/** Life of a token whose endpoint does not say (API document section 8), and the longest believed: both are renewed anyway. */
export const tokenLifetimeDefaultMs = 3_600_000;
export const tokenLifetimeMaxMs = 365 * 24 * 3_600_000;
/** Keys read from LevelDB in one hop through its thread pool. */
export const readKeysTogetherMax = 512;
/** A registry token is reused until less than this remains (API document section 5.2). */
export const tokenSkewMs = 30_000;
/** One token exchange, connection included. */
export const tokenExchangeMs = 10_000;
/** How long a registry's capability map is believed, so that browsing costs one remote request. */
export const capabilitiesKeptMs = 60_000;
/** Registries whose capability map is kept. */
export const capabilitiesKeptMax = 1_000;
/** Pages walked to find one entry by id. */
export const entryPagesMax = 20;
/** Page size of registry browsing (API document section 4.1). */
export const browseLimitDefault = 50;
export const browseLimitMax = 200;
/** An API key sent as a header: servers take 8 KiB of all headers together. */
export const apiKeyBytesMax = 4_096;
/** A semver range given by a caller. */
export const constraintCharactersMax = 256;
/** Icon of a registry entry: larger ones are pictures. */
export const iconBytesMax = 256 * 1024;
/** How long a client may show an icon without asking again. */
export const iconFreshSeconds = 86_400;
/** Labels, ids and other short texts of requests: they become keys of indexes. */
export const labelCharactersMax = 1_024;
/** URLs given by callers: what browsers and servers agree on. */
export const urlCharactersMax = 8_192;
