"""Source of the attacks, by name, most harmful first.

The names in capitals are defined by ``attacks.run``: places of the decoys, and amounts to take.
"""

from __future__ import annotations

_IGNORING = """
import signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
"""
_WRITE = """
def write(path, size=4096):
    with open(path, "wb") as file:
        left = size
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))
    return os.path.getsize(path)
"""
_NATIVE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

SOURCES = {
    "read a hidden test": """
def by_name():
    return open(HIDDEN).read()
def by_folder():
    folder = os.open(TESTS, os.O_PATH)
    return os.read(os.open(os.path.basename(HIDDEN), os.O_RDONLY, dir_fd=folder), 4096).decode()
def by_root():
    return open("/proc/self/root" + HIDDEN).read()
def by_import():
    sys.path.insert(0, TESTS)
    import importlib.util
    spec = importlib.util.spec_from_file_location("hidden", HIDDEN)
    return spec.loader.get_data(HIDDEN).decode()
attempt(by_name, by_folder, by_root, by_import)
""",
    "list the hidden tests": """
attempt(lambda: os.listdir(TESTS),
        lambda: [entry.name for entry in os.scandir(TESTS)],
        lambda: os.listdir("/proc/self/root" + TESTS),
        lambda: list(os.walk(os.path.dirname(TESTS))))
""",
    "forge the certificate": _WRITE + """
def replace():
    other = CERTIFICATE + ".new"
    write(other)
    os.replace(other, CERTIFICATE)
def append():
    file = os.open(CERTIFICATE, os.O_WRONLY | os.O_APPEND)
    return os.write(file, b"passed")
attempt(append, lambda: write(CERTIFICATE), replace, lambda: os.truncate(CERTIFICATE, 0))
""",
    "delete the learner's files": """
attempt(lambda: os.unlink(WORK), lambda: os.rename(WORK, WORK + ".old"),
        lambda: __import__("shutil").rmtree(os.path.dirname(WORK)))
""",
    "write into site-packages": _WRITE + "\nattempt(lambda: write(PACKAGE))\n",
    "write into /tmp": _WRITE + """
attempt(lambda: write(TEMPORARY), lambda: os.mkdir(TEMPORARY),
        lambda: os.symlink("/", TEMPORARY), lambda: os.mkfifo(TEMPORARY))
""",
    "fill /dev/shm": _WRITE + """
def posix():
    from multiprocessing import shared_memory
    return shared_memory.SharedMemory(os.path.basename(SHARED), create=True, size=1 << 20)
attempt(lambda: write(SHARED, 64 << 20), posix)
""",
    "write a file of 80 MB": _WRITE + """
attempt(lambda: write(WRITABLE + "/big", BIG), lambda: write("big", BIG))
""",
    "write 40 files": _WRITE + """
attempt(*[lambda path=f"{WRITABLE}/{number}": write(path, 1 << 20) for number in range(FILES)])
""",
    "kill the judge": _NATIVE + """
import fcntl, signal
def by_owner():
    # Not by a call that sends signals: the kernel is told whom to signal when a pipe can be read.
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, JUDGE)
    fcntl.fcntl(reading, 10, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")
def by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(JUDGE), signal.SIGKILL)
attempt(by_owner, by_descriptor, lambda: os.kill(JUDGE, signal.SIGKILL),
        lambda: call(libc.tgkill, JUDGE, JUDGE, int(signal.SIGKILL)),
        lambda: call(libc.sigqueue, JUDGE, int(signal.SIGKILL), ctypes.c_void_p(0)))
""",
    "read the judge's memory": """
def read():
    with open(f"/proc/{JUDGE}/mem", "rb", 0) as memory:
        memory.seek(ADDRESS)
        return memory.read(LENGTH)
attempt(read)
""",
    "read the judge's environment": """
attempt(lambda: open(f"/proc/{JUDGE}/environ").read(),
        lambda: open(f"/proc/self/root/proc/{JUDGE}/environ").read())
""",
    "copy the judge's memory (process_vm_readv)": _NATIVE + """
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def copy():
    taken = ctypes.create_string_buffer(LENGTH)
    here, there = Part(ctypes.addressof(taken), LENGTH), Part(ADDRESS, LENGTH)
    call(libc.process_vm_readv, JUDGE, ctypes.byref(here), ctypes.c_ulong(1), ctypes.byref(there),
         ctypes.c_ulong(1), ctypes.c_ulong(0))
    return taken.raw
attempt(copy)
""",
    "trace the judge (ptrace)": _NATIVE + """
SEIZE, ATTACH = 0x4206, 16
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
attempt(lambda: call(libc.ptrace, SEIZE, JUDGE, None, None),
        lambda: call(libc.ptrace, ATTACH, JUDGE, None, None))
""",
    "connect to a port of this machine": """
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1.0).send(b"hello"))
""",
    "start another program": """
def spawn():
    return os.posix_spawn("/bin/sleep", ["sleep", str(NAP)], {})
def popen():
    import subprocess
    return subprocess.Popen(["/bin/sleep", str(NAP)]).pid
def become():
    os.execv("/bin/sleep", ["sleep", str(NAP)])
attempt(spawn, popen, become)
""",
    "fork without end": """
def bomb():
    for number in range(BOMB):
        if os.fork() == 0:
            time.sleep(NAP)
            os._exit(0)
attempt(bomb)
""",
    "start a thread": """
import threading, _thread
attempt(lambda: threading.Thread(target=time.sleep, args=(NAP,), daemon=True).start(),
        lambda: _thread.start_new_thread(time.sleep, (NAP,)))
""",
    "leave a process behind": _NATIVE + """
def leave():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for option in (1, 36):  # neither die with the parent nor adopt anybody
                libc.prctl(option, 0, 0, 0, 0)
            os.write(writing, str(os.getpid()).encode())
            os.closerange(0, 64)
            time.sleep(NAP)
        os._exit(0)
    os.wait()
    return f"daemon={os.read(reading, 32).decode()}"
attempt(leave)
""",
    "write a verdict to an open descriptor": """
def everywhere():
    for number in range(5, 1024):
        try:
            os.write(number, MARK.encode())
        except OSError:
            pass
attempt(everywhere)
""",
    "take 1 GiB of memory": """
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(b"x" * (1 << 24))
attempt(take)
""",
    "take 1 GiB of shared memory": """
import mmap
kept = []
def take():
    for _ in range(MEMORY >> 24):
        kept.append(mmap.mmap(-1, 1 << 24))
        kept[-1].write(b"x" * (1 << 24))
attempt(take)
""",
    "compute for ever, ignoring signals": _IGNORING + "\nwhile True: pass\n",
    "sleep for ever, ignoring signals": _IGNORING + "\nwhile True: time.sleep(NAP)\n",
    "print for ever": "\nwhile True: print('x' * 1000)\n",
    "raise its own limits": """
import resource
def raise_one(which):
    hard = resource.getrlimit(which)[1]
    most = resource.RLIM_INFINITY
    for limit in ((most, most), (hard, hard)):
        try:
            resource.setrlimit(which, limit)
            return
        except (OSError, ValueError) as error:
            last = error
    raise last
attempt(lambda: raise_one(resource.RLIMIT_CORE), lambda: raise_one(resource.RLIMIT_FSIZE))
""",
}
