# An overlay port, inside the source: vcpkg install kochab --overlay-ports=pkg/vcpkg
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled) # share/kochab has one that leads there
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
set(VCPKG_POLICY_ALLOW_DEBUG_SHARE enabled)

find_program(MAKE_PROGRAM NAMES gmake make REQUIRED)
vcpkg_cmake_get_vars(detected)
include("${detected}")

# build_and_install(flavour where flags)
function(build_and_install flavour where flags)
	vcpkg_execute_required_process(
		COMMAND "${MAKE_PROGRAM}" -j${VCPKG_CONCURRENCY} NODEPS=1
			"BUILD=${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-${flavour}"
			"CC=${VCPKG_DETECTED_CMAKE_C_COMPILER}" "CXX=${VCPKG_DETECTED_CMAKE_CXX_COMPILER}" "CFLAGS=${flags}"
			"PREFIX=${where}" install
		WORKING_DIRECTORY "${SOURCE_PATH}"
		LOGNAME "install-${TARGET_TRIPLET}-${flavour}")
endfunction()

if(NOT DEFINED VCPKG_BUILD_TYPE OR VCPKG_BUILD_TYPE STREQUAL "release")
	build_and_install(rel "${CURRENT_PACKAGES_DIR}" "${VCPKG_COMBINED_C_FLAGS_RELEASE}")
endif()
if(NOT DEFINED VCPKG_BUILD_TYPE OR VCPKG_BUILD_TYPE STREQUAL "debug")
	build_and_install(dbg "${CURRENT_PACKAGES_DIR}/debug" "${VCPKG_COMBINED_C_FLAGS_DEBUG}")
	foreach(folder IN ITEMS include share bin)
		file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/${folder}")
	endforeach()
endif()

# Programs are tools to vcpkg; the command looks for its library in ../lib, which is ../../lib from there.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/tools")
file(RENAME "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/tools/kochab")
foreach(library IN ITEMS libkochab-posix.so.0 libkochab-malloc.so.0)
	file(CREATE_LINK "../../lib/${library}" "${CURRENT_PACKAGES_DIR}/tools/kochab/${library}" SYMBOLIC)
endforeach()
file(WRITE "${CURRENT_PACKAGES_DIR}/share/kochab/KochabConfig.cmake"
	"include(\"\${CMAKE_CURRENT_LIST_DIR}/../../lib/cmake/Kochab/KochabConfig.cmake\")\n")
file(COPY "${CURRENT_PACKAGES_DIR}/lib/cmake/Kochab/KochabConfigVersion.cmake" DESTINATION "${CURRENT_PACKAGES_DIR}/share/kochab")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/lib/cmake" "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/man")
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
