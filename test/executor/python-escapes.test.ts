/** Python programs that want out, or mean harm to their neighbours: by class, each beside an innocent run. */
import { createServer } from "node:net";
import { expect, it } from "vitest";
import { ending, errorOf, megabyte, runProgram } from "./program.ts";
import { describePython } from "./python-machine.ts";

/** Each tries one thing and gives what came of it; none may give anything but an error. */
const denied: readonly (readonly [title: string, code: string])[] = [
  ["reading a file of the machine", "open('/etc/passwd').read()"],
  ["reading a file by a way around", "open('/usr/lib/python3.11/../../../etc/passwd').read()"],
  ["reading its own environment", "open('/proc/self/environ').read()"],
  ["reading the memory of others", "open('/proc/1/mem', 'rb').read(1)"],
  ["reading a device", "open('/dev/sda', 'rb').read(1)"],
  ["reading the server's code", "open('/work/main/package.json').read()"],
  ["listing homes", "os.listdir('/home')"],
  ["listing /usr/local", "os.listdir('/usr/local')"],
  ["writing a file", "open('/x', 'w')"],
  ["writing a file where there is room", "open('/run/x', 'w')"],
  ["writing a temporary file", "__import__('tempfile').NamedTemporaryFile()"],
  ["creating a file by number", "os.open('/run/x', os.O_CREAT | os.O_RDWR)"],
  ["appending to a library", "open(json.__file__, 'a')"],
  ["making a folder", "os.mkdir('/run/x')"],
  ["removing the socket", "os.unlink('/run/troupe')"],
  ["making a link", "os.symlink('/', '/run/x')"],
  ["an internet socket", "socket.socket()"],
  ["a local socket", "socket.socket(socket.AF_UNIX)"],
  ["a pair of sockets", "socket.socketpair()"],
  ["a name", "socket.getaddrinfo('localhost', 80) and socket.create_connection(('localhost', 80))"],
  ["a web request", "__import__('urllib.request').request.urlopen('http://127.0.0.1:1/')"],
  ["a pipe", "os.pipe()"],
  [
    "memory shared with others",
    "__import__('multiprocessing.shared_memory').shared_memory.SharedMemory(create=True, size=10)",
  ],
  ["a file in memory", "os.memfd_create('x')"],
  ["fork", "os.fork()"],
  ["vfork and exec", "__import__('subprocess').run(['/usr/bin/python3', '-c', '1'])"],
  ["spawn", "os.posix_spawn('/usr/bin/python3', ['python3'], {})"],
  ["exec", "os.execv('/usr/bin/python3', ['python3'])"],
  ["a shell", "1 / (os.system('true') == 0)"],
  ["a thread", "__import__('threading').Thread(target=print).start()"],
  ["killing the fork server", "os.kill(1, 9)"],
  ["killing its parent", "os.kill(os.getppid(), 9)"],
  ["killing everybody", "os.kill(-1, 9)"],
  ["killing its group", "os.killpg(0, 9)"],
  ["handling signals", "__import__('signal').signal(15, print)"],
  ["blocking signals", "__import__('signal').pthread_sigmask(0, range(1, 32))"],
  ["an alarm in place of the CPU timer", "__import__('signal').setitimer(2, 0)"],
  ["raising its memory limit", "__import__('resource').setrlimit(9, (-1, -1))"],
  ["another user", "os.setuid(0)"],
  ["another root", "os.chroot('/run')"],
  ["another folder", "os.chdir('/run')"],
  ["a new namespace", "libc('unshare', 0x10000000)"],
  ["mount by ctypes", "libc('mount', b'none', b'/run', b'tmpfs', 0, None)"],
  ["ptrace by ctypes", "libc('ptrace', 16, 1, None, None)"],
  ["writing into others by ctypes", "libc('process_vm_readv', 1, None, 0, None, 0, 0)"],
  ["fork by ctypes", "libc('fork')"],
  ["clone by number", "libc('syscall', 56, 17, 0, 0, 0, 0)"],
  ["clone3 by number", "libc('syscall', 435, 0, 0)"],
  ["execve by number", "libc('syscall', 59, b'/usr/bin/python3', 0, 0)"],
  ["io_uring by number", "libc('syscall', 425, 8, 0)"],
  ["bpf by number", "libc('syscall', 321, 0, 0, 0)"],
  ["keys by number", "libc('syscall', 250, 0, 0, 0)"],
  ["userfaultfd by number", "libc('syscall', 323, 0)"],
  ["opening by a handle", "libc('syscall', 304, -100, 0, 0)"],
  ["openat2 by number", "libc('syscall', 437, -100, b'/run/troupe', 0, 24)"],
  ["the old open by number", "libc('syscall', 2, b'/run/x', 66, 511)"],
  ["a call of the x32 table", "libc('syscall', 0x40000000 + 57)"],
  ["signals through its descriptor", "__import__('fcntl').fcntl(3, 8, 1)"],
  ["a second filter", "libc('prctl', 22, 2, 0, 0, 0)"],
  ["being traced and dumped", "libc('prctl', 4, 1, 0, 0, 0)"],
];

/** `libc` raises on failure, as the calls of os do. */
const prologue = `import os, socket, json, ctypes
def libc(name, *arguments):
    result = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return result
`;

/** What ends or lasts; its end may be any, but it is one, and it is only its own. */
const harmful: readonly (readonly [title: string, code: string])[] = [
  ["leaving at once", "import os\nos._exit(0)"],
  ["leaving with a number", "import os\nos._exit(70)"],
  ["aborting", "import os\nos.abort()"],
  ["a wild pointer", "import ctypes\nctypes.string_at(0)"],
  ["writing over its own memory", "import ctypes\nctypes.memset(id(1), 255, 1000)"],
  [
    "calls of a 32-bit table",
    "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\nctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()",
  ],
  ["closing its descriptors", "import os\nos.closerange(0, 100)\nwhile True: pass"],
  ["closing its connection and computing on", "import os\nos.close(3)\nwhile True: pass"],
  ["noise to the host", "import os\nwhile True: os.write(3, b'x' * 1000)"],
  ["a huge frame", "import os\nos.write(3, b'\\xff' * 4)\nwhile True: pass"],
  ["a frame that is no JSON", "import os\nos.write(3, b'\\x00\\x00\\x00\\x01{')\nwhile True: pass"],
  [
    "a message that is not in the protocol",
    `import os\nm = b'{"type":"ready"}'\nos.write(3, len(m).to_bytes(4, "big") + m)\nwhile True: pass`,
  ],
  [
    "saying that it was stopped",
    `import os\nm = b'{"type":"ended","result":"stopped","error":""}'\nos.write(3, len(m).to_bytes(4, "big") + m)\nwhile True: pass`,
  ],
  [
    "ending twice and computing on",
    `import os\nm = b'{"type":"ended","result":"success","error":""}'\nm = len(m).to_bytes(4, "big") + m\nos.write(3, m + m)\nwhile True: pass`,
  ],
  ["half a frame and silence", "import os, time\nos.write(3, b'\\x00\\x00\\x10\\x00{')\ntime.sleep(1000)"],
  [
    "a flood of empty messages",
    `import os\nm = b'{"type":"stdout","text":""}'\nm = (len(m).to_bytes(4, "big") + m) * 1000\nwhile True: os.write(3, m)`,
  ],
  [
    "a flood of calls",
    `import os\nn = 0\nwhile True:\n    n += 1\n    m = b'{"type":"call","callId":%d,"serviceId":"a","toolId":"b"}' % n\n    os.write(3, len(m).to_bytes(4, "big") + m)`,
  ],
  [
    "a stack without end",
    "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(self): return repr(self)\nrepr(A())",
  ],
  ["a number without end", "9**9**9"],
  ["a pattern without end", "import re\nre.match('(a+)+b', 'a' * 100)"],
  ["a sort that never ends", "class A:\n    def __lt__(self, o):\n        while True: pass\nsorted([A(), A()])"],
  ["an error that never ends", "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E()"],
  ["catching everything", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"],
  ["waiting for ever", "import time\ntime.sleep(10**6)"],
  ["waiting for a tool for ever", "services.a.b()"],
];

const memoryBombs: readonly (readonly [title: string, code: string])[] = [
  ["lists", "a = []\nwhile True: a.append([])"],
  ["texts", "a = []\nwhile True: a.append('x' * 1000000 + str(len(a)))"],
  ["dicts", "a = {}\nwhile True: a[len(a)] = {}"],
  ["bytes", "a = []\nwhile True: a.append(bytearray(1000000))"],
  ["one list that doubles", "a = [1]\nwhile True: a += a"],
  ["mapped memory", "import mmap\na = []\nwhile True: a.append(mmap.mmap(-1, 1000000))"],
  ["a range made a list", "list(range(10**9))"],
  ["numbers", "a = 1 << 1000\nwhile True: a *= a"],
  ["buffers of C", "import ctypes\na = []\nwhile True: a.append(ctypes.create_string_buffer(1000000))"],
  ["local names of a function", "def f():\n    a = []\n    while True: a.append({})\nf()"],
  [
    "text printed without a line break",
    "import sys\nx = 'x' * 50000\nwhile True: sys.stdout._pieces.append(x + str(len(sys.stdout._pieces)))",
  ],
];

describePython("Python programs that mean harm", (current) => {
  it.each(denied)("%s is refused", async (_title, code) => {
    const program = `${prologue}try:\n    ${code}\nexcept Exception as e:\n    return {'error': type(e).__name__}\nreturn {'done': True}`;
    const result = await runProgram(current(), program, { stopAfterMs: 5_000 });
    expect([ending(result), result.output]).toEqual(["success", { error: expect.any(String) }]);
  });

  it.each(harmful)("%s ends that run only, once", async (_title, code) => {
    const [harm, beside] = await Promise.all([
      runProgram(current(), code, { stopAfterMs: 1_000, limits: { memoryMb: 128 } }),
      runProgram(current(), "import time\ntime.sleep(0.2)\nreturn 1"),
    ]);
    expect(harm.ends).toBe(1);
    expect(harm.ms).toBeLessThan(10_000);
    expect(beside.output).toEqual({ result: 1 });
    expect((await runProgram(current(), "return 2")).output).toEqual({ result: 2 });
  });

  it.each(memoryBombs)("a memory bomb of %s fails with an error that says memory", async (_title, code) => {
    const result = await runProgram(current(), code, { stopAfterMs: 15_000 });
    expect([ending(result), errorOf(result)]).toEqual(["memory", expect.stringContaining("64 MB")]);
  });

  it("a run with a lower limit gets less memory than one with a higher, and none more than the executor's most", async () => {
    const code = "a = [bytearray(1 << 20) for _ in range(env['n'])]\nreturn len(a)";
    const cases = [
      { memoryMb: 24, n: 40 },
      { memoryMb: 100, n: 40 },
      { memoryMb: 4_000, n: 200 },
    ];
    const results = await Promise.all(
      cases.map(({ memoryMb, n }) => runProgram(current(), code, { env: { n }, limits: { memoryMb } })),
    );
    expect(results.map(ending)).toEqual(["memory", "success", "memory"]);
  });

  it("a program that catches running out of memory may go on", async () => {
    const code =
      "a = []\ntry:\n    while True: a.append(bytearray(1000000))\nexcept MemoryError:\n    a = None\nreturn 'alive'";
    expect((await runProgram(current(), code)).output).toEqual({ result: "alive" });
  });

  it("a program that left by itself is told so", async () => {
    const result = await runProgram(current(), "import os\noutput({'a': 1})\nos._exit(7)");
    expect([ending(result), errorOf(result), result.output]).toEqual([
      "thrown",
      "The program ended its own process with exit code 7",
      { a: 1 },
    ]);
    const crashed = await runProgram(current(), "import ctypes\nctypes.string_at(0)");
    expect([ending(crashed), errorOf(crashed)]).toEqual(["executor_crashed", expect.stringContaining("SIGSEGV")]);
  });

  it("a program finds no descriptor but its own, no environment and no other process", async () => {
    const code = `import os, gc, sys
def usable(n):
    try:
        os.fstat(n)
        return True
    except OSError:
        return False
frame = sys._getframe()
while frame.f_back: frame = frame.f_back
return [[n for n in range(300) if usable(n)], dict(os.environ).get('HOME'), os.getpid() > 1, os.uname().nodename]`;
    const result = await runProgram(current(), code);
    expect(result.output).toEqual({ result: [[0, 1, 2, 3], null, true, "troupe"] });
  });

  it("what one run holds is nowhere in the memory of the next", async () => {
    const secret = `secret-${Math.random()}`;
    await runProgram(current(), "x = env['s'] * 1000\nreturn len(x)", { env: { s: secret } });
    const search = `import ctypes, gc
found = [o for o in gc.get_objects() if isinstance(o, (str, dict, list)) and o is not globals() and env['half'] + env['rest'] in repr(o)[:100000]]
return len(found)`;
    const result = await runProgram(current(), search, { env: { half: secret.slice(0, 10), rest: secret.slice(10) } });
    expect(result.output).toEqual({ result: 0 });
  });

  it("no connection reaches a listener of this machine", async () => {
    let connections = 0;
    const server = createServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const code = `import socket\nsocket.create_connection(('127.0.0.1', ${port}))`;
    expect(ending(await runProgram(current(), code))).toBe("thrown");
    expect(connections).toBe(0);
    await new Promise((resolve) => server.close(resolve));
  });

  it("a flood slows only its own run, and the server stays awake", async () => {
    const flood = `import os\nm = b'{"type":"stdout","text":""}'\nm = (len(m).to_bytes(4, "big") + m) * 1000\nwhile True: os.write(3, m)`;
    let longest = 0;
    let last = performance.now();
    const heartbeat = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    const [flooding, ...beside] = await Promise.all([
      runProgram(current(), flood, { stopAfterMs: 2_500 }),
      ...Array.from({ length: 5 }, () => runProgram(current(), "return 1")),
    ]);
    clearInterval(heartbeat);
    expect(ending(flooding)).toBe("stopped");
    expect(beside.map(({ output }) => output)).toEqual(beside.map(() => ({ result: 1 })));
    expect(longest).toBeLessThan(2_000);
  });

  it("five bombs at once leave the next program and the server's memory alone", async () => {
    const before = process.memoryUsage().rss;
    const bombs = memoryBombs.slice(0, 5).map(([, code]) => runProgram(current(), code));
    const beside = await runProgram(current(), "return 1");
    expect((await Promise.all(bombs)).map(ending)).toEqual(bombs.map(() => "memory"));
    expect([beside.output, (await runProgram(current(), "return 2")).output]).toEqual([{ result: 1 }, { result: 2 }]);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * megabyte);
  });
});
