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
/** All JSON Pointers into them together, in characters. */
export const settingsPathsCharactersMax = 16 * 1024 * 1024;
/** Problems of one value named in an error; the rest is counted. */
export const schemaProblemsMax = 20;
/** A foreign JSON Schema as text; the largest real configuration schemas are some 100 KiB. */
export const schemaCharactersMax = 1024 * 1024;
/** Nesting of a foreign JSON Schema. */
export const schemaDepthMax = 128;
/** Subschemas once every `$ref` is followed: thirty that each refer twice to the next would be a thousand million checks. */
export const schemaUnfoldedMax = 200_000;
/** Subschemas of a schema that is compiled on the event loop: each takes some 0.2 ms there, once, and more where all are branches of one. */
export const schemaSubschemasMax = 4_000;
/** Steps a schema may make of one value on the event loop: a scalar against a subschema is one, a container ten; some 100 ns each. */
export const schemaEffortMax = 1_000_000;
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
/** An adapter that was replaced or disabled is closed after this: calls in flight end within it or not at all. */
export const adapterRetireMs = 60_000;
/** A module version that keeps crashing within this long of taking over is gone back from by itself. */
export const moduleProbationMs = 600_000;

/** Heap of a third-party module's process, MiB; what it holds outside the heap is fenced at the same size and this much more. */
export const moduleMemoryMb = 256;
export const moduleMemorySlackMb = 128;
/** From start to set up: 0.1 s alone, several on a busy machine; a module that never answers keeps a place among those that start. */
export const moduleStartMs = 15_000;
/** Module processes that start at once, so that five hundred modules do not start in one moment. */
export const moduleStartsMax = 3;
/** A module process is asked for a sign of life this often while it has work, and ended when none came for so long. */
export const modulePingMs = 2_000;
export const moduleUnresponsiveMs = 10_000;
/** A module process without work is ended after this and started again for the next call. */
export const moduleIdleMs = 300_000;
/** Module processes alive at once, 40 to 60 MiB each: of more modules those that were not used longest are started again when they are. */
export const moduleProcessesMax = 32;
/** Starts that wait for one of them to become idle, and for how long: less than any call has, so that callers learn why. */
export const moduleProcessStartsWaitingMax = 256;
export const moduleProcessWaitMs = 8_000;
/** A module process told to leave gets this long. */
export const moduleLeaveMs = 1_000;
/** A call waits for a restart that is at most this far away; else it is answered `unavailable` at once. */
export const moduleRestartWaitMs = 2_000;
/** Calls of one module in flight, waiting for its start included. */
export const moduleCallsMax = 256;
/** Fetches of one module in flight: their bodies are in the memory of the server. */
export const moduleFetchesMax = 32;
/** One message of a module: a body of `toolAnswerBytesMax` in base64 and its envelope. */
export const moduleFrameBytesMax = 15 * 1024 * 1024;
/** Nesting of a message: a tool's answer of `toolAnswerDepthMax` and its envelope. */
export const moduleFrameDepthMax = 520;
/** What the host reads from one module in a second; it waits with the rest, so a flood slows only its own module. */
export const moduleFramesPerSecondMax = 10_000;
export const moduleFrameBytesPerSecondMax = 16 * 1024 * 1024;
export const modulePrintedBytesPerSecondMax = 4 * 1024 * 1024;
/** Bytes waiting for a module that does not read. */
export const moduleBytesWaitingMax = 64 * 1024 * 1024;
/** Lines a module may add to the log in a second, and the characters kept of each. */
export const moduleLogLinesPerSecondMax = 50;
export const moduleLogLineCharactersMax = 1_000;
/** Characters kept of an error that a module throws. */
export const moduleErrorCharactersMax = 1_000;
/** Tools of one service of a third-party adapter: every schema of them is compiled once to prove it. */
export const moduleToolsMax = 10_000;
/** Ids and names in a definition, and summaries and descriptions in it. */
export const moduleNameCharactersMax = 1_024;
export const moduleTextCharactersMax = 64 * 1024;
/** Markdown that an environment writes for agents. */
export const moduleDocsCharactersMax = 256 * 1024;
/** Plans of third-party adapters kept parsed, in characters of their text. */
export const modulePlansCachedCharactersMax = 32 * 1024 * 1024;
/** Proving the schemas of a definition gives way to other work after this. */
export const moduleSchemasSliceMs = 10;
/** Installing or updating a module: the download, its proof, and what is made of it. Reloading all of them gets as much. */
export const moduleInstallMs = 120_000;
/** Services of one adapter made again at once, when another version of it takes over. */
export const moduleServicesAtOnce = 4;
/** Modules put in service at once at a start or reload. */
export const modulesStartedAtOnce = 8;
/** Modules and services updated at once by the sweep. */
export const updatesAtOnce = 4;
/** Share of the interval by which sweeps are moved, so that many servers do not ask a registry in the same second. */
export const sweepJitter = 0.1;
/** One update of the sweep, download and health check included. */
export const updateMs = 180_000;

/** Lists inside lists of one GraphQL type: real schemas have two; each level is a step of a recursion. */
export const graphqlListDepthMax = 16;
/** Fields a GraphQL tool selects by itself: an agent reads the answer, and each field is work for the target. */
export const graphqlDefaultFieldsMax = 100;
/** Types of a union or interface that get a fragment of their own by default; beyond it only common fields are selected. */
export const graphqlDefaultFragmentsMax = 10;
/** Levels of the default selection a configuration may ask for. */
export const graphqlDefaultDepthMax = 6;
/** A caller's own selection: its text, its fields (merging them is quadratic), and its nesting. */
export const graphqlSelectCharactersMax = 16 * 1024;
export const graphqlSelectFieldsMax = 500;
export const graphqlSelectDepthMax = 12;
/** Input schema of one GraphQL tool, in characters; input types beyond it are left open, and the target checks them. */
export const graphqlInputSchemaCharactersMax = 256 * 1024;
/** GraphQL schemas kept parsed in the worker, by characters of their text (some twenty bytes of heap each). */
export const graphqlSchemasCachedCharactersMax = 16 * 1024 * 1024;
/** Tools kept ready to be called, over all GraphQL services, by characters of their schemas; and selections of callers. */
export const graphqlToolsReadyCharactersMax = 16 * 1024 * 1024;
export const graphqlSelectionsReadyMax = 256;
/** Description of one part of a GraphQL tool's schemas: enough to use it. */
export const graphqlDescriptionCharactersMax = 1_000;
/** A module package, as downloaded (decisions: 10 MiB). */
export const packageBytesMax = 10 * 1024 * 1024;
/** What its files hold together (decisions: 50 MiB), and how many files and folders: a module with its dependencies has some hundreds. */
export const packageUnpackedBytesMax = 50 * 1024 * 1024;
export const packageEntriesMax = 5_000;
/** The archive as a stream: each entry has a header, padding, and perhaps a second header of the same size. */
export const packageStreamBytesMax = packageUnpackedBytesMax + packageEntriesMax * 2_048;
/** Unpacking one: 3 s for the most files allowed, some 15 s while the disk is busy. */
export const packageUnpackMs = 60_000;
/** Packages added at once, and others that wait with their archive in memory: 320 MiB at most. A wait ends with the unpacking before it. */
export const packagesAddedAtOnce = 4;
export const packagesWaitingMax = 28;
/** Path of a file within its package, in bytes and folders: half of what may be left of a path under our own folder, and far above real ones. */
export const packagePathBytesMax = 512;
export const packagePathDepthMax = 32;
/** One name in a path: what file systems take. */
export const packageNameBytesMax = 255;
/** package.json: real ones are under 4 KiB. */
export const packageManifestBytesMax = 64 * 1024;
/** Id of a module: a folder name and, for adapters, a name in requests. As long as a service id. */
export const moduleIdCharactersMax = 128;
/** Our list of a package's files: `packageEntriesMax` paths at most, each with size and digest. */
export const packageSealBytesMax = 4 * 1024 * 1024;
/** Files of one package read or synced at once: half of the threads Node has for it, since the store writes through the same ones. */
export const packageFilesTogetherMax = 2;
/** Tries to put an unpacked package in its place while others add and remove the same one. */
export const packagePlacingsMax = 5;

/** Room above a Python run's memory for what the run itself needs: frames, copies of strings, libraries that are loaded late. */
export const pythonSlackMb = 8;
/** Messages that the host reads from one run in a second; it waits with the rest, so a flood slows only its own run. */
export const runFramesPerSecondMax = 20_000;

/** A set of protobuf descriptors: in base64 it still fits a definition document. All of Google's public APIs take some 15 MiB. */
export const grpcDescriptorBytesMax = 20 * 1024 * 1024;
/** Files of one set, and services a target may list: all of Google's public APIs are some 8,000 files. */
export const grpcFilesMax = 10_000;
export const grpcServicesMax = 10_000;
/** Asking a target by reflection, connection included: one round trip for each file with services, on a slow line. */
export const grpcReflectionMs = 20_000;
/** One answer of a reflection service: some send every file a service needs at once. */
export const grpcReflectionAnswerBytesMax = 8 * 1024 * 1024;
/** Input or output schema of one gRPC tool, in characters; message types beyond it are left open, and the target checks them. */
export const grpcSchemaCharactersMax = 256 * 1024;
/** Description of one part of a gRPC tool's schemas: enough to use it. */
export const grpcDescriptionCharactersMax = 1_000;
/** Messages taken of one server stream, unless configured, and what may be configured. */
export const grpcMessagesDefault = 1_000;
export const grpcMessagesMax = 10_000;
/** Reading the answer of one call: 10 MiB of small messages take some two seconds. */
export const grpcDecodeMs = 10_000;
/** Larger answers of gRPC targets are read in a worker of their own, so that they delay nobody else's: this much takes at most 0.2 s. */
export const grpcSmallAnswerBytesMax = 256 * 1024;
/** Messages inside `Any` inside `Any`: real ones have two. */
export const grpcAnyDepthMax = 16;
/** Text of a target's error status that is passed on. */
export const grpcStatusCharactersMax = 1_000;
/** Waits between tries to reach a target again (doubling); calls meanwhile fail at once. */
export const grpcReconnectMinMs = 100;
export const grpcReconnectMaxMs = 5_000;
/** A connection without calls is closed after this, before load balancers and NAT forget it. */
export const grpcIdleMs = 60_000;
/** Descriptor sets kept parsed in the worker, by characters of their plans (some ten bytes of heap each). */
export const grpcPlansCachedCharactersMax = 32 * 1024 * 1024;
/** Tools a gRPC service keeps ready. */
export const grpcToolsReadyMax = 256;
/** Heap of the worker that checks parameters of all adapters but openapi, MiB: the compiled checks it keeps take some 100. */
export const parameterCheckMemoryMb = 512;
/** A tool's schema that cannot be compiled is refused without another try for this long, so that it does not hold up the checks of others. */
export const schemaRefusalKeptMs = 60_000;
export const schemaRefusalsKeptMax = 1_000;
/** Schemas beyond this weight (characters and nodes) take half a second or more to compile: they wait for each other only. */
export const quickSchemaWeightMax = 64 * 1024;
/** And so do those that have not compiled after this. */
export const schemaCompileQuickMs = 2_000;
/** Schemas known to be slow. */
export const slowSchemasKnownMax = 10_000;
/** Weight of the schemas whose compiled checks a worker keeps: each character takes some 60 bytes of its heap. */
export const parameterChecksCachedWeightMax = 2 * 1024 * 1024;
/** Calls waiting for each worker that checks parameters: the schemas of ten large servers, each called at once. */
export const parameterChecksWaitingMax = 4_096;
/** The workers for large schemas and for those that hung are ended after this without work. */
export const parameterWorkerIdleMs = 300_000;
/** Reaching an MCP server: a process that starts, or a connection, and the handshake. Interpreters with many libraries take some seconds. */
export const mcpConnectMs = 15_000;
/** Asking an MCP server for all its tools, connection included. */
export const mcpDiscoveryMs = 20_000;
/** Telling an MCP server something that has no answer: a cancellation, the end of a session. */
export const mcpNoticeMs = 5_000;
/** Tools of one MCP server, and pages they may come in: the largest real ones have some 500 tools. */
export const mcpToolsMax = 10_000;
export const mcpPagesMax = 200;
/** One page of a tool list, and all that is kept of a list, in characters: 500 tools with large schemas take some 2 MiB. */
export const mcpPageBytesMax = 8 * 1024 * 1024;
export const mcpToolListCharactersMax = 8 * 1024 * 1024;
/** Name of a tool: the protocol advises 128. */
export const mcpToolNameCharactersMax = 256;
/** Description of a tool or server: it is stored with the list of tools and read by agents. */
export const mcpDescriptionCharactersMax = 16 * 1024;
/** Words of an MCP server that are passed on in an error. */
export const mcpErrorCharactersMax = 500;
/** Plans of MCP services kept parsed, by characters of their text. */
export const mcpPlansCachedCharactersMax = 32 * 1024 * 1024;
/** Waits between tries to reach an MCP server again (doubling, the first at once); calls meanwhile fail at once. */
export const mcpReconnectMinMs = 200;
export const mcpReconnectMaxMs = 5_000;
/** MCP servers running as processes of ours at once: real ones take 30 to 200 MiB each. */
export const mcpProcessesMax = 64;
/** Arguments and environment variables of such a process. */
export const mcpArgumentsMax = 256;
/** Such a process whose input was closed gets this long to leave. */
export const mcpLeaveMs = 2_000;
/** One message of such a process: a tool's answer and its envelope. */
export const mcpLineBytesMax = toolAnswerBytesMax + 64 * 1024;
/** Messages read from it in a second; the rest waits, so that a flood slows only itself. */
export const mcpMessagesPerSecondMax = 2_000;
/** The handshake's answer: names, versions, capabilities, and instructions. */
export const mcpHandshakeBytesMax = 256 * 1024;
/** Values in one answer of an MCP server, and different names in it: the most that is read within some 100 ms. Three times the largest lists of tools. */
export const mcpValuesMax = 200_000;
export const mcpNamesMax = 20_000;
/** Lines of an answer sent as events, and events among them that could be the response. */
export const mcpEventLinesMax = 100_000;
export const mcpEventsReadMax = 1_000;
/** Between two log lines about changed tools, of one service. */
export const mcpToolsChangedQuietMs = 60_000;
/** Lines on its standard output that are no messages: some servers greet; one that goes on is no MCP server. */
export const mcpStrayLinesMax = 100;
/** Bytes waiting for it while it does not read. */
export const mcpBytesWaitingMax = 16 * 1024 * 1024;
/** Lines of its standard error that go to the log in a second, and the characters kept of each. */
export const mcpLogLinesPerSecondMax = 20;
export const mcpLogLineCharactersMax = 1_000;
/** Callers that one route counts at a time; more push out those whose windows end first. */
export const rateLimitedCallersMax = 1_000;
/** Addresses whose failed attempts to authenticate are counted at a time, and how many each may make in a minute. */
export const failedAuthenticationAddressesMax = 10_000;
export const failedAuthenticationsPerMinute = 30;
/** Addresses remembered as places from which a key came before: failures of others there do not keep it out. */
export const addressesPerKeyMax = 1_000;

/** A comment keeps idle event streams open through proxies. */
export const eventStreamHeartbeatMs = 15_000;
/** A follower that takes nothing for so long, while events wait for it, is dropped. */
export const eventStreamStalledMs = 30_000;

/** How long an Idempotency-Key stands for its first answer, how many are kept (the oldest go first), and how they are looked through. */
export const idempotencyKeepMs = 24 * 3_600_000;
export const idempotencyNotesMax = 1_000_000;
export const idempotencyPageMax = 1_000;
export const idempotencySweepMs = 60_000;

/** What is kept of the events of one run, as JSON text: the rest of what it printed is in stdout and stderr. */
export const recordingBytesMax = 1024 * 1024;
/** Counted for each event beside its text, so that a million single characters are not a hundred times their size in memory. */
export const recordedEventBytes = 64;
/** Text of one event; longer text is several events, so that a follower never has to take much at once. */
export const recordedTextCharactersMax = 16 * 1024;
/** Event streams open on one face at once; each takes some 50 KiB with its connection, and calls must still find connections. */
export const eventStreamsMax = 5_000;
/** Of a run that has ended, a follower has so much in memory at a time, however slowly it reads. */
export const recordedStretchCharactersMax = 128 * 1024;
/** JSON text of ended runs that is kept parsed for their followers: eight of the longest. Beyond, each stretch reads its run again. */
export const endedRecordingsCharactersMax = 8 * recordingBytesMax;

/** Text of one MCP result: a model reads some 60,000 words of it at most. */
export const mcpTextCharactersMax = 256 * 1024;
/** Description of a tool in a list of search results: enough to choose by. */
export const mcpFoundDescriptionCharactersMax = 500;
/** Seconds that run_process waits unless told otherwise: half of what MCP clients wait for an answer. */
export const mcpWaitSeconds = 30;
/** Progress of a run is told this often at most, and after this much silence even when there is nothing new. */
export const mcpProgressMs = 1_000;
export const mcpSilenceMs = 10_000;
/** Newly printed text in one progress message: its end. */
export const mcpProgressCharactersMax = 500;
/** Tool calls of all MCP clients in flight: most wait for runs, some 30 KiB each. */
export const mcpCallsInFlightMax = 2_000;
/** Messages of one `troupe mcp` in flight; then it reads no further. */
export const mcpProxyInFlightMax = 256;
/** After its stdin has closed, `troupe mcp` still passes on answers for this long. */
export const mcpProxyLeaveMs = 1_000;
/** An answer to `troupe mcp`: a batch of the largest results, twice each (text and structured). */
export const mcpProxyAnswerCharactersMax = 64 * 1024 * 1024;

/** Spans waiting for the collector, whatever OTEL_BSP_MAX_QUEUE_SIZE says: some 20 MiB at worst. */
export const spansQueuedMax = 16_384;
/** Text of one attribute of a span: ids and names are shorter. */
export const spanAttributeCharactersMax = 1_024;
/** The log says at most once in this time that traces are not taken. */
export const tracesComplaintMs = 60_000;
/** At the end the traces still waiting are sent, for at most this long: the collector may be away. */
export const tracesFlushMs = 2_000;

/** Log records in memory: those not yet on disk, and what followers have just seen. The oldest go first, kept or not. */
export const logRecordsHeldMax = 10_000;
/** And their size, by characters: errors with long stacks come in storms. */
export const logCharactersHeldMax = 16 * 1024 * 1024;
/** A record waits this long for others to share a write, and followers are told of new ones as seldom. */
export const logWriteMs = 200;
export const logTellMs = 50;
/** Records in one write. */
export const logRecordsWrittenMax = 1_000;
/** Records removed in one write, when there are more than are kept. */
export const logRecordsRemovedMax = 1_000;
/** Waits between tries to write log records again (doubling). */
export const logRetryMinMs = 1_000;
export const logRetryMaxMs = 30_000;
/** The last records get this long to be written when the server ends. */
export const logCloseMs = 2_000;
/** Log records read at once while a filter leaves many out, and for one page; then a short page with a cursor is answered. */
export const logStretchRecords = 500;
export const logRecordsReadMax = 20_000;
/** A clock may have been set back by this much without records being looked for at the wrong place. */
export const logClockStepMs = 3_600_000;

/** Nesting of a protobuf message: one level of JSON takes three (Value, Struct, map entry) in the binary form of google.protobuf.Struct. */
export const rpcRecursionMax = jsonDepthMax * 3 + 16;

/** Read of a snapshot of the store at once: some milliseconds of the event loop, and what a backup holds beside a chunk. */
export const snapshotStretchBytes = 256 * 1024;
export const snapshotEntriesTogetherMax = 1_000;
/** One message of a backup, far below what any gRPC client takes. */
export const backupChunkBytesMax = 256 * 1024;
/** Whoever takes nothing of a backup for so long, or needs so long for all of it, has it cut: the disk keeps what is overwritten meanwhile. */
export const backupStalledMs = 60_000;
export const backupMsMax = 12 * 3_600_000;
/** Backups and proofs of the store under way at once: each reads the disk from end to end. */
export const maintenanceAtOnceMax = 2;
/** Bytes of a header or of a key in a backup; beyond it a file is none of ours. */
export const backupHeaderBytesMax = 1024 * 1024;
export const backupKeyBytesMax = 64 * 1024;
/** A restored store is written in batches of so much. */
export const restoreBatchBytes = 4 * 1024 * 1024;
/** Findings told one by one; the rest is counted. */
export const verifyFindingsMax = 1_000;
/** Progress of a proof, and of a drain, is told this often. */
export const maintenanceProgressMs = 1_000;
/** A table that looks damaged is looked at again so often: LevelDB may be writing it in this moment. */
export const tableProofAttemptsMax = 4;
export const tableProofRetryMs = 500;
/** A drain is told to be over this long before what is left is cut, so that its caller hears of it. */
export const drainTellMs = 250;
/** A drain looks this often whether anything still runs. */
export const drainPollMs = 50;
/** Work of a proof between two turns of the event loop. */
export const verifyTurnMs = 5;

/** A chain, or a bundle of authorities: the usual bundle of all public ones has 230 KiB. */
export const tlsFileBytesMax = 1024 * 1024;
/** Renewed certificate files are found so soon; a look reads three small files. */
export const tlsLookMs = 5_000;
/** The end of a certificate is told of in its last tenth, at most two weeks before, once a day: whoever renews by machine never hears of it. */
export const tlsExpiryWarnMs = 14 * 86_400_000;
export const tlsExpiryWarnShare = 0.1;
export const tlsExpiryRepeatMs = 86_400_000;

/** An operator who restarts an actor is told what became of it, when its record is read within so long; looked at this often. */
export const actorRestartWaitMs = 2_000;
export const actorRestartPollMs = 10;

/** Recent changes of the node in memory, from the first watcher on: those who come back find where they left for so many. */
export const changesHeldMax = 20_000;
/** And their size, by characters: labels and errors of processes. */
export const changesCharactersMax = 16 * 1024 * 1024;
/** Watchers are told of changes as seldom: a burst wakes each of them once. */
export const changesTellMs = 20;
/** Numbers that are marked in the store as used before they are: one write for so many changes. */
export const changeNumbersReserved = 1_000_000;
/** A snapshot at the begin of a stream is one message, which every client takes (grpc-js: 4 MiB): so many processes, and characters. */
export const snapshotProcessesMax = 500;
export const snapshotCharactersMax = 1024 * 1024;
/** Registries, services, modules, and processes at work, in a snapshot of the node. */
export const snapshotSubjectsMax = 5_000;
/** Reads of a snapshot while more changes than are held come in between; then the caller is to try again. */
export const snapshotReadsMax = 3;

/** Certificates that are made are valid from a little before: clocks of two machines differ. */
export const certificateBackdateMs = 5 * 60_000;
/** Of a server and its clients, unless told otherwise, and at most: the authority's own ten years. */
export const certificateDaysDefault = 365;
export const certificateDaysMax = 3_650;
/** Names in one server certificate, and clients made at once: a key takes a tenth of a second. */
export const certificateNamesMax = 100;

/** A large answer that its caller has not taken by then is given up: its bytes are in memory meanwhile. */
export const answerTakenMs = 30_000;
/** Who leaves more than this untaken gets no further call in: enough for four of the largest answers at once over a slow line. */
export const untakenAnswerBytesMax = 64 * 1024 * 1024;

/** A caller that goes on being refused has one line in the log for so long: an operator sees it within a minute, and a flood stays small. */
export const refusalsTellMs = 60_000;
/** Refused callers told apart meanwhile: more names than anybody reads, and few enough that a flood from everywhere is a page of log. */
export const refusedCallersToldMax = 100;
/** A connection of HTTP/2 from which nothing came for so long is asked whether anybody is there, and cut when no answer comes in time. */
export const sessionQuietMs = 60_000;
export const sessionPingAnsweredMs = 20_000;
/** After so long without a word of its own a client is told to come again: its place may be wanted by others. */
export const sessionIdleMs = 10 * 60_000;
/** A service whose target fails has one line in the log in this time, and so many services are told apart in it. */
export const failingServiceTellMs = 60_000;
export const failingServicesToldMax = 100;
