#!/usr/bin/env python3
"""Creates libraries to link with, whose symbols are those of an older glibc.

A program that is linked with the glibc of the build machine requires the newest version of each
symbol, and thereby that glibc. glibc never removes old versions, so its own symbol table says what
an older release had: each stub exports, of every symbol, the newest version that is not newer than
the floor. If a program uses a symbol that is newer altogether, linking fails and names it
(newer_functions.c defines those that the project needs).

Usage: link_stubs.py --compiler CC --floor 2.28 DIR
"""

import argparse
import collections
import pathlib
import re
import subprocess

# Until glibc 2.34 these libraries were separate. The program must load them, but not know which of
# them has which symbol: the dynamic linker searches all of them.
SEPARATE_BEFORE_2_34 = {"pthread": "libpthread.so.0", "dl": "libdl.so.2", "rt": "librt.so.1"}
LOADER = "ld-linux-x86-64.so.2"
SYMBOL = re.compile(
    r"^ *\d+: (?P<address>[0-9a-f]+) +(?P<size>\w+) (?P<type>FUNC|IFUNC|OBJECT) +(?P<binding>\w+) +DEFAULT +\d+ "
    r"(?P<name>[\w.]+)@@?GLIBC_(?P<version>[\d.]+)$", re.MULTILINE)


def number(version):
    return tuple(map(int, version.split(".")))


def symbols_of(library, floor):
    """Returns {name: newest match of SYMBOL that is not newer than `floor`}."""
    table = subprocess.run(["readelf", "--dyn-syms", "--wide", library], check=True, capture_output=True, text=True).stdout
    newest = {}
    for symbol in SYMBOL.finditer(table):
        name, version = symbol["name"], number(symbol["version"])
        if version <= floor and (name not in newest or number(newest[name]["version"]) < version):
            newest[name] = symbol
    return newest


def assembly(symbols):
    """Functions are one label. Objects keep sizes, and the equality of addresses of objects with
    two names (environ and __environ), which the linker must preserve when it copies one."""
    objects = collections.defaultdict(list)
    lines = [".text", "functions: ret"]
    for symbol in symbols:
        lines.append(f".{'weak' if symbol['binding'] == 'WEAK' else 'globl'} {symbol['name']}")
        if symbol["type"] != "OBJECT":
            lines += [f".type {symbol['name']}, @function", f".set {symbol['name']}, functions"]
        else:
            objects[symbol["address"]].append(symbol)
    lines.append(".bss")
    for group in objects.values():
        lines.append(".balign 32")
        for symbol in group:
            lines += [f".type {symbol['name']}, @object", f".size {symbol['name']}, {int(symbol['size'], 0)}",
                      f"{symbol['name']}:"]
        lines.append(f".zero {max(int(symbol['size'], 0) for symbol in group)}")
    return "\n".join(lines + ['.section .note.GNU-stack,"",@progbits', ""])


def version_script(symbols):
    names = collections.defaultdict(list)
    for symbol in symbols:
        names[symbol["version"]].append(symbol["name"])
    nodes = [f"GLIBC_{version} {{ global: {' '.join(f'{name};' for name in names[version])} }};"
             for version in sorted(names, key=number)]
    return "\n".join(nodes + ["LOCAL { local: *; };", ""])


def create_stub(compiler, target, soname, symbols):
    source, script = target.with_suffix(".s"), target.with_suffix(".map")
    source.write_text(assembly(symbols))
    script.write_text(version_script(symbols))
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script,{script}",
                    str(source), "-o", str(target)], check=True)


def find(compiler, name):
    """Returns the path of a file of the build machine's glibc."""
    return subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--floor", required=True, type=number)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)

    for name, soname in {"c": "libc.so.6", "m": "libm.so.6", "ld": LOADER}.items():
        symbols = symbols_of(find(arguments.compiler, soname), arguments.floor)
        create_stub(arguments.compiler, arguments.folder / f"lib{name}_stub.so", soname, symbols.values())
    for name, soname in SEPARATE_BEFORE_2_34.items():
        create_stub(arguments.compiler, arguments.folder / f"lib{name}.so", soname, [])
    # As in glibc, -lc also links functions that are part of each program, and the loader if it is used.
    nonshared = find(arguments.compiler, "libc_nonshared.a")
    (arguments.folder / "libc.so").write_text(f"GROUP ( -lc_stub {nonshared} AS_NEEDED ( -lld_stub ) )\n")
    (arguments.folder / "libm.so").write_text("INPUT ( -lm_stub )\n")


if __name__ == "__main__":
    main()
