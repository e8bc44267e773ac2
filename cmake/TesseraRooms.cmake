# Every room of src/ is an object library of its own; the product is one library made of all of
# them. What a room may include is checked by tools/check_layers.py.

set(TESSERA_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                     -Wno-unknown-warning-option)
# -ffp-contract=off: a product and a sum are fused only where a kernel says so, so that a row
# gives the same bits whatever the compiler.
set(TESSERA_FLAGS -ffp-contract=off)
if(TESSERA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(TESSERA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

# The flags every target of ours is compiled with.
add_library(tessera_build INTERFACE)
target_include_directories(tessera_build INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                   ${PROJECT_SOURCE_DIR}/src)
target_compile_options(tessera_build INTERFACE ${TESSERA_WARNINGS} ${TESSERA_FLAGS})
target_compile_definitions(
  tessera_build INTERFACE $<$<NOT:$<CONFIG:Release>>:TESSERA_DEBUG_CHECKS>)
target_link_libraries(tessera_build INTERFACE fmt::fmt)

# tessera_room(NAME SOURCES... [USES libraries...])
function(tessera_room name)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  add_library(room_${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(room_${name} PRIVATE tessera_build ${ARG_USES})
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS room_${name})
endfunction()
