# SPDX-License-Identifier: Apache-2.0
# cmake -P LinkBuilt.cmake -- FILE COMMAND…: runs a builder that keeps what it makes in the cache and
# prints its path, and links FILE there. What lies beside it as NAME.modules comes along.
set(at 0)
while(NOT CMAKE_ARGV${at} STREQUAL "--")
    math(EXPR at "${at} + 1")
endwhile()
math(EXPR at "${at} + 1")
set(link "${CMAKE_ARGV${at}}")
set(command "")
math(EXPR at "${at} + 1")
while(at LESS CMAKE_ARGC)
    list(APPEND command "${CMAKE_ARGV${at}}")
    math(EXPR at "${at} + 1")
endwhile()

execute_process(COMMAND ${command} OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "this failed (${status}): ${command}")
endif()
get_filename_component(folder "${link}" DIRECTORY)
file(MAKE_DIRECTORY "${folder}")
file(CREATE_LINK "${path}" "${link}" SYMBOLIC)
string(REGEX REPLACE "\\.erofs$" ".modules" modules "${path}")
if(NOT modules STREQUAL path)
    string(REGEX REPLACE "\\.erofs$" ".modules" link "${link}")
    file(CREATE_LINK "${modules}" "${link}" SYMBOLIC)
endif()
