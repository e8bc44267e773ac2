# Turns ops.list into targets and registration code. For each op, by the files that exist:
#   <op>_ref.cpp       contract checks, cost, f64 reference     -> room ops
#   <op>_compose.cpp   add_<op>_compose(table): the op as other ops -> room ops
#   <op>_cpu.cpp       add_<op>_cpu(table, tiers): rows             -> room ops_cpu
#   <op>_cpu.inl       kernels, compiled once for each tier         -> ops_cpu_<tier>
#   <op>_webgpu.cpp    add_<op>_webgpu(table, capabilities): rows   -> room ops_webgpu
#   <op>_cases.cpp     cases for tests and benchmarks               -> library ops_cases

include(TesseraTiers)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_SOURCE_DIR}/ops.list)
file(STRINGS ops.list lines REGEX "^[a-z]")
set(contract_sources op.cpp reference.cpp)
set(cpu_sources "")
set(case_sources "")
set(includes "")
set(cpu_declarations "")
set(cpu_calls "")
set(webgpu_declarations "")
set(webgpu_calls "")
set(each "")
foreach(line ${lines})
  string(REGEX REPLACE " +" ";" fields "${line}")
  list(POP_FRONT fields op folder contract)
  set(base ${folder}/${op})
  string(APPEND includes "#include \"ops/${base}.hpp\"\n")
  string(APPEND each " X(${contract})")
  # Kinds of files that do not exist yet are looked for again when the folder changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_ref.cpp)
    list(APPEND contract_sources ${base}_ref.cpp)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_cases.cpp)
    list(APPEND case_sources ${base}_cases.cpp)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_cpu.cpp)
    list(APPEND cpu_sources ${base}_cpu.cpp)
    string(APPEND cpu_declarations "void add_${op}_cpu(KernelTable&, const std::vector<Tier>&);\n")
    string(APPEND cpu_calls "  add_${op}_cpu(table, tiers);\n")
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_webgpu.cpp)
    string(APPEND webgpu_declarations
           "void add_${op}_webgpu(KernelTable&, const webgpu::Capabilities&);\n")
    string(APPEND webgpu_calls "  add_${op}_webgpu(table, capabilities);\n")
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_compose.cpp)
    list(APPEND contract_sources ${base}_compose.cpp)
    foreach(device cpu webgpu)
      string(APPEND ${device}_declarations "void add_${op}_compose(KernelTable&);\n")
      string(APPEND ${device}_calls "  add_${op}_compose(table);\n")
    endforeach()
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_ref.cpp)
    string(APPEND cpu_calls "  add_reference_row<${contract}>(table);\n")
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}_cpu.inl)
    foreach(tier ${fields})
      if(tier IN_LIST TESSERA_TIERS)
        set(unit ${CMAKE_CURRENT_BINARY_DIR}/${op}_cpu_${tier}.cpp)
        file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"ops/${base}_cpu.inl\"\n")
        list(APPEND tier_sources_${tier} ${unit})
      endif()
    endforeach()
  endif()
endforeach()

file(
  CONFIGURE
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/ops/all_ops.hpp
  CONTENT "// Generated from ops.list.
#pragma once

${includes}
/// Calls X(Contract) for every operation.
#define TESSERA_FOR_EACH_OP(X)${each}
")
file(
  CONFIGURE
  OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/cpu_rows.cpp
  CONTENT "// Generated from ops.list.
#include \"ops/all_ops.hpp\"
#include \"ops/cpu_rows.hpp\"
#include \"ops/reference_row.hpp\"

namespace tessera {

using cpu::Tier;
${cpu_declarations}
void add_cpu_rows(KernelTable& table, const std::vector<Tier>& tiers) {
${cpu_calls}}

}  // namespace tessera
")

if(TESSERA_HAS_WEBGPU)
  file(
    CONFIGURE
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/webgpu_rows.cpp
    CONTENT "// Generated from ops.list.
#include \"ops/webgpu_rows.hpp\"

namespace tessera {

${webgpu_declarations}
void add_webgpu_rows(KernelTable& table, const webgpu::Capabilities& capabilities) {
${webgpu_calls}}

}  // namespace tessera
")
endif()

target_include_directories(tessera_build
                           INTERFACE ${CMAKE_CURRENT_BINARY_DIR}/generated)
tessera_room(ops ${contract_sources} rope/rotation.cpp)
tessera_room(ops_cpu ${cpu_sources} ${CMAKE_CURRENT_BINARY_DIR}/cpu_rows.cpp)
if(TESSERA_HAS_WEBGPU)
  file(GLOB webgpu_sources CONFIGURE_DEPENDS */*_webgpu.cpp)
  tessera_room(ops_webgpu ${webgpu_sources} ${CMAKE_CURRENT_BINARY_DIR}/webgpu_rows.cpp)
endif()
foreach(tier ${TESSERA_TIERS})
  if(tier_sources_${tier})
    tessera_room(ops_cpu_${tier} ${tier_sources_${tier}})
    # -Wno-(maybe-)uninitialized: GCC 12 warns inside its own intrinsics (GCC bug 105593).
    target_compile_options(
      room_ops_cpu_${tier} PRIVATE ${TESSERA_TIER_FLAGS_${tier}} -fno-exceptions -Wno-psabi
                                   -Wno-unused-function -Wno-uninitialized
                                   -Wno-maybe-uninitialized)
    target_compile_definitions(room_ops_cpu_${tier} PRIVATE
                               TESSERA_TIER=${TESSERA_TIER_NUMBER_${tier}} TESSERA_ISA=${tier})
  endif()
endforeach()

if(TESSERA_DEVELOPER)
  add_library(ops_cases STATIC EXCLUDE_FROM_ALL cases.cpp attention/paged_batch.cpp
              matmul/linear_cases.cpp ${case_sources})
  target_link_libraries(ops_cases PUBLIC tessera tessera_build)
endif()
