# SPDX-License-Identifier: Apache-2.0
# Flags shared by every target, and one function that makes a library the same way everywhere.

include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(BULKHEAD_LIBEXEC_DIR "${CMAKE_INSTALL_PREFIX}/libexec/bulkhead")
# Libraries that emulators load: a place that AppArmor's rules can name.
set(BULKHEAD_LIBRARY_DIR "${CMAKE_INSTALL_PREFIX}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/bulkhead")

# assert() is for our own mistakes, and stays on in what is shipped.
foreach(configuration IN ITEMS RELEASE RELWITHDEBINFO)
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${configuration} "${CMAKE_CXX_FLAGS_${configuration}}")
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${configuration} "${CMAKE_C_FLAGS_${configuration}}")
endforeach()

find_package(PkgConfig REQUIRED)

add_library(bulkhead_warnings INTERFACE)
target_compile_options(bulkhead_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    -Wold-style-cast -Woverloaded-virtual -Wnull-dereference -Wswitch-enum -Werror
    # Designated initialisers leave out what has a default member initialiser.
    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 reports these inside the standard library and tl::expected once sanitizers or -O2 inline them.
    target_compile_options(bulkhead_warnings INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized)
endif()

add_library(bulkhead_hardening INTERFACE)
target_compile_options(bulkhead_hardening INTERFACE
    -fstack-protector-strong -fstack-clash-protection -fcf-protection
    $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2> -D_GLIBCXX_ASSERTIONS)
target_link_options(bulkhead_hardening INTERFACE -Wl,-z,relro,-z,now)

add_library(bulkhead_sanitizers INTERFACE)
if(BULKHEAD_SANITIZE)
    target_compile_options(bulkhead_sanitizers INTERFACE
        -fsanitize=${BULKHEAD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(bulkhead_sanitizers INTERFACE -fsanitize=${BULKHEAD_SANITIZE})
endif()

add_library(bulkhead_flags INTERFACE)
target_link_libraries(bulkhead_flags INTERFACE bulkhead_warnings bulkhead_hardening bulkhead_sanitizers)

# bulkhead_library(NAME SOURCES… PUBLIC targets… PRIVATE targets…)
# Makes lib bulkhead_NAME with alias bulkhead::NAME. Includes are written from the project root's folders:
# "base/result.hpp" for daemon/base, "protocol/frame.hpp" for guest-agent/protocol.
function(bulkhead_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
    add_library(bulkhead_${name} STATIC ${ARG_SOURCES})
    add_library(bulkhead::${name} ALIAS bulkhead_${name})
    target_include_directories(bulkhead_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/..")
    target_link_libraries(bulkhead_${name} PUBLIC ${ARG_PUBLIC} PRIVATE bulkhead_flags ${ARG_PRIVATE})
endfunction()

function(bulkhead_program name)
    cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE bulkhead_flags ${ARG_PRIVATE})
endfunction()
