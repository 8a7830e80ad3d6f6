# SPDX-License-Identifier: Apache-2.0
# Compiler and linker flags of every target. A target that needs more says so in its own folder.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_compile_definitions(_GNU_SOURCE SKILLVM_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wshadow -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes
    -Wimplicit-fallthrough -Wformat=2 -Wvla -Wundef -Wpointer-arith -Wwrite-strings)
include_directories(${CMAKE_SOURCE_DIR})

if(SKILLVM_WERROR)
    add_compile_options(-Werror)
endif()

if(SKILLVM_FUZZ)
    # Coverage for libFuzzer in everything; only the targets link its main.
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(SKILLVM_SANITIZE)
    set(SKILLVM_SANITIZER -fsanitize=address,undefined)
    if(SKILLVM_SANITIZE STREQUAL "thread")
        # It does not know fences alone; what they order here is memory of the guest.
        set(SKILLVM_SANITIZER -fsanitize=thread $<$<C_COMPILER_ID:GNU>:-Wno-tsan>)
    endif()
    add_compile_options(${SKILLVM_SANITIZER} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(${SKILLVM_SANITIZER})
else()
    add_compile_options(-fstack-protector-strong -fPIE -fno-strict-overflow)
    add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    endif()
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        add_compile_options(-fcf-protection=full)
    endif()
endif()
