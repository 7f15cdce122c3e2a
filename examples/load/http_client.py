"""HTTP/1.1 to one server on this machine: as many kept connections as requests under way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpClient:
    """For one event loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[Connection] = []

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the JSON answer. OSError or ValueError when there is none."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        connection = self._idle.pop() if self._idle else await self._connect()
        reader, writer = connection
        try:
            writer.write(head.encode() + content)
            await writer.drain()
            status, keep, answer = await _read_answer(reader)
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


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1])
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return status, fields.get("connection", "").lower() != "close", body
