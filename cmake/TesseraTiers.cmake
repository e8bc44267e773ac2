# Instruction-set tiers: their compiler flags and numbers (cpu/tier.hpp), and those that this
# processor family has.

set(TESSERA_TIER_FLAGS_portable "")
set(TESSERA_TIER_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TESSERA_TIER_FLAGS_avx512 ${TESSERA_TIER_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
                              -mavx512cd -mprefer-vector-width=512)
set(TESSERA_TIER_FLAGS_avx512vnni ${TESSERA_TIER_FLAGS_avx512} -mavx512vnni)
set(TESSERA_TIER_FLAGS_amx ${TESSERA_TIER_FLAGS_avx512vnni} -mamx-tile -mamx-int8 -mamx-bf16)
set(TESSERA_TIER_NUMBER_portable 0)
set(TESSERA_TIER_NUMBER_avx2 1)
set(TESSERA_TIER_NUMBER_avx512 2)
set(TESSERA_TIER_NUMBER_avx512vnni 3)
set(TESSERA_TIER_NUMBER_amx 4)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TESSERA_TIERS portable avx2 avx512 avx512vnni amx)
else()
  set(TESSERA_TIERS portable)
endif()
