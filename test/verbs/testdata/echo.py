# Echoes over TCP sockets: echo.py socket|libc server|client ADDRESS PORT. "socket" is Python's module, which makes its
# sockets with SOCK_CLOEXEC; "libc" are the plain calls of C.
import ctypes
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)


class SockaddrIn(ctypes.Structure):
    _fields_ = [("family", ctypes.c_uint16), ("port", ctypes.c_uint16), ("addr", ctypes.c_uint8 * 4), ("zero", ctypes.c_uint64)]


class Plain:
    """The part of socket.socket that is needed here, of plain calls."""

    def __init__(self, fd=None):
        self.fd = self.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0) if fd is None else fd

    @staticmethod
    def call(name, *args):
        n = getattr(libc, name)(*args)
        if n < 0:
            raise OSError(ctypes.get_errno(), name + ": " + os.strerror(ctypes.get_errno()))
        return n

    @staticmethod
    def sockaddr(at):
        return SockaddrIn(socket.AF_INET, socket.htons(at[1]), (ctypes.c_uint8 * 4)(*socket.inet_aton(at[0])), 0)

    def bind(self, at):
        self.call("bind", self.fd, ctypes.byref(self.sockaddr(at)), 16)

    def listen(self):
        self.call("listen", self.fd, 4)

    def accept(self):
        return Plain(self.call("accept", self.fd, None, None)), None

    def connect(self, at):
        self.call("connect", self.fd, ctypes.byref(self.sockaddr(at)), 16)

    def recv(self, most):
        b = ctypes.create_string_buffer(most)
        n = self.call("recv", self.fd, b, most, 0)
        return b.raw[:n]

    def sendall(self, data):
        while data:
            data = data[self.call("send", self.fd, data, len(data), 0):]

    def close(self):
        self.call("close", self.fd)


def serve(s, at):
    s.bind(at)
    s.listen()
    print("listening", flush=True)
    c, _ = s.accept()
    while data := c.recv(65536):
        c.sendall(data)
    c.close()


def ask(s, at):
    s.connect(at)
    for i in range(200):
        message = bytes([i]) * (1 + 97 * i)
        s.sendall(message)
        answer = b""
        while len(answer) < len(message):
            answer += s.recv(len(message) - len(answer))
        assert answer == message, "message %d comes back changed" % i
    print("echoed 200")


kind, role, address, port = sys.argv[1:]
s = Plain() if kind == "libc" else socket.socket()
(serve if role == "server" else ask)(s, (address, int(port)))
s.close()
