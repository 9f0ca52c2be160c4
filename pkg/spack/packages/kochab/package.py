# A repository for Spack with this one package: spack repo add pkg/spack, then from the source's folder
# `spack dev-build kochab@0.1.0`, or `spack install kochab` with the tarball of `make dist` in a mirror.
from spack.package import *


class Kochab(MakefilePackage):
    """Runs POSIX-threads programs on lightweight threads that wait by polling: a command that runs unmodified programs,
    a drop-in library, a native interface, and an allocator."""

    license("Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("gmake", type="build")

    requires("platform=linux")
    conflicts("target=ppc64le:", msg="Kochab knows x86-64, aarch64 and riscv64")

    def setup_run_environment(self, env):
        env.set("KOCHAB_LIB", self.prefix.lib)

    @property
    def settings(self):
        return ["NODEPS=1", f"PREFIX={self.prefix}"]

    @property
    def build_targets(self):
        return [*self.settings, "all"]

    @property
    def install_targets(self):
        return [*self.settings, "install"]

    def check(self):
        make(*self.settings, "test")
