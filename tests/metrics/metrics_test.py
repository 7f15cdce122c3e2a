"""The metrics that a real gmbd shows of itself, and to whom."""

import os
import socket
import stat
import subprocess
import time

from conftest import MIB, Metrics, Scraped, wait_until

DEVICE = "host-0"


def mismatches(broker):
    """Where metrics and `gmb status`, asked one after the other, differ."""
    metrics = broker.fresh()
    status = broker.ask("status")
    tenants = {t["name"]: t for t in broker.ask("tenant", "list")["tenants"]}
    sessions = broker.ask("session", "list")["sessions"]
    found = []

    def compare(expected, name, **labels):
        if metrics.of(name, **labels) != expected:
            found.append((name, labels, metrics.of(name, **labels), expected))

    pool = status["pools"][0]
    for state in ("granted", "returned", "ready", "float", "scrubbing", "unreturned", "missing"):
        compare(pool[f"{state}_bytes"], "gmb_pool_bytes", device_uuid=DEVICE, state=state)
    for number in ("target_bytes", "capacity_bytes", "guaranteed_bytes", "waiting_bytes"):
        compare(pool[number], f"gmb_pool_{number}", device_uuid=DEVICE)
    compare(pool["waiting"], "gmb_pool_waiting_requests", device_uuid=DEVICE)
    compare(status["leases"], "gmb_leases")
    compare(status["handles"], "gmb_handles")
    compare(len(tenants), "gmb_tenants")
    for part in ("prepared", "reserved", "placed", "held"):
        compare(status["host_pool"][f"{part}_bytes"], "gmb_host_pool_part_bytes", part=part)
    for name, tenant in tenants.items():
        its, view = tenant["pools"][0], tenant["pools"][0]["view"]
        labels = {"tenant": name, "device_uuid": DEVICE}
        for number in ("guarantee", "limit", "leased", "unreturned", "obtainable"):
            compare(view[f"{number}_bytes"], f"gmb_tenant_{number}_bytes", **labels)
        for number in ("borrowed", "resident", "evicted", "hard"):
            compare(its[f"{number}_bytes"], f"gmb_tenant_{number}_bytes", **labels)
        compare(view["weight"], "gmb_tenant_weight", **labels)
        if metrics.sum("gmb_tenant_sessions", tenant=name) != tenant["sessions"]:
            found.append((name, "sessions"))
    backed = sum(s["backed_bytes"] for s in sessions)
    if metrics.sum("gmb_tenant_backed_bytes") != backed:
        found.append(("backed", backed))
    return found


def test_metrics_agree_with_gmb_status_under_load(loaded):
    last = []

    def agree():
        last[:] = mismatches(loaded)
        return not last

    try:
        wait_until(agree, 20)
    except AssertionError:
        raise AssertionError(f"they differ: {last}") from None
    metrics = loaded.fresh()
    # It is no comparison of zeros.
    for name in ("gmb_tenant_evicted_bytes", "gmb_tenant_borrowed_bytes", "gmb_tenant_hard_bytes",
                 "gmb_tenant_leased_bytes"):
        assert metrics.sum(name) > 0, name


def test_what_happened_is_counted(loaded):
    metrics = loaded.fresh()
    a = {"tenant": "a", "device_uuid": DEVICE}
    small = {"tenant": "small", "device_uuid": DEVICE}
    assert metrics.of("gmb_requests_total", outcome="granted", **a) == 3
    assert metrics.of("gmb_granted_bytes_total", **a) == 96 * MIB
    assert metrics.of("gmb_requests_total", outcome="refused", reason="TENANT_LIMIT", **small) == 1
    assert metrics.of("gmb_request_wait_seconds_count", tenant="a") == 3
    evictions = metrics.of("gmb_evictions_total", outcome="done", **a)
    assert evictions >= 1
    assert metrics.of("gmb_eviction_seconds_count", device_uuid=DEVICE) == evictions
    assert metrics.of("gmb_evicted_bytes_total", **a) == evictions * 32 * MIB
    assert metrics.of("gmb_sessions_opened_total", tenant="a") == 3
    assert metrics.sum("gmb_events_missed_total") == 0
    # Some were there since, and no more than all.
    first = metrics.of("gmb_tenant_resident_byte_seconds_total", **a)
    begun = time.monotonic()
    second = wait_until(
        lambda: (later := loaded.fresh().of("gmb_tenant_resident_byte_seconds_total", **a)) > first
        and later)
    assert second - first <= (time.monotonic() - begun + 1) * 96 * MIB


def test_a_killed_client_leaves_its_memory_and_a_count(broker, holders):
    holder = holders("a", 8 * MIB)
    wait_until(lambda: broker.fresh().of("gmb_leases") == 1)
    holder.kill()
    metrics = wait_until(lambda: (now := broker.fresh()).of("gmb_leases") == 0 and now)
    assert metrics.of("gmb_leases_ended_total", tenant="a", device_uuid=DEVICE, how="reclaimed") == 1
    assert metrics.of("gmb_sessions_closed_total", tenant="a", cause="disconnected") == 1


def test_the_series_of_a_deleted_tenant_vanish(broker, holders):
    holder = holders("a", 8 * MIB)
    wait_until(lambda: broker.fresh().sum("gmb_requests_total", tenant="a") == 1)
    holder.kill()
    wait_until(lambda: broker.fresh().of("gmb_sessions") == 0)
    assert broker.run("tenant", "delete", "a").returncode == 0
    wait_until(lambda: 'tenant="a"' not in broker.fresh().text)
    # One of the same name begins anew.
    assert broker.run("tenant", "set", "a", "--limit", "50%").returncode == 0
    assert broker.fresh().sum("gmb_requests_total", tenant="a") == 0


def test_refused_sessions_are_counted_all_of_them(broker):
    token = broker.socket_dir.parent / "token"
    token.write_text("x" * 32)
    for _ in range(30):  # the log names at most 10 at once
        assert broker.run("hold", "--tenant-token-file", str(token), "--bytes", "2MiB").returncode
    assert broker.fresh().of("gmb_sessions_refused_total", reason="NO_SUCH_TENANT") == 30


def test_names_that_are_markup_stay_out(broker, tmp_path):
    evil = '<script>"} 1\n# TYPE x y'
    program = tmp_path / "<b>\"}"
    program.symlink_to(broker.command("status")[0])
    with subprocess.Popen([program, *broker.command("hold", "--tenant", "a", "--bytes", "2MiB")[1:]],
                          stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as holder:
        wait_until(lambda: broker.fresh().of("gmb_leases") == 1)
        assert broker.run("tenant", "set", evil, "--limit", "50%").returncode != 0
        text = broker.metrics().text
        holder.kill()
    assert "<" not in text.replace("<=", "")
    Metrics(text)  # every line is one


def test_requests_that_are_not_answered(broker):
    assert broker.get("/healthz") == (200, "ok\n")
    assert broker.get("/metrics", Host="evil.example")[0] == 421
    assert broker.get("/metrics/..")[0] == 404
    assert broker.get(Host="localhost")[0] == 200
    metrics = broker.fresh()
    assert metrics.of("gmb_http_requests_total", outcome="refused") == 2


def connections_of(pid):
    """The TCP connections that a process has, as the kernel counts them."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        rows = [row.split() for row in table.readlines()[1:]]
    return sum(row[9] in inodes and row[3] == "01" for row in rows)


def test_slow_readers_and_half_requests_are_hung_up_on_and_harm_nobody(programs, tmp_path):
    # So that the text does not fit between two sockets.
    tenants = {"a": {"limit": "100%"}, **{f"tenant-{n}": {} for n in range(400)}}
    with Scraped(programs, tmp_path, tenants=tenants) as broker:
        pid = broker._process.pid
        slow = []
        for wants_all in (True, True, False, False, False):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.connect(("127.0.0.1", broker.port))
            request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
            client.sendall(request + (b"\r\n" if wants_all else b"X: "))
            slow.append(client)
        wait_until(lambda: connections_of(pid) == len(slow))
        # Others are served meanwhile, of either kind.
        holder = broker.hold("a", 8 * MIB)
        wait_until(lambda: broker.metrics().of("gmb_leases") == 1)
        assert holder.poll() is None
        wait_until(lambda: broker.fresh().of("gmb_http_hangups_total") == len(slow))
        wait_until(lambda: connections_of(pid) == 0)
        assert broker.fresh().of("gmb_http_connections") == 0
        for client in slow:
            client.close()
        holder.kill()
        holder.wait()


def test_beyond_loopback_a_token_is_asked_for(programs, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    token.chmod(0o600)
    with Scraped(programs, tmp_path, "--http-token-file", str(token), http="0.0.0.0:0") as broker:
        assert broker.get()[0] == 401
        assert broker.get(Authorization="Bearer 0123456789abcdef0124")[0] == 401
        status, text = broker.get(Authorization="Bearer 0123456789abcdef0123")
        assert status == 200 and Metrics(text)
        assert broker.get(Host="gpu-node-1", Authorization="Bearer 0123456789abcdef0123")[0] == 200
        assert broker.get("/healthz")[0] == 200
        assert "0123456789abcdef" not in broker.log.read_text()


def refusal(programs, tmp_path, *arguments):
    done = subprocess.run(
        [*programs.command("gmbd"), "--device", "host:64MiB", "--socket-dir", str(tmp_path / "s"),
         "--state-dir", str(tmp_path / "state"), *arguments],
        capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_what_cannot_be_served_is_refused_at_the_start(programs, tmp_path):
    code, said = refusal(programs, tmp_path, "--http", "0.0.0.0:0")
    assert code == 2 and "http_token_file" in said
    code, said = refusal(programs, tmp_path, "--http", "localhost:0")
    assert code == 2 and "127.0.0.1:9469" in said
    code, said = refusal(programs, tmp_path, "--http", "127.0.0.1:0", "--http-token-file",
                         str(tmp_path / "nothing"))
    assert code == 2 and "nothing" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = refusal(programs, tmp_path, "--http", where)
        assert code == 1 and where in said and "in use" in said
        code, said = refusal(programs, tmp_path, "--http", where, "--check")
        assert code == 1 and f"problem: cannot answer HTTP at {where}" in said
    code, said = refusal(programs, tmp_path, "--http", where, "--check")
    assert code == 0 and f"http: {where}, without a token" in said


def test_a_unix_socket_serves_and_goes_with_the_broker(programs, tmp_path):
    path = tmp_path / "http.sock"
    with Scraped(programs, tmp_path, http=f"unix:{path}") as broker:
        assert broker.address() == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: anything\r\n\r\n")
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        head, text = answer.decode().split("\r\n\r\n", 1)
        assert head.startswith("HTTP/1.1 200 ") and Metrics(text).of("gmb_tenants") == 4
    assert not path.exists()


def test_gmb_metrics_replaces_a_file_at_once(programs, tmp_path):
    with Scraped(programs, tmp_path, http="off") as broker:
        folder = tmp_path / "textfile"
        folder.mkdir()
        file = folder / "gmb.prom"
        file.write_text("old")
        with file.open() as old:
            assert broker.run("metrics", "--file", str(file)).returncode == 0
            assert old.read() == "old"
        assert Metrics(file.read_text()).of("gmb_tenants") == 4
        assert [f.name for f in folder.iterdir()] == ["gmb.prom"]
        assert stat.S_IMODE(file.stat().st_mode) & 0o044 == 0o044
        missing = tmp_path / "nowhere" / "gmb.prom"
        done = broker.run("metrics", "--file", str(missing))
        assert done.returncode == 1 and str(missing) in done.stderr
        # Nobody but operators is told.
        done = subprocess.run(
            [*programs.command("gmb"), "--socket-dir", str(broker.tenant_dir("a")), "metrics"],
            capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0 and "gmb_" not in done.stdout


def test_a_state_disk_that_takes_nothing_is_shown(broker):
    found = wait_until(lambda: broker.fresh().of("gmb_state_disk_ok") is not None and broker.fresh())
    assert found.of("gmb_state_disk_ok") == 1
    assert abs(found.of("gmb_state_disk_check_timestamp_seconds") - time.time()) < 60
    assert found.of("gmb_values_not_in_force") == 0
