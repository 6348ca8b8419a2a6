"""Opens the same sessions at several SSH servers, and prints what each of them gave. JSON comes in, and JSON goes out."""

import asyncio
import json
import sys

import asyncssh

SECONDS = 15


async def read(stream, into, changed):
    while data := await stream.read(65536):
        into.extend(data)
        changed.set()


async def act(process, step, out, changed):
    kind, value = next(iter(step.items()))
    if kind == "until":
        while value.encode() not in out:
            changed.clear()
            await changed.wait()
    elif kind == "type":
        process.stdin.write(value.encode())
    elif kind == "signal":
        process.send_signal(value)
    elif kind == "size":
        process.change_terminal_size(*value)
    elif kind == "break":
        process.send_break(value)
    elif kind == "eof":
        process.stdin.write_eof()


async def session(connection, form):
    encoding = form.get("encoding", "utf-8")
    modes = {int(code): value for code, value in form.get("modes", {}).items()}
    out, err, changed = bytearray(), bytearray(), asyncio.Event()
    process = await connection.create_process(
        form["command"].encode(encoding) if "command" in form else None,
        subsystem=form.get("subsystem"),
        encoding=None,
        env=[(name, value.encode(encoding)) for name, value in form.get("env", {}).items()],
        request_pty="force" if "terminal" in form else False,
        term_type="xterm-256color",
        term_size=tuple(form.get("terminal", ())) or None,
        term_modes=modes,
    )
    readers = [
        asyncio.create_task(read(process.stdout, out, changed)),
        asyncio.create_task(read(process.stderr, err, changed)),
    ]
    for step in form.get("steps", [{"eof": True}]):
        await act(process, step, out, changed)
    await asyncio.gather(*readers)
    await process.wait_closed()
    signal = process.exit_signal
    seen = {
        "stdout": out.decode("utf-8", "backslashreplace"),
        "stderr": err.decode("utf-8", "backslashreplace"),
        "status": None if signal else process.exit_status,
        "signal": signal[0] if signal else None,
    }
    if "afterwards" in form:
        seen["afterwards"] = (await connection.run(form["afterwards"])).stdout
    return seen


async def files(connection):
    async with connection.start_sftp_client() as sftp:
        try:
            await sftp.stat("/nowhere")
            missing = None
        except asyncssh.SFTPError as error:
            missing = error.code
        return {"folder": await sftp.realpath("."), "version": sftp.version, "missing": missing}


async def seen_at(connection, form):
    try:
        opened = files(connection) if form.get("sftp") else session(connection, form)
        return await asyncio.wait_for(opened, SECONDS)
    except (asyncssh.Error, asyncio.TimeoutError) as error:
        return {"failure": f"{type(error).__name__} {error}".strip()}


async def main():
    asked = json.load(sys.stdin)

    async def login(port, user, tunnel=None):
        return await asyncssh.connect(
            "127.0.0.1",
            port,
            username=user,
            client_keys=[asked["key"]],
            known_hosts=None,
            config=None,
            agent_path=None,
            tunnel=tunnel,
        )

    gateways = {way: await login(port, asked["instance"]) for way, port in asked["gateways"].items()}
    through = next(iter(gateways.values()))
    inside = await login(asked["sshd"], "root", through)
    # sshd of root sends no signals.
    other = await login(asked["sshd"], asked["user"], through)

    async def all_of(name, connection):
        told = json.loads(json.dumps(asked["forms"]).replace("%SERVER", name))
        def of(form):
            return other if connection is inside and any("signal" in step for step in form.get("steps", [])) else connection

        return [await seen_at(of(form), form) for form in told]

    servers = {**gateways, "sshd": inside}
    found = await asyncio.gather(*(all_of(name, one) for name, one in servers.items()))
    print(json.dumps(dict(zip(servers, found))))
    for connection in (other, inside, *gateways.values()):
        connection.close()
        await connection.wait_closed()


asyncio.run(main())
