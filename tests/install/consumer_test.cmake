function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output
                          ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

if(SANITIZE STREQUAL "address")
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined)
elseif(SANITIZE STREQUAL "thread")
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=thread)
endif()
file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/tests/install/consumer -B ${WORK_DIR}/build
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} ${flags}
    -DEXAMPLE=${SOURCE_DIR}/examples/generate.cpp)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${MAKE_TINY_MODEL} ${WORK_DIR}/tiny.gguf)
run(${WORK_DIR}/build/generate ${WORK_DIR}/tiny.gguf "Once upon a time")
if(output STREQUAL "")
  message(FATAL_ERROR "the example printed nothing")
endif()
# What a web developer takes: the twelve, the linear layers, the matrix times a vector; their reference.
file(GLOB installed RELATIVE ${WORK_DIR}/prefix/share/tessera/wgsl
     ${WORK_DIR}/prefix/share/tessera/wgsl/*)
foreach(file embedding rmsnorm layernorm rope softmax silu gelu add mul attention matmul matmul_int4
             linear linear_w16 simd_matvec simd_matvec_shared)
  list(FIND installed ${file}.wgsl found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${file}.wgsl is not installed, only ${installed}")
  endif()
endforeach()
file(READ ${WORK_DIR}/prefix/share/tessera/wgsl/wgsl.md reference)
if(NOT reference MATCHES "## rmsnorm.wgsl")
  message(FATAL_ERROR "the reference does not describe rmsnorm.wgsl")
endif()
