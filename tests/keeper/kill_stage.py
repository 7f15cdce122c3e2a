"""The stage of kill_at_each_syscall: a keeper, brokers one after the
other, tenants, and all that goes on beside them."""
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE = 120
GUARANTEES = {"a": 24, "b": 16, "c": 12}  # in MiB
MIB = 1 << 20
# Of a tenant that was told of an error, and has found no wrong byte.
TOLD = 5


class Wrong(Exception):
    pass


def await_that(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise Wrong(f"not within {PATIENCE} s: {what}")
        time.sleep(0.01)


class Stage:
    """A keeper, and brokers one after the other, below one directory."""

    def __init__(self, build, steps, seed):
        self.build = build
        self.steps = steps
        self.seed = seed
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gmb-kill-"))
        self.keeper_socket = self.directory / "keeper" / "keeper.sock"
        self.running = []
        self.brokers = {}  # by name: the process, and whether it is the tracer's
        self.keepers = 0
        self.file = self.directory / "gmb.yaml"
        self.write_file(1)
        self.start_keeper()

    def write_file(self, weight):
        tenants = [f"  - name: {name}\n    guarantee: {given}MiB\n    weight: {weight}\n"
                   for name, given in GUARANTEES.items()]
        self.file.write_text("tenants:\n" + "".join(tenants) + "  - name: d\n", encoding="ascii")

    def start(self, name, words):
        with open(self.directory / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
        self.running.append(process)
        return process

    def log(self, name):
        return (self.directory / f"{name}.log").read_bytes()

    def says(self, name, word):
        """How often a program has said that."""
        return self.log(name).count(word)

    def start_keeper(self, *flags):
        self.keepers += 1
        name = f"keeper-{self.keepers}"
        keeper = self.start(name, [self.build / "bin/gmb-keeper", "--socket", self.keeper_socket, *flags])
        await_that(lambda: self.says(name, b"listens:") or keeper.poll() is not None, "a keeper")
        return keeper.poll() is None

    def broker(self, name, tracer=()):
        broker = self.start(name, [
            *tracer, self.build / "bin/gmbd", "--socket-dir", self.directory / "run", "--state-dir",
            self.directory / "state", "--device", "host:64MiB", "--host-pool=64MiB", "--reuse-for",
            "20ms", "--drain-deadline", "20s", "--keeper", self.keeper_socket, "--config", self.file,
            "--http", f"unix:{self.directory}/http.sock"
        ])
        self.brokers[name] = (broker, bool(tracer))
        return broker

    def serving_broker(self, name):
        broker = self.broker(name)
        await_that(lambda: self.says(name, b" serving ") or broker.poll() is not None, "a broker that serves")
        if broker.poll() is not None:
            raise Wrong(f"{name} does not serve: {broker.returncode}")
        return broker

    def gmb(self, *words):
        done = subprocess.run(
            [str(self.build / "bin/gmb"), "--socket-dir", str(self.directory / "run"), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def start_tenants(self, broker):
        code, said = self.gmb("tenant", "set", "a", "--weight", "2")
        if code != 0:
            raise Wrong(said)
        tenants = {}
        for tag, (name, program, steps, given) in enumerate((
            ("a", "reclaim_tenant", self.steps, GUARANTEES["a"] * MIB),
            ("b", "reclaim_tenant", self.steps, GUARANTEES["b"] * MIB),
            ("c", "sharing_tenant", self.steps // 3, 8 * MIB)), start=1):
            tenants[name] = self.start(f"tenant-{name}", [
                self.build / "tests" / program, self.directory / "run/tenants" / name, tag, self.seed + tag,
                steps, given
            ])
        # A client that is greeted while the broker dies may have to connect
        # anew.
        sessions = ((b"a", 1), (b"b", 1), (b"c", 2))
        await_that(lambda: all(self.says(broker, b" gate_on tenant=" + name) >= count for name, count in sessions),
                   "sessions")
        return tenants

    def end(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()


def send(broker, is_traced, number):
    """A signal, unless it has ended."""
    pid = broker.pid
    try:
        if is_traced:
            pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        os.kill(pid, number)
    except (IndexError, FileNotFoundError, ProcessLookupError):
        pass


def stop_in_order(broker, is_traced):
    """Its exit code; it may have ended before."""
    send(broker, is_traced, signal.SIGTERM)
    return broker.wait(timeout=PATIENCE)


class Beside:
    """A thread that does something again and again while it is entered."""

    def __init__(self, stage, wanted):
        self.stage = stage
        self.over = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run) if wanted else None

    def act(self):
        raise NotImplementedError

    def run(self):
        try:
            while not self.over.is_set():
                self.act()
        except (Wrong, OSError) as error:
            self.error = error

    def __enter__(self):
        if self.thread:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.thread:
            self.thread.join()
        if self.error:
            raise Wrong(f"{type(self).__name__}: {self.error}")


class Replacements(Beside):
    """The keeper is replaced as often as it can be."""

    def act(self):
        self.stage.start_keeper("--replace")  # may be refused
        self.over.wait(0.1)


class Troubles(Beside):
    """Clients that die at any moment, operators, and what is refused."""

    def __init__(self, stage, wanted):
        super().__init__(stage, wanted)
        self.random = random.Random(stage.seed)
        self.file = stage.directory / "refused.yaml"
        self.file.write_text("tenants:\n  - name: a\n    guarantee: 1TiB\n", encoding="ascii")
        self.acts = [self.client_dies, self.client_dies, self.operator_asks, self.operator_asks,
                     self.operator_watches, self.file_changes, self.metrics_are_read]

    def act(self):
        self.random.choice(self.acts)()

    def client_dies(self):
        """While it is greeted, waits, is granted, holds, idles or is evicted."""
        words = self.random.choice((
            ("--bytes", "2MiB", "--for", "10s"), ("--bytes", "4MiB", "--wait", "1s", "--idle"),
            ("--bytes", "40MiB", "--wait", "2s"), ("--bytes", "1GiB"),
            ("--bytes", "2MiB", "--share-as", "weights", "--wait", "1s"), ("--attach", "weights", "--wait", "1s")))
        self.kill_soon("hold", ["--tenant", "d", *words], (-signal.SIGKILL, 0, 1, 3))

    def operator_watches(self):
        self.kill_soon("watch", [], (-signal.SIGKILL, 0, 1, 3))

    def kill_soon(self, command, words, codes):
        process = self.stage.start(command, [
            self.stage.build / "bin/gmb", "--socket-dir", self.stage.directory / "run", command, *words])
        self.over.wait(self.random.uniform(0, 0.15))
        process.kill()
        if process.wait() not in codes:
            raise Wrong(f"gmb {command} {' '.join(words)}: exit code {process.returncode}")

    def operator_asks(self):
        words = self.random.choice((
            "tenant set e --limit 10% --yes", "tenant delete e", "tenant set e --guarantee 1TiB", "tenant get nobody",
            "tenant set b --weight 4", "tenant set b --undo", "tenant set d --limit 8MiB --yes --for 1s",
            "reclaim a", "reclaim d", "export", "lease drop --tenant d weights", "status", "why b", "usage", "audit", "session list",
            f"apply -f {self.file} --name file", "pool resize 72MiB", "pool resize 64MiB", "pool resize 1TiB",
            "session close 999999"))
        code, said = self.stage.gmb(*words.split())
        if code not in (0, 1, 3):
            raise Wrong(f"gmb {words}: exit code {code}: {said}")

    def file_changes(self):
        self.stage.write_file(self.random.randint(1, 9))
        for name, (broker, is_traced) in list(self.stage.brokers.items()):
            # Before it serves it may die of it.
            if broker.poll() is None and self.stage.says(name, b" serving "):
                send(broker, is_traced, signal.SIGHUP)

    def metrics_are_read(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            try:
                connection.connect(f"{self.stage.directory}/http.sock")
                path = self.random.choice((b"/metrics", b"/healthz", b"/nothing"))
                connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if self.random.random() < 0.7:
                    while connection.recv(65536):
                        pass
            except (ConnectionError, FileNotFoundError):
                pass


def check_keeper(stage):
    status = stage.gmb("keeper", "status", "--socket", str(stage.keeper_socket))[1]
    if not re.search(r"\b0 entries\b", status):
        raise Wrong(f"the keeper is not empty: {status}")


class Play:
    """All that a run does; `killed` and `told` are what came of it."""

    def __init__(self, stage, tracer, options, fails):
        self.stage = stage
        self.tracer = tracer
        self.options = options
        self.fails = fails  # whether a call fails under the tracer
        self.killed = False
        self.told = []

    def run(self):
        stage = self.stage
        first = stage.serving_broker("gmbd-1")
        tenants = stage.start_tenants("gmbd-1")
        first.kill()
        first.wait()
        with Replacements(stage, self.options.replace_keeper), Troubles(stage, self.options.troubles):
            second = stage.broker("gmbd-2", self.tracer)
            stage.start("operator", [
                stage.build / "bin/gmb", "--socket-dir", stage.directory / "run", "tenant", "set", "b", "--weight",
                "3"
            ])

            def is_over():
                return second.poll() is not None or all(one.poll() is not None for one in tenants.values())

            await_that(is_over, "the end of the broker, or of its tenants")
            ended = second.poll() is not None
            if ended:
                self.check_end(second.returncode)
            last = stage.serving_broker("gmbd-3") if ended else second
        for name, tenant in tenants.items():
            self.check_tenant(name, tenant.wait(timeout=PATIENCE))
        code = stop_in_order(last, not ended)
        if code != 0 and not ended:  # in its stop
            self.check_end(code)
            code = stop_in_order(stage.serving_broker("gmbd-3"), False)
        if code != 0:
            raise Wrong(f"the broker's stop: exit code {code}")
        check_keeper(stage)

    def check_end(self, code):
        """Of the traced broker, before it was to end."""
        self.killed = code == -signal.SIGKILL
        if self.killed:
            return
        if not self.fails or code <= 0:
            raise Wrong(f"the traced broker ended by itself: {code}")
        said = self.stage.log("gmbd-2").decode(errors="replace").splitlines()
        self.told.append(f"gmbd: {said[-1] if said else code}")

    def check_tenant(self, name, code):
        if self.fails and code == TOLD:
            said = self.stage.log(f"tenant-{name}").decode(errors="replace").splitlines()
            self.told.append(f"{name}: {said[-1] if said else code}")
        elif code != 0:
            raise Wrong(f"tenant {name}: exit code {code}")
