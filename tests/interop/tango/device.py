"""A Tango device without a database, for zorb's client to call.

device.py --ior PATH [--seconds S]: writes the device's reference to PATH, prints READY.
"""
import os

from tango import AttrWriteType, DevState, Except, Util
from tango.server import Device, attribute, command, run

import peer

NAME = "test/probe/1"


class Probe(Device):
    def init_device(self):
        super().init_device()
        self.set_state(DevState.RUNNING)
        self.set_status("all is well")
        self._level = 1.5

    @attribute(dtype=float, access=AttrWriteType.READ_WRITE)
    def level(self):
        return self._level

    @level.write
    def level(self, value):
        self._level = value

    @attribute(dtype=(float,), max_dim_x=10_000)
    def numbers(self):
        return [0.5 * i for i in range(5000)]

    @command(dtype_in=int, dtype_out=int)
    def Twice(self, number):
        return 2 * number

    @command(dtype_in=str, dtype_out=str)
    def Upper(self, text):
        return text.upper()

    @command(dtype_in=(float,), dtype_out=float)
    def Sum(self, numbers):
        return float(sum(numbers))

    @command(dtype_in=(str,), dtype_out=(str,))
    def Reverse(self, texts):
        return list(reversed(texts))

    @command
    def Fail(self):
        Except.throw_exception("PROBE_Fails", "it always fails", "Probe::Fail")


def main():
    options = peer.options(seconds=900, status=0)

    def ready():
        util = Util.instance()
        with open(options.ior + ".new", "w") as file:
            file.write(util.get_device_ior(util.get_device_by_name(NAME)) + "\n")
        os.rename(options.ior + ".new", options.ior)
        print("READY", options.ior, flush=True)

    command_line = ["probe", "test", "-nodb", "-dlist", NAME, "-ORBendPoint", "giop:tcp:127.0.0.1:"]
    run([Probe], args=command_line, post_init_callback=ready)


if __name__ == "__main__":
    main()
