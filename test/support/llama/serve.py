"""llama.cpp's own HTTP server. Prints one line of JSON with its address.

Usage: serve.py MODEL.gguf [PORT]. With a port it listens on all addresses until it is ended, as in a container. Without
one it takes a free local port and ends with its standard input, so that it never outlives the test that started it.
LLAMA_PARAMETERS is a JSON object of llama.cpp's parameters beside those below.
"""
import json
import os
import signal
import sys

import xllamacpp

path, *port = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = path
parameters.model_alias = {"tiny-random"}
parameters.hostnames = ["0.0.0.0" if port else "127.0.0.1"]
parameters.port = int(port[0]) if port else 0
parameters.n_parallel = 2
parameters.n_ctx = 8192
parameters.n_predict = 1024
parameters.cpuparams.n_threads = 1
parameters.warmup = False
parameters.use_jinja = True
parameters.endpoint_metrics = True
for name, value in json.loads(os.environ.get("LLAMA_PARAMETERS", "{}")).items():
    setattr(parameters, name, value)
server = xllamacpp.Server(parameters)
print(json.dumps({"address": server.listening_address}), flush=True)
if port:
    # The first process of a container ignores signals that it does not ask for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        signal.pause()
sys.stdin.buffer.read()
os._exit(0)
