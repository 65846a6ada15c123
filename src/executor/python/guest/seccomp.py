"""The system calls that are left to a program: what memory, time, reading and one pipe need. All others answer "not permitted".

A list of what is allowed, so that a call that a later kernel adds is refused without anybody having heard of it. The filter
looks at numbers only: what can be opened is decided by the mount namespace, in which nothing is writable.
"""
import ctypes
import os

# name: (x86_64, aarch64); None where the architecture has no such call.
ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "futex": (202, 98),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "close": (3, 57),
    "newfstatat": (262, 79),
    "fstat": (5, 80),
    "stat": (4, None),
    "lstat": (6, None),
    "statx": (332, 291),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "getdents64": (217, 61),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "getcwd": (79, 17),
    "getrandom": (318, 278),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "restart_syscall": (219, 128),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "times": (100, 153),
    "uname": (63, 160),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
OPENAT = (257, 56)
FCNTL = (72, 25)
IOCTL = (16, 29)
# Write only, read and write, create, truncate, temporary file: the same bits on both architectures.
OPEN_TO_WRITE = 0o3 | 0o100 | 0o1000 | 0o20000000
F_GETFD, F_GETFL = 1, 3

# Value of AUDIT_ARCH, so that numbers cannot be taken from another table (32-bit calls).
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW, KILL = 0x7FFF0000, 0x80000000
NOT_PERMITTED, NOT_A_TERMINAL = 0x00050000 | 1, 0x00050000 | 25

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]


def build():
    """The filter as the kernel takes it. Raises KeyError on an architecture without a table."""
    column, architecture = ARCHITECTURES[os.uname().machine]
    code = [(LOAD, 0, 0, ARCHITECTURE_AT), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER_AT)]
    for numbers in ALLOWED.values():
        if numbers[column] is not None:
            code += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ALLOW)]
    code += [
        (EQUAL, 0, 4, OPENAT[column]),
        (LOAD, 0, 0, ARGUMENTS_AT + 2 * 8),
        (ANY_BIT, 0, 1, OPEN_TO_WRITE),
        (RETURN, 0, 0, NOT_PERMITTED),
        (RETURN, 0, 0, ALLOW),
        # Setting an owner of a descriptor would be a way to send signals.
        (EQUAL, 0, 5, FCNTL[column]),
        (LOAD, 0, 0, ARGUMENTS_AT + 1 * 8),
        (EQUAL, 2, 0, F_GETFD),
        (EQUAL, 1, 0, F_GETFL),
        (RETURN, 0, 0, NOT_PERMITTED),
        (RETURN, 0, 0, ALLOW),
        # Opening a file asks whether it is a terminal: nothing is.
        (EQUAL, 0, 1, IOCTL[column]),
        (RETURN, 0, 0, NOT_A_TERMINAL),
        (RETURN, 0, 0, NOT_PERMITTED),
    ]
    instructions = (Instruction * len(code))(*code)
    return Program(len(code), instructions)


_prctl = ctypes.CDLL(None, use_errno=True).prctl


def install(program):
    """For this process, for good. Raises OSError: then nothing may run."""
    _call(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    _call(PR_SET_SECCOMP, ctypes.c_ulong(FILTER_MODE), ctypes.byref(program))


def _call(option, *arguments):
    rest = [ctypes.c_ulong(0)] * (4 - len(arguments))
    if _prctl(ctypes.c_int(option), *arguments, *rest) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")
