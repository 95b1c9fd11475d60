"""What the device and the client have in common: their options, and an end for when nobody ends them."""
import argparse
import os
import threading


def options(seconds, status):
    """The command line: --ior PATH [--seconds S]. After so many seconds the process ends with that status."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--ior", required=True)
    arguments.add_argument("--seconds", type=float, default=seconds)
    found = arguments.parse_args()
    end = threading.Timer(found.seconds, lambda: os._exit(status))
    end.daemon = True
    end.start()
    return found
