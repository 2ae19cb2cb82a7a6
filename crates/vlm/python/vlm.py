"""Very large memory: sections of huge pages, reserved by name with the command `vlm`.

    import vlm

    with vlm.create("orders") as section:
        memory = section.map()
        memory[:5] = b"hello"

The module calls libvlm.so, which VLM_LIBRARY may name. The registry is /etc/vlm.toml, or the file that
VLM_REGISTRY names. Other processes may change a section's memory at any time.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["Section", "VlmError", "create", "delete", "open"]

_library = ctypes.CDLL(os.environ.get("VLM_LIBRARY", "libvlm.so"), use_errno=False)
for _name, _result, _arguments in [
    ("vlm_create", ctypes.c_void_p, [ctypes.c_char_p]),
    ("vlm_open", ctypes.c_void_p, [ctypes.c_char_p]),
    ("vlm_size", ctypes.c_size_t, [ctypes.c_void_p]),
    ("vlm_map", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
    ("vlm_unmap", ctypes.c_int, [ctypes.c_void_p]),
    ("vlm_close", None, [ctypes.c_void_p]),
    ("vlm_delete", ctypes.c_int, [ctypes.c_char_p]),
    ("vlm_message", ctypes.c_char_p, []),
]:
    _function = getattr(_library, _name)
    _function.restype, _function.argtypes = _result, _arguments

_READ_ONLY = 1


class VlmError(RuntimeError):
    """What the library says is wrong, and what to do."""


def _error() -> VlmError:
    return VlmError(_library.vlm_message().decode())


class Section:
    """A section in use. Its memory stays mapped until the section is closed."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle
        self._views: list[tuple[int, memoryview]] = []

    @property
    def size(self) -> int:
        """The number of bytes."""
        return _library.vlm_size(self._open_handle())

    def map(self, *, read_only: bool = False) -> memoryview:
        """All memory of the section, as bytes."""
        address = _library.vlm_map(self._open_handle(), _READ_ONLY if read_only else 0)
        if address is None:
            raise _error()
        view = memoryview((ctypes.c_ubyte * self.size).from_address(address)).cast("B")
        view = view.toreadonly() if read_only else view
        self._views.append((address, view))
        return view

    def close(self) -> None:
        """Unmaps the memory and closes the section; views of it must not be in use any more."""
        for address, view in self._views:
            # A part of a view that still exists would read memory that is gone.
            view.release()
            if _library.vlm_unmap(address) != 0:
                raise _error()
        self._views.clear()
        if self._handle is not None:
            _library.vlm_close(self._handle)
            self._handle = None

    def _open_handle(self) -> int:
        if self._handle is None:
            raise VlmError("the section is closed")
        return self._handle

    def __enter__(self) -> Section:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _section(handle: int | None) -> Section:
    if handle is None:
        raise _error()
    return Section(handle)


def create(name: str) -> Section:
    """Creates a section, all zeroes."""
    return _section(_library.vlm_create(name.encode()))


def open(name: str) -> Section:
    """Opens a section that another process has created and uses."""
    return _section(_library.vlm_open(name.encode()))


def delete(name: str) -> None:
    """Deletes a section by name; processes that use it keep its memory until they end."""
    if _library.vlm_delete(name.encode()) != 0:
        raise _error()
