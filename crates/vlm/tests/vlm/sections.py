"""Calls each function of vlm.py."""

import os

import vlm


def message(action):
    try:
        action()
    except vlm.VlmError as error:
        return str(error)
    raise AssertionError("no error")


with vlm.create("orders") as section:
    assert section.size == 8 << 20
    memory = section.map()
    assert bytes(memory) == bytes(section.size)
    child = os.fork()
    if child == 0:
        with vlm.open("orders") as other:
            other.map()[-1] = 42
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    read_only = section.map(read_only=True)
    assert read_only.readonly and read_only[-1] == 42
    print("zeroed and shared")
    print(message(lambda: vlm.create("orders")))
    vlm.delete("orders")
    print(message(lambda: vlm.delete("orders")))
assert message(lambda: section.size) == "the section is closed"
