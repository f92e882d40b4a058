"""A service that is not written in Go: SLOTS workers, each of whom needs SERVICE seconds for a request, and in front of them a
line without a bound that does not notice when a client has gone, as the pools of many services do. Its capacity is exactly
SLOTS / SERVICE, for a slot's next start is its scheduled end. It counts what arrives, by client and path.

    python3 upstream.py ADDRESS PORT SLOTS SERVICE
"""
import asyncio
import heapq
import json
import sys
import time

ADDRESS, PORT, SLOTS, SERVICE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])

PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>
<script src="/pumpkin.js"></script>
<body><pumpkin-banner></pumpkin-banner><h1>Shop</h1><p>Everything is in stock.</p></body></html>"""


class Service:
    def __init__(self):
        self.free = [0.0] * SLOTS
        self.factor = 1.0
        self.broken = set()
        self.waiting = 0
        self.connections = set()
        self.reset()

    def reset(self):
        self.arrived, self.running, self.most = {}, {}, {}
        self.longest, self.late = 0, 0.0

    def book(self, now):
        """The end of the work of a request that arrives now: at the slot that is free first."""
        start = max(now, self.free[0])
        end = start + SERVICE * self.factor
        heapq.heapreplace(self.free, end)
        return end


service = Service()


async def read(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    fields = {}
    for line in lines[1:]:
        if line:
            name, value = line.split(":", 1)
            fields[name.strip().lower()] = value.strip()
    body = b""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            body += await reader.readexactly(size)
            await reader.readline()
            if size == 0:
                break
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    return method, target.split("?")[0], fields, body


def answer(status, kind, body):
    reason = {200: "OK", 500: "Internal Server Error"}[status]
    return (f"HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def control(path, body, asking):
    """What the day asks of its service: what has arrived, and to become slow or broken."""
    if path == "/-/set":
        wanted = json.loads(body)
        service.factor = wanted.get("factor", service.factor)
        service.broken = set(wanted.get("broken", service.broken))
    if path == "/-/reset":
        service.reset()
    if path == "/-/hangup":
        for writer in service.connections - {asking}:
            writer.close()
    return answer(200, "application/json", json.dumps({
        "arrived": service.arrived, "most": service.most, "longest": service.longest, "waiting": service.waiting, "late": service.late,
    }).encode())


async def serve(reader, writer):
    service.connections.add(writer)
    try:
        while True:
            method, path, fields, body = await read(reader)
            if path.startswith("/-/"):
                writer.write(control(path, body, writer))
                await writer.drain()
                continue
            part = path.split("/")[1] or "page"
            who = fields.get("day-client", "nobody") + " " + part
            service.arrived[who] = service.arrived.get(who, 0) + 1
            service.running[who] = service.running.get(who, 0) + 1
            service.most[who] = max(service.most.get(who, 0), service.running[who])
            service.waiting += 1
            service.longest = max(service.longest, service.waiting)
            now = time.monotonic()
            end = service.book(now)
            await asyncio.sleep(end - now)
            service.late = max(service.late, time.monotonic() - end)
            service.waiting -= 1
            service.running[who] = service.running.get(who, 1) - 1
            if part in service.broken:
                writer.write(answer(500, "text/plain", b"out of order"))
            elif part == "page":
                writer.write(answer(200, "text/html", PAGE))
            elif part == "export":
                writer.write(answer(200, "application/octet-stream", b"x" * int(path.split("/")[2])))
            else:
                writer.write(answer(200, "application/json", b'{"ok":true}'))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, asyncio.LimitOverrunError):
        pass
    finally:
        service.connections.discard(writer)
        writer.close()


async def main():
    server = await asyncio.start_server(serve, ADDRESS, PORT, backlog=1024)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    pass
