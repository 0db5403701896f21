"""A package ``horovod`` that stands in for the real one (0.28.1), which cannot be built here.

It is no kinder: its parser refuses what it does not know, hosts are ``name:slots``, ranks are counted as Horovod does
on machines of different sizes, and a rank meets the others only by what Horovod's library reads from the environment:
without a rendezvous server it is alone, a server that is not up within a second is an error, each scope
(``global``, ``local_HOST``, ``cross_LOCAL_RANK``) must have as many ranks as it was told, and a peer that is lost is a
`HorovodInternalError`.
"""

from __future__ import annotations

from pathlib import Path

LAUNCH = """
import argparse

from horovod.runner.common.util import config_parser


def parse_args():
    parser = argparse.ArgumentParser(description="Horovod Runner")
    parser.add_argument("-v", "--version", action="version", version="0.28.1")
    parser.add_argument("-np", "--num-proc", dest="num_proc", type=int, required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--start-timeout", type=int)
    parser.add_argument("--network-interfaces", dest="nics", type=lambda text: set(text.split(",")))
    parser.add_argument("--output-filename")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    parser.add_argument("-p", "--ssh-port", dest="ssh_port", type=int)
    parser.add_argument("-i", "--ssh-identity-file", dest="ssh_identity_file")
    parser.add_argument("--fusion-threshold-mb", type=int)
    parser.add_argument("--timeline-filename")
    parser.add_argument("--gloo-timeout-seconds", type=int)
    parser.add_argument("--min-np", dest="min_num_proc", type=int)
    parser.add_argument("--max-np", dest="max_num_proc", type=int)
    parser.add_argument("--mpi-args", dest="mpi_args")
    parser.add_argument("--binding-args", dest="binding_args")
    hosts = parser.add_mutually_exclusive_group()
    hosts.add_argument("-H", "--hosts", dest="hosts")
    hosts.add_argument("-hostfile", "--hostfile", dest="hostfile")
    hosts.add_argument("--host-discovery-script")
    controller = parser.add_mutually_exclusive_group()
    controller.add_argument("--gloo", action="store_true", dest="use_gloo")
    controller.add_argument("--mpi", action="store_true", dest="use_mpi")
    controller.add_argument("--jsrun", action="store_true", dest="use_jsrun")
    return parser.parse_args()
"""

CONFIG_PARSER = """
def set_env_from_args(env, args):
    if args.fusion_threshold_mb is not None:
        env["HOROVOD_FUSION_THRESHOLD"] = str(args.fusion_threshold_mb * 1024 * 1024)
    if args.timeline_filename:
        env["HOROVOD_TIMELINE"] = args.timeline_filename
    if args.gloo_timeout_seconds is not None:
        env["HOROVOD_GLOO_TIMEOUT_SECONDS"] = str(args.gloo_timeout_seconds)
    return env
"""

HOSTS = """
import re
from types import SimpleNamespace


def parse_hosts(text):
    hosts = []
    for host in text.split(","):
        if not re.fullmatch(r"[\\w.-]+:[0-9]+", host):
            raise ValueError(f"Invalid host input {host}")
        name, slots = host.split(":")
        hosts.append(SimpleNamespace(hostname=name, slots=int(slots)))
    return hosts


def get_host_assignments(hosts, min_num_proc, max_num_proc=None):
    size = sum(host.slots for host in hosts)
    if size < min_num_proc:
        raise ValueError(f"Requested more processes ({min_num_proc}) than there are available slots ({size})")
    ranks = []
    for host in hosts:
        for local in range(host.slots):
            having = [other.hostname for other in hosts if other.slots > local]
            ranks.append(SimpleNamespace(
                hostname=host.hostname, rank=len(ranks), size=size, local_rank=local, local_size=host.slots,
                cross_rank=having.index(host.hostname), cross_size=len(having),
            ))
    return ranks
"""

HTTP_SERVER = """
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class RendezvousHandler(BaseHTTPRequestHandler):
    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def place(self):
        _, scope, key = self.path.split("/")
        return scope, key

    def do_GET(self):
        value = self.server.cache.get(self.place())
        self.answer(404) if value is None else self.answer(200, value)

    def do_PUT(self):
        scope, key = self.place()
        if scope not in self.server.scope_size:
            return self.answer(400)
        with self.server.lock:
            self.server.cache[scope, key] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def log_message(self, *_):
        pass


class RendezvousHTTPServer(socketserver.ThreadingMixIn, HTTPServer):
    def __init__(self, address, handler, verbose):
        super().__init__(address, handler)
        self.lock, self.cache, self.scope_size = threading.Lock(), {}, {}

    def init(self, plan):
        for slot in plan:
            self.scope_size["global"] = slot.size
            self.scope_size["local_" + slot.hostname] = slot.local_size
            self.scope_size["cross_" + str(slot.local_rank)] = slot.cross_size
"""

TORCH = '''
import os
import socket
import struct
import time
import urllib.error
import urllib.request


class HorovodInternalError(RuntimeError):
    pass


_numbers, _peers = {}, {}
#: Tries of a request, and seconds between two, as the library has them.
_TRIES, _PAUSE_S = 3, 0.5


def init():
    env = os.environ
    for kind in ("", "local_", "cross_"):
        for name, alone in (("rank", 0), ("size", 1)):
            _numbers[kind + name] = int(env.get("HOROVOD_" + (kind + name).upper(), alone))
    if env.get("HOROVOD_CONTROLLER") != "gloo" or "HOROVOD_GLOO_RENDEZVOUS_ADDR" not in env:
        if size() > 1:
            raise RuntimeError("no controller")
        return
    if env["HOROVOD_GLOO_IFACE"] not in [name for _, name in socket.if_nameindex()]:
        raise RuntimeError("no interface " + env["HOROVOD_GLOO_IFACE"])
    _peers.update(_meet("global", rank(), size()))
    _meet("local_" + env["HOROVOD_HOSTNAME"], local_rank(), local_size())
    _meet("cross_" + str(local_rank()), cross_rank(), cross_size())


def rank():
    return _numbers["rank"]


def size():
    return _numbers["size"]


def local_rank():
    return _numbers["local_rank"]


def local_size():
    return _numbers["local_size"]


def cross_rank():
    return _numbers["cross_rank"]


def cross_size():
    return _numbers["cross_size"]


def allreduce(number):
    """The sum over all ranks."""
    total = number
    for peer in _peers.values():
        try:
            peer.sendall(struct.pack("d", number))
        except OSError as error:
            raise HorovodInternalError("Horovod has been shut down. This was caused by an exception") from error
    for peer in _peers.values():
        try:
            data = peer.recv(8, socket.MSG_WAITALL)
        except OSError:
            data = b""
        if len(data) < 8:
            raise HorovodInternalError("Horovod has been shut down. This was caused by an exception")
        total += struct.unpack("d", data)[0]
    return total


def _meet(scope, own, count):
    """Connections to the others of a scope, by rank; each rank is reached by those above it."""
    listening = socket.create_server(("", 0))
    _asked(scope, own, str(listening.getsockname()[1]).encode())
    until = time.monotonic() + int(os.environ.get("HOROVOD_GLOO_TIMEOUT_SECONDS", 30))
    peers = {}
    for other in range(own):
        while (port := _asked(scope, other)) is None:
            if time.monotonic() > until:
                raise RuntimeError(f"Wait timeout for key {other} of {scope}")
            time.sleep(0.01)
        peers[other] = socket.create_connection(("127.0.0.1", int(port)))
        peers[other].sendall(struct.pack("i", own))
    listening.settimeout(max(1.0, until - time.monotonic()))
    for _ in range(own + 1, count):
        peer, _ = listening.accept()
        peer.settimeout(None)
        peers[struct.unpack("i", peer.recv(4, socket.MSG_WAITALL))[0]] = peer
    listening.close()
    assert sorted([*peers, own]) == list(range(count)), (scope, own, count, sorted(peers))
    return peers


def _asked(scope, key, value=None):
    env = os.environ
    place = f"{env['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{env['HOROVOD_GLOO_RENDEZVOUS_PORT']}"
    method = "GET" if value is None else "PUT"
    request = urllib.request.Request(f"http://{place}/{scope}/{key}", data=value, method=method)
    for _ in range(_TRIES):
        try:
            return urllib.request.urlopen(request, timeout=10).read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
        except OSError:
            pass
        time.sleep(_PAUSE_S)
    raise RuntimeError("HTTP request failed.")
'''

_FILES = {
    "__init__.py": "__version__ = '0.28.1'\n",
    "runner/__init__.py": "",
    "runner/launch.py": LAUNCH,
    "runner/common/__init__.py": "",
    "runner/common/util/__init__.py": "",
    "runner/common/util/config_parser.py": CONFIG_PARSER,
    "runner/common/util/hosts.py": HOSTS,
    "runner/http/__init__.py": "",
    "runner/http/http_server.py": HTTP_SERVER,
    "torch/__init__.py": TORCH,
}


def write_horovod(directory: Path) -> None:
    """The package, below a directory from which Python imports."""
    for name, text in _FILES.items():
        path = directory / "horovod" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
