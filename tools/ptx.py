#!/usr/bin/env python3
"""Compiles kernel texts to PTX for a release build; needs no GPU.

usage: ptx.py LIBNVRTC FOLDER      FOLDER holds the texts, as `emit to=FOLDER` of crates/kernel writes them

Writes a .ptx beside each .cu. The target is the oldest architecture we support: the driver translates it for the
card at hand. PTX of a newer NVRTC is refused by older drivers, so use an old one (11.8 needs driver 520 or later).
"""
import ctypes
import pathlib
import re
import sys

TARGET = b"--gpu-architecture=compute_75"
# What the program itself asks of NVRTC (crates/device/src/cuda/nvrtc.rs).
OPTIONS = [TARGET, b"-default-device"]


def compile_text(nvrtc, text):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"NVRTC refuses a text (status {status}):\n{log.value.decode(errors='replace')}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    # Comments name the compiler's build; without them the same text gives the same file.
    return re.sub(rb"(?m)^//.*\n", b"", ptx.value)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    nvrtc = ctypes.CDLL(sys.argv[1])
    texts = sorted(pathlib.Path(sys.argv[2]).glob("*.cu"))
    if not texts:
        sys.exit(f"no .cu file in {sys.argv[2]}")
    for path in texts:
        ptx = compile_text(nvrtc, path.read_bytes())
        path.with_suffix(".ptx").write_bytes(ptx)
        entries = ", ".join(name.decode() for name in re.findall(rb"\.entry (\w+)", ptx))
        print(f"{path.stem}: {entries}, {len(ptx)} bytes")


main()
