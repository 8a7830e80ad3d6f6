# SPDX-License-Identifier: Apache-2.0
# Debian packages: `cmake --build --preset release --target package`, into packages/.
#   skillvm           programs, guest kernel and image, units, completion, manuals
#   libskillvm0       the C library, and skillvm-dev what programs are built with
#   skillvm-softhost  the software host, for machines without usable KVM
set(SKILLVM_CONTACT "skillvm maintainers <maintainers@example.org>" CACHE STRING
    "Who the packages say to write to: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME skillvm)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${SKILLVM_CONTACT}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL service library client softhost)
set(CPACK_DEB_COMPONENT_INSTALL ON)
# Not below the prefix of the configuration, which is where `cmake --install` puts things.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package/finish.cmake)
set(CPACK_SKILLVM_SOURCE ${CMAKE_SOURCE_DIR})
set(CPACK_SKILLVM_SHARE ${SKILLVM_SHARE})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_SERVICE_PACKAGE_NAME skillvm)
set(CPACK_DEBIAN_SERVICE_DESCRIPTION "executor of agent skills in microVMs
Runs a skill (a folder with a SKILL.md and scripts) in a KVM microVM that is
restored from a snapshot, and gives back its output, logs and files. Holds the
daemon for many tenants, the command line, a server of the Model Context
Protocol, and the kernel and file system of the guest.")
set(CPACK_DEBIAN_SERVICE_PACKAGE_RECOMMENDS "systemd, erofs-utils")
set(CPACK_DEBIAN_SERVICE_PACKAGE_SUGGESTS "skillvm-softhost (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_SERVICE_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/cmake/package/conffiles ${CMAKE_SOURCE_DIR}/cmake/package/postinst
    ${CMAKE_SOURCE_DIR}/cmake/package/prerm ${CMAKE_SOURCE_DIR}/cmake/package/postrm)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libskillvm0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "C library for skillvm, for programs that use it
Runs skills by a skillvm daemon, over its unix socket or TLS.")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/package/triggers)

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME skillvm-dev)
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "libskillvm0 (= ${PROJECT_VERSION}), libcurl4-openssl-dev, libcjson-dev")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "C library for skillvm, to build programs with
Runs skills by a skillvm daemon, from C or C++: the header, the static library
and the pkg-config file.")

set(CPACK_DEBIAN_SOFTHOST_PACKAGE_NAME skillvm-softhost)
set(CPACK_DEBIAN_SOFTHOST_PACKAGE_DEPENDS "skillvm (= ${PROJECT_VERSION}), qemu-system-x86")
set(CPACK_DEBIAN_SOFTHOST_DESCRIPTION "emulated host for skillvm where KVM is not usable
A Linux machine with KVM, emulated by QEMU, in which skillvm's own programs run
unchanged. Much slower than a real one: to try and to test.")

include(CPack)
