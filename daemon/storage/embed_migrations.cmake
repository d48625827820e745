# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=FILE.cpp -DFOLDER=migrations -P embed_migrations.cmake: writes every NNNN_name.sql as a string literal.
file(GLOB files "${FOLDER}/*.sql")
list(SORT files)
set(entries "")
set(number 0)
foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    math(EXPR number "${number} + 1")
    if(NOT name MATCHES "^0*${number}_[a-z0-9_]+$")
        message(FATAL_ERROR "${file}: migrations are numbered without gaps, the next one is number ${number}")
    endif()
    file(READ "${file}" text)
    string(APPEND entries "    {\"${name}\", R\"sql(${text})sql\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by embed_migrations.cmake.
#include \"storage/migrations.hpp\"

namespace bulkhead::storage {

const std::vector<Migration>& embeddedMigrations() {
    static const std::vector<Migration> all{
${entries}    };
    return all;
}

} // namespace bulkhead::storage
")
