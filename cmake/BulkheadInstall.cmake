# SPDX-License-Identifier: Apache-2.0
# What is installed where. Included last, so that every target that is built is known; a folder installs only what no
# other module installs for itself.

if(BULKHEAD_BUILD_DAEMON)
    add_subdirectory("${CMAKE_SOURCE_DIR}/packaging/lib")
endif()

# bulkhead_install(DESTINATION target…): those that this configuration knows. OPTIONAL, since private test hosts install
# from trees in which only some targets were built; quickstart builds everything before it installs.
function(bulkhead_install destination)
    foreach(target IN LISTS ARGN)
        if(TARGET ${target})
            install(TARGETS ${target} RUNTIME DESTINATION "${destination}" OPTIONAL)
        endif()
    endforeach()
endfunction()

bulkhead_install("${CMAKE_INSTALL_BINDIR}" bulkhead bulkhead-viewer bulkhead-tray)
bulkhead_install("${CMAKE_INSTALL_SBINDIR}" bulkheadd)
bulkhead_install("libexec/bulkhead" bulkhead-channel bulkhead-memcap bulkhead-build bulkhead-agent bulkhead-session
    bulkhead-reaper)
if(TARGET bulkhead-readonly)
    # Where emulators that AppArmor confines may map libraries from.
    install(TARGETS bulkhead-readonly LIBRARY DESTINATION "lib/${CMAKE_LIBRARY_ARCHITECTURE}/bulkhead" OPTIONAL)
endif()

set(units "lib/systemd/system") # where Debian's systemd looks, whatever the libdir
install(FILES packaging/systemd/bulkheadd.service DESTINATION "${units}")
install(FILES packaging/sysusers/bulkhead.conf DESTINATION lib/sysusers.d)
install(FILES packaging/tmpfiles/bulkhead.conf DESTINATION lib/tmpfiles.d)
install(FILES packaging/apparmor/bulkhead-emulator DESTINATION /etc/apparmor.d/abstractions)
install(FILES packaging/dbus/org.bulkhead1.conf DESTINATION "${CMAKE_INSTALL_DATADIR}/dbus-1/system.d")
install(FILES packaging/dbus/org.bulkhead1.service DESTINATION "${CMAKE_INSTALL_DATADIR}/dbus-1/system-services")
install(DIRECTORY daemon/dbus/interfaces/ DESTINATION "${CMAKE_INSTALL_DATADIR}/dbus-1/interfaces"
        FILES_MATCHING PATTERN "*.xml")
install(FILES packaging/desktop/org.bulkhead.Tray.desktop DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
install(FILES packaging/desktop/org.bulkhead.Tray.autostart.desktop DESTINATION /etc/xdg/autostart
        RENAME org.bulkhead.Tray.desktop)
install(DIRECTORY resources/icons/hicolor DESTINATION "${CMAKE_INSTALL_DATADIR}/icons" FILES_MATCHING PATTERN "*.svg")
if(EXISTS "${CMAKE_SOURCE_DIR}/resources/templates")
    # The definitions and the folders with their files, with the modes that these have here.
    install(DIRECTORY resources/templates/ DESTINATION "${CMAKE_INSTALL_DATADIR}/bulkhead/templates.d"
            USE_SOURCE_PERMISSIONS)
endif()
