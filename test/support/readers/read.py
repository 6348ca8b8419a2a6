"""Reads bodies as servers in Python do: a line of JSON for each body comes in, and one with what was found goes out.

JSON is read three times: by json (the last of two equal names counts), so that the first counts, and so that two are an
error, as in serde of Rust. Forms are read by Starlette with python-multipart, as in vLLM and SGLang.
"""

import asyncio
import base64
import json
import sys

from starlette.requests import Request


def first_counts(pairs):
    return dict(reversed(pairs))


def once(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("duplicate field")
    return dict(pairs)


def read_json(data):
    found = []
    for hook in (None, first_counts, once):
        body = json.loads(data, object_pairs_hook=hook)
        found.append({"model": body.get("model"), "stream": body.get("stream") is True})
    assert all(one == found[0] for one in found), f"readers differ: {found}"
    return found[0]


async def read_form(content_type, data):
    async def receive():
        return {"type": "http.request", "body": data, "more_body": False}

    headers = [(b"content-type", content_type.encode())]
    form = await Request({"type": "http", "method": "POST", "headers": headers}, receive).form()
    models = [one if isinstance(one, str) else f"a file: {one.filename}" for one in form.getlist("model")]
    assert len(set(models)) <= 1, f"readers differ: {models}"
    return {"model": models[0] if models else "", "stream": form.get("stream") == "true"}


for line in sys.stdin:
    one = json.loads(line)
    data = base64.b64decode(one["bytes"])
    try:
        is_json = one["contentType"] == "application/json"
        read = read_json(data) if is_json else asyncio.run(read_form(one["contentType"], data))
    except Exception as error:
        read = {"model": "", "stream": False, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(read))
