"""Conan 2: `conan create pkg/conan` in the source, or in an unpacked tarball of `make dist`."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import chdir, copy, load, rmdir
from conan.tools.gnu import Autotools, AutotoolsToolchain
from conan.tools.layout import basic_layout


class KochabRecipe(ConanFile):
	name = "kochab"
	description = "Runs POSIX-threads programs on lightweight threads that wait by polling"
	license = "Apache-2.0"
	topics = ("threads", "scheduler", "pthreads")
	package_type = "library"
	settings = "os", "arch", "compiler", "build_type"
	options = {"shared": [True, False]}
	default_options = {"shared": True}
	languages = "C"

	def set_version(self):
		header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "kochab", "version.h"))
		self.version = re.search(r'KOCHAB_VERSION "(.*)"', header).group(1)

	def export_sources(self):
		root = os.path.join(self.recipe_folder, "..", "..")
		for name in ("Makefile", "LICENSE", "README.md", "CHANGELOG.md"):
			copy(self, name, root, self.export_sources_folder)
		for name in ("src", "include", "tool", "bench", "doc", "dev", "pkg", "example"):
			copy(self, f"{name}/*", root, self.export_sources_folder)

	def validate(self):
		if self.settings.os != "Linux" or str(self.settings.arch) not in ("x86_64", "armv8", "riscv64"):
			raise ConanInvalidConfiguration("Kochab runs on Linux, on x86-64, aarch64 and riscv64")

	def layout(self):
		basic_layout(self, src_folder=".")

	def generate(self):
		AutotoolsToolchain(self).generate()

	def _make(self, target, *arguments):
		with chdir(self, self.source_folder):
			Autotools(self).make(target, args=[f"BUILD={self.build_folder}/out", "NODEPS=1", "PREFIX=/", *arguments])

	def build(self):
		self._make("all")

	def package(self):
		self._make("install", f"DESTDIR={self.package_folder}")
		copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
		if not self.options.shared: # of the drop-in and the allocator there are shared libraries only
			for name in ("libkochab.so", "libkochab.so.0"):
				os.unlink(os.path.join(self.package_folder, "lib", name))
		# Conan writes the files for CMake and pkg-config from package_info
		rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
		rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

	def package_info(self):
		self.cpp_info.set_property("cmake_file_name", "Kochab")
		native = self.cpp_info.components["native"]
		native.set_property("cmake_target_name", "Kochab::kochab" if self.options.shared else "Kochab::static")
		native.set_property("pkg_config_name", "kochab")
		native.libs = ["kochab"]
		native.system_libs = ["pthread", "dl"]
		posix = self.cpp_info.components["posix"]
		posix.set_property("cmake_target_name", "Kochab::posix")
		posix.set_property("pkg_config_name", "kochab-posix")
		posix.libs = ["kochab-posix"]
		posix.system_libs = ["pthread"]
		malloc = self.cpp_info.components["malloc"]
		malloc.set_property("cmake_target_name", "Kochab::malloc")
		malloc.libs = ["kochab-malloc"]
