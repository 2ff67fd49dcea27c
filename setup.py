"""The build of the compiled core; everything else about the package is in pyproject.toml.

The core is optional: where it cannot be compiled, the installation succeeds without it and the
NumPy code runs. All sources are compiled once per instruction set, as modules of the same content,
of which `hirank._compiled` loads the best that the processor supports. docs/compiled.md has more.
"""

import os
import platform
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pybind11
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

FOLDER = Path("src", "hirank", "_compiled")
SETS = {"baseline": []}
if platform.machine() in ("x86_64", "AMD64"):
    SETS["x86_64_v3"] = ["-march=x86-64-v3"]
# Contraction to fused multiply-adds is allowed, reordering of sums is not: a row must not depend on
# how many rows are computed beside it.
FLAGS = ["-O3", "-g0", "-std=c++17", "-fvisibility=hidden", "-ffp-contract=fast"]
FLAGS += ["-fno-math-errno", "-fno-trapping-math", "-pthread"]
MORE_FLAGS = os.environ.get("HIRANK_CXXFLAGS", "").split()  # `make sanitize` needs some
SOURCES = sorted(map(str, FOLDER.glob("*.cpp")))
HEADERS = sorted(map(str, FOLDER.glob("*.h")))
FINGERPRINT = runpy.run_path(str(FOLDER / "__init__.py"))["fingerprint"](FOLDER)


class BuildCore(build_ext):
    """Compile the files of all instruction sets side by side, each set in a folder of its own.

    Files that are up to date are kept.
    """

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":  # lacks the vector extensions of GCC and Clang
            self.extensions = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.objects = {
                ext.name: [pool.submit(self.compile, ext, source) for source in ext.sources]
                for ext in self.extensions
            }
            super().build_extensions()

    def build_extension(self, ext):
        # Errors are raised here, where those of optional extensions become warnings.
        ext.extra_objects = [path for task in self.objects[ext.name] for path in task.result()]
        ext.sources = []
        super().build_extension(ext)

    def compile(self, ext, source):
        """Return the object files of one source of one instruction set."""
        folder = str(Path(self.build_temp, ext.name))
        objects = self.compiler.object_filenames([source], output_dir=folder)
        # The fingerprint of all sources is in about.cpp.
        needed = SOURCES if Path(source).name == "about.cpp" else [source]
        if self.force or newer_group([*needed, *HEADERS, "setup.py"], objects[0]):
            self.compiler.compile(
                [source],
                output_dir=folder,
                macros=ext.define_macros,
                include_dirs=ext.include_dirs,
                extra_postargs=ext.extra_compile_args,
                depends=ext.depends,
            )
        return objects


setup(
    cmdclass={"build_ext": BuildCore},
    ext_modules=[
        Extension(
            f"hirank._compiled.{name}",
            sources=SOURCES,
            depends=[*SOURCES, *HEADERS, "setup.py"],
            include_dirs=[pybind11.get_include()],
            define_macros=[("HIRANK_MODULE", name), ("HIRANK_FINGERPRINT", FINGERPRINT)],
            extra_compile_args=[*FLAGS, *flags, *MORE_FLAGS],
            extra_link_args=["-pthread"],
            language="c++",
            optional=True,
        )
        for name, flags in SETS.items()
    ],
)
