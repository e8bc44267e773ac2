# The WebGPU room is built when wgpu-native is there: in TESSERA_WGPU_ROOT, or where
# tools/fetch_wgpu.py puts it. Nothing is downloaded here. Defines the target wgpu_native, or nothing.
set(TESSERA_WEBGPU AUTO CACHE STRING "Build the WebGPU device: AUTO, ON or OFF")
set_property(CACHE TESSERA_WEBGPU PROPERTY STRINGS AUTO ON OFF)
set(TESSERA_WGPU_ROOT "" CACHE PATH
    "Folder of webgpu.h, wgpu.h and libwgpu_native-release.so; empty: the folder of fetch_wgpu.py")

set(TESSERA_WGPU_VERSION 0.32.0) # as in tools/fetch_wgpu.py
if(TESSERA_WGPU_ROOT)
  set(wgpu_root ${TESSERA_WGPU_ROOT})
elseif("$ENV{XDG_CACHE_HOME}" MATCHES "^/")
  set(wgpu_root $ENV{XDG_CACHE_HOME}/tessera/wgpu-${TESSERA_WGPU_VERSION})
else()
  set(wgpu_root $ENV{HOME}/.cache/tessera/wgpu-${TESSERA_WGPU_VERSION})
endif()

set(TESSERA_HAS_WEBGPU OFF)
if(NOT TESSERA_WEBGPU STREQUAL "OFF")
  set(TESSERA_WGPU_LIBRARY ${wgpu_root}/libwgpu_native-release.so)
  if(EXISTS ${TESSERA_WGPU_LIBRARY} AND EXISTS ${wgpu_root}/webgpu.h AND EXISTS ${wgpu_root}/wgpu.h)
    set(TESSERA_HAS_WEBGPU ON)
  elseif(TESSERA_WGPU_ROOT OR TESSERA_WEBGPU STREQUAL "ON")
    message(FATAL_ERROR "There is no wgpu-native in ${wgpu_root}: run tools/fetch_wgpu.py, or set "
                        "TESSERA_WGPU_ROOT to a folder of webgpu.h, wgpu.h and "
                        "libwgpu_native-release.so")
  endif()
endif()
message(STATUS "WebGPU device: ${TESSERA_HAS_WEBGPU}")

if(TESSERA_HAS_WEBGPU)
  add_library(wgpu_native SHARED IMPORTED GLOBAL)
  # The library has no SONAME: without saying so, its full path would be written into our binaries.
  set_target_properties(wgpu_native PROPERTIES IMPORTED_LOCATION ${TESSERA_WGPU_LIBRARY}
                                               IMPORTED_NO_SONAME ON)
  target_include_directories(wgpu_native SYSTEM INTERFACE ${wgpu_root})
endif()
