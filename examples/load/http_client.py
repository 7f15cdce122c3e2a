"""HTTP/1.1 to one server on this machine: as many kept connections as requests under way."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotAnsweredError(ConnectionError):
    """The connection ended before the first byte of an answer."""


class HttpClient:
    """For one event loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[Connection] = []

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the JSON answer. OSError, EOFError or ValueError when there is none.

        A server may close a kept connection just when a request is sent: without a byte of
        an answer it is sent once more, on a new connection.
        """
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        request = head.encode() + content
        kept = self._take_idle()
        if kept is not None:
            with contextlib.suppress(NotAnsweredError):
                return await self._exchange(kept, request)
        return await self._exchange(await self._connect(), request)

    def _take_idle(self) -> Connection | None:
        """One that the server has not closed, as far as is known."""
        while self._idle:
            connection = self._idle.pop()
            reader, writer = connection
            if not reader.at_eof() and not writer.is_closing():
                return connection
            writer.close()
        return None

    async def _exchange(
        self, connection: Connection, request: bytes
    ) -> tuple[int, dict[str, Any]]:
        reader, writer = connection
        try:
            first = await _send(connection, request)
            status, keep, answer = await _read_answer(reader, first)
        except BaseException:
            writer.close()
            raise
        if keep:
            self._idle.append(connection)
        else:
            writer.close()
        return status, json.loads(answer)

    async def _connect(self) -> Connection:
        return await asyncio.open_connection(self._host, self._port)

    async def connect_ahead(self) -> None:
        """So that the first request does not wait for a connection."""
        self._idle.append(await self._connect())

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def _send(connection: Connection, request: bytes) -> bytes:
    """The answer's first byte."""
    reader, writer = connection
    try:
        writer.write(request)
        await writer.drain()
        first = await reader.read(1)
    except OSError as error:
        raise NotAnsweredError(f"the connection broke: {error}") from error
    if not first:
        raise NotAnsweredError("the server closed the connection")
    return first


async def _read_answer(reader: asyncio.StreamReader, first: bytes) -> tuple[int, bool, bytes]:
    head = first + await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1])
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return status, fields.get("connection", "").lower() != "close", body
