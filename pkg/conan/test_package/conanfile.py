import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class KochabTest(ConanFile):
	settings = "os", "arch", "compiler", "build_type"
	generators = "CMakeDeps", "CMakeToolchain"

	def requirements(self):
		# the command and the drop-in are to be found where programs run, also when the library is linked statically
		self.requires(self.tested_reference_str, run=True)

	def layout(self):
		cmake_layout(self)

	def build(self):
		cmake = CMake(self)
		cmake.configure()
		cmake.build()

	def test(self):
		if can_run(self):
			self.run(os.path.join(self.cpp.build.bindir, "native"), env="conanrun")
			self.run(os.path.join(self.cpp.build.bindir, "posix"), env="conanrun")
			self.run("kochab run true", env="conanrun")
