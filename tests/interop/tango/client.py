"""PyTango's DeviceProxy against a device that zorb serves.

client.py --ior PATH [--seconds S]: the file has the device's tango:// name. Prints `ok NAME` or `FAIL NAME: why`; status 1 where something failed.
"""
import os
import sys

import peer
import tango


def same(found, wanted):
    assert found == wanted, f"{found!r}, not {wanted!r}"


def fails(call, reason):
    try:
        found = call()
    except tango.DevFailed as failed:
        same(failed.args[0].reason, reason)
        return failed.args[0]
    raise AssertionError(f"it gave {found!r}")


def checks(device):
    def state():
        same(device.state(), tango.DevState.RUNNING)
        same(device.status(), "all is well")

    def ping():
        assert device.ping() >= 0

    def info():
        found = device.info()
        same((found.dev_class, found.server_id, found.server_version), ("Probe", "zorb/test", 1))
        same(device.get_idl_version(), 1)

    def commands():
        names = [command.cmd_name for command in device.command_list_query()]
        same(sorted(names), ["Fail", "Reverse", "Sum", "Twice", "Upper"])
        same(device.command_query("Sum").in_type, tango.DevVarDoubleArray)

    def twice():
        for number in (0, 21, -7):
            same(device.command_inout("Twice", number), 2 * number)

    def upper():
        same(device.command_inout("Upper", "abc"), "ABC")
        same(device.command_inout("Upper", ""), "")
        same(device.command_inout("Upper", "x" * 100_000), "X" * 100_000)

    def sum_of_numbers():
        same(device.command_inout("Sum", [1.0, 2.0, 3.5]), 6.5)
        same(device.command_inout("Sum", [0.5] * 10_000), 5000.0)

    def reverse():
        same(list(device.command_inout("Reverse", ["a", "b", ""])), ["", "b", "a"])

    def failure():
        found = fails(lambda: device.command_inout("Fail"), "PROBE_Fails")
        same((found.desc, found.origin, found.severity), ("it always fails", "Probe::Fail", tango.ErrSeverity.ERR))
        fails(lambda: device.command_inout("Nothing"), "API_CommandNotFound")

    def attributes():
        same(device.read_attribute("level").value, 1.5)
        device.write_attribute("level", -2.25)
        same(device.read_attribute("level").value, -2.25)
        numbers = device.read_attribute("numbers")
        same((len(numbers.value), numbers.value[4999], numbers.dim_x), (5000, 2499.5, 5000))
        same([value.name for value in device.read_attributes(["level", "numbers"])], ["level", "numbers"])
        fails(lambda: device.read_attribute("nothing"), "API_AttrNotFound")

    return [state, ping, info, commands, twice, upper, sum_of_numbers, reverse, failure, attributes]


def main():
    options = peer.options(seconds=300, status=3)
    device = tango.DeviceProxy(open(options.ior).read().strip())
    failed = 0
    for check in checks(device):
        try:
            check()
            print("ok", check.__name__, flush=True)
        except Exception as error:
            failed = 1
            print(f"FAIL {check.__name__}: {type(error).__name__}: {error}", flush=True)
    # Without the destructors of the library, which may wait for the device.
    sys.stdout.flush()
    os._exit(failed)


if __name__ == "__main__":
    main()
