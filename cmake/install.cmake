# The files that `make install` leaves behind: the programs, the systemd unit,
# and the client library with the CMake package that finds it
# (find_package(gmb)).
include(CMakePackageConfigHelpers)

# The targets that exist so far, of those named.
function(gmb_existing out)
  set(found)
  foreach(target ${ARGN})
    if(TARGET ${target})
      list(APPEND found ${target})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# The headers say their version themselves: they also serve builds without CMake.
function(gmb_check_version_header)
  file(STRINGS ${CMAKE_SOURCE_DIR}/client/include/gmb/version.h line REGEX "GMB_VERSION_STRING")
  if(NOT line MATCHES "\"${PROJECT_VERSION}\"")
    message(FATAL_ERROR "client/include/gmb/version.h is not version ${PROJECT_VERSION}: ${line}")
  endif()
endfunction()

# For libgmb.so alone: the static library's order of gRPC's and Abseil's archives
# is CMake's to know.
function(gmb_install_pkgconfig)
  set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_dir} /)
  string(REGEX REPLACE "/$" "" prefix_from_pkgconfig "${prefix_from_pkgconfig}")
  configure_file(${CMAKE_SOURCE_DIR}/cmake/gmb.pc.in ${CMAKE_BINARY_DIR}/gmb.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/gmb.pc DESTINATION ${pkgconfig_dir})
endfunction()

# gmb::client is a static library; what it is made of is exported with it, under
# names of its own, because CMake has to see the whole link line.
function(gmb_install_client_library)
  gmb_check_version_header()
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gmb)
  foreach(part ipc device proto errors)
    set_target_properties(gmb_${part} PROPERTIES EXPORT_NAME client_${part})
  endforeach()
  set_target_properties(gmb_client PROPERTIES EXPORT_NAME client)
  target_include_directories(gmb_client INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS gmb_client gmb_ipc gmb_device gmb_proto gmb_errors EXPORT gmbTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/gmb)
  if(TARGET gmb_client_c)
    set_target_properties(gmb_client_c PROPERTIES EXPORT_NAME client_c)
    target_include_directories(gmb_client_c
                               INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    install(TARGETS gmb_client_c EXPORT gmbTargets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    gmb_install_pkgconfig()
  endif()
  if(TARGET gmb_preload)
    install(TARGETS gmb_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    gmb_install_run_library()
  endif()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/client/include/gmb
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

  install(EXPORT gmbTargets NAMESPACE gmb:: DESTINATION ${package_dir})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/gmbConfig.cmake.in
                                ${CMAKE_BINARY_DIR}/gmbConfig.cmake
                                INSTALL_DESTINATION ${package_dir}
                                NO_SET_AND_CHECK_MACRO)
  # Before 1.0 a minor version may break its users.
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/gmbConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/gmbConfig.cmake ${CMAKE_BINARY_DIR}/gmbConfigVersion.cmake
                ${CMAKE_SOURCE_DIR}/cmake/grpcpp.cmake
          DESTINATION ${package_dir})
endfunction()

# The libraries that `gmb run` loads into programs: a copy of libgmb.so and of
# what it needs, in a folder of its own, under names and with symbols of their
# own. (Libraries of C are the system's: they have versioned symbols, and no
# state of ours.) A program may have any other gRPC, and neither is taken for
# the other. Without patchelf `gmb run` loads libgmb.so itself, which gets along
# with the distribution's gRPC in libraries alone (docs/frameworks.md).
function(gmb_install_run_library)
  find_package(Python3 3.10 COMPONENTS Interpreter)
  find_program(GMB_PATCHELF patchelf DOC "Gives the bundled libraries their names")
  if(NOT Python3_FOUND OR NOT GMB_PATCHELF)
    message(STATUS "gmb: no patchelf: what gmb run loads is not kept apart from another gRPC")
    return()
  endif()
  set(folder ${CMAKE_INSTALL_LIBDIR}/gmb/run)
  install(CODE "file(REMOVE_RECURSE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")")
  install(TARGETS gmb_client_c LIBRARY DESTINATION ${folder} NAMELINK_SKIP)
  install(CODE "
    execute_process(
      COMMAND \"${Python3_EXECUTABLE}\" -B \"${CMAKE_SOURCE_DIR}/client/python/bundle_libraries.py\"
              --patchelf \"${GMB_PATCHELF}\" --strip \"${CMAKE_STRIP}\"
              --leave libssl --leave libcrypto --leave libz --leave libcares --own-run-time
              \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\"
      COMMAND_ERROR_IS_FATAL ANY)")
endfunction()

# The units name /usr/local/bin; installed elsewhere, it names the place it was
# installed to, known only at install time (make install PREFIX=...).
function(gmb_install_unit)
  foreach(name gmbd.service gmb-keeper.service)
    install(CODE "
      file(READ ${CMAKE_SOURCE_DIR}/deploy/systemd/${name} unit)
      string(REPLACE /usr/local/bin/ \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/\" unit \"\${unit}\")
      file(WRITE ${CMAKE_BINARY_DIR}/${name} \"\${unit}\")")
    install(FILES ${CMAKE_BINARY_DIR}/${name} DESTINATION lib/systemd/system)
  endforeach()
  install(FILES ${CMAKE_SOURCE_DIR}/deploy/gmb.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/gmb)
  foreach(kind sysusers tmpfiles)
    install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/gmb.${kind}.conf
            DESTINATION lib/${kind}.d RENAME gmb.conf)
  endforeach()
endfunction()

function(gmb_install)
  gmb_existing(programs gmbd gmb gmb-keeper)
  gmb_existing(started_by_programs gmb-demo)
  gmb_existing(libraries gmb_client gmb_client_c gmb_preload)
  add_custom_target(products)
  if(programs OR libraries)
    add_dependencies(products ${programs} ${started_by_programs} ${libraries})
  endif()
  if(programs)
    install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(started_by_programs)
    install(TARGETS ${started_by_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gmb)
  endif()
  if(TARGET gmb_client)
    gmb_install_client_library()
  endif()
  if(TARGET gmbd)
    gmb_install_unit()
  endif()
endfunction()
