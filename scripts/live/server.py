"""Serves a model file over HTTP on this machine until standard input is closed.

Runs in the virtual environment that has xllamacpp; prints where it listens, as one line of JSON.
"""
# ruff: noqa: INP001 - a program, not a package

import json
import sys

from xllamacpp import CommonParams, Server


def main() -> None:
    """Load the model named on the command line and serve it."""
    params = CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 2048
    # A small model does not always find an end.
    params.n_predict = 160
    # The likeliest word every time: two runs should not differ more than they must.
    params.sampling.temp = 0.0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    server = Server(params)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
