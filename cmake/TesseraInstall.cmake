# find_package(Tessera CONFIG) for users of the installed library; the target is Tessera::tessera.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
install(TARGETS tessera EXPORT TesseraTargets)
install(TARGETS tessera_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The WGSL files with a fixed interface, for programs that need nothing else of ours: those of the table.
file(STRINGS src/webgpu/fixed_kernels.cpp fixed_kernels REGEX "ops/.*\\.wgsl")
string(REGEX MATCHALL "ops/[a-z0-9_/]+\\.wgsl" fixed_files "${fixed_kernels}")
list(REMOVE_DUPLICATES fixed_files)
list(TRANSFORM fixed_files PREPEND ${PROJECT_SOURCE_DIR}/src/)
install(FILES ${fixed_files} docs/wgsl.md examples/run_kernel.js
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/wgsl)
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${package_dir})
if(TESSERA_HAS_WEBGPU)
  install(FILES ${TESSERA_WGPU_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  get_filename_component(TESSERA_WGPU_FILE ${TESSERA_WGPU_LIBRARY} NAME)
  file(RELATIVE_PATH library_from_program ${CMAKE_INSTALL_FULL_BINDIR}
       ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(tessera_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_program}")
  set_target_properties(tessera PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
configure_package_config_file(cmake/TesseraConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/TesseraConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TesseraConfig.cmake
              ${PROJECT_BINARY_DIR}/TesseraConfigVersion.cmake DESTINATION ${package_dir})
