# SPDX-License-Identifier: Apache-2.0
# cmake -P LinkBuilt.cmake -- FILE COMMAND…: runs a builder that keeps what it makes in the cache and
# prints its path, and links FILE there, with what lies beside it under the same name and another
# ending. FILE is the last, and each link takes the old one's place at once: whoever finds FILE
# meanwhile finds all of it. The links are hard: another build may have the cache drop it.
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
get_filename_component(name "${link}" NAME_WE)
get_filename_component(built "${path}" DIRECTORY)
file(GLOB files "${built}/${name}" "${built}/${name}.*")
list(REMOVE_ITEM files "${path}")
foreach(file IN LISTS files ITEMS "${path}")
    get_filename_component(file_name "${file}" NAME)
    file(CREATE_LINK "${file}" "${folder}/.${file_name}.new" COPY_ON_ERROR)
    file(RENAME "${folder}/.${file_name}.new" "${folder}/${file_name}")
    # What is linked there already is not renamed.
    file(REMOVE "${folder}/.${file_name}.new")
endforeach()
