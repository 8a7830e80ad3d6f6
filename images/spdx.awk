# SPDX-License-Identifier: Apache-2.0
# Writes what a package holds of others' as an SPDX 2.3 document in JSON. Input: lists of what an
# image or kernel was made of, each named after it (python.packages), one package a line:
# name_version_architecture.deb, with %3a for a colon, and its digest where that is known.
#   awk -v name=skillvm -v version=0.2.0 -v created=2026-01-31T12:00:00Z -v space=DIGEST -f spdx.awk LISTS

function quoted(text) {
    gsub(/["\\]/, "\\\\&", text)
    return "\"" text "\""
}

function member(key, value) {
    return quoted(key) ": " quoted(value)
}

# SPDX allows letters, digits, dots and hyphens.
function id_of(text) {
    gsub(/[^A-Za-z0-9.]/, "-", text)
    return "SPDXRef-" text
}

function put_package(id, title, release, more) {
    printf "%s\n    {%s, %s, %s, %s, %s, %s, %s, \"filesAnalyzed\": false%s}", n_packages++ ? "," : "",
        member("SPDXID", id), member("name", title), member("versionInfo", release),
        member("downloadLocation", "NOASSERTION"), member("licenseConcluded", "NOASSERTION"),
        member("licenseDeclared", title == name ? "Apache-2.0" : "NOASSERTION"),
        member("copyrightText", "NOASSERTION"), more
}

function relate(from, how, to) {
    relations[n_relations++] = "    {" member("spdxElementId", from) ", " \
        member("relationshipType", how) ", " member("relatedSpdxElement", to) "}"
}

BEGIN {
    whole = id_of(name)
    printf "{\n  %s,\n  %s,\n  %s,\n", member("spdxVersion", "SPDX-2.3"), member("dataLicense", "CC0-1.0"),
        member("SPDXID", "SPDXRef-DOCUMENT")
    printf "  %s,\n  %s,\n", member("name", name "-" version),
        member("documentNamespace", "https://spdx.org/spdxdocs/" name "-" version "-" space)
    printf "  \"creationInfo\": {%s, \"creators\": [%s]},\n", member("created", created),
        quoted("Tool: skillvm-package-" version)
    printf "  \"packages\": ["
    put_package(whole, name, version, "")
    relate("SPDXRef-DOCUMENT", "DESCRIBES", whole)
}

FNR == 1 {
    part = FILENAME
    sub(/.*\//, "", part)
    sub(/\.packages$/, "", part)
    part_id = id_of(name "-" part)
    put_package(part_id, name "-" part, version, "")
    relate(whole, "CONTAINS", part_id)
}

{
    deb = $1
    sub(/\.deb$/, "", deb)
    split(deb, field, "_")
    release = field[2]
    gsub(/%3a/, ":", release)
    encoded = release
    gsub(/\+/, "%2B", encoded)
    gsub(/:/, "%3A", encoded)
    digest = $2
    sub(/^SHA256:/, "", digest)
    id = id_of(field[1] "-" release "-" field[3])
    if (!(id in seen))
        put_package(id, field[1], release, ", \"externalRefs\": [{" \
            member("referenceCategory", "PACKAGE-MANAGER") ", " member("referenceType", "purl") ", " \
            member("referenceLocator", "pkg:deb/debian/" field[1] "@" encoded "?arch=" field[3]) "}]" \
            (digest ? ", \"checksums\": [{" member("algorithm", "SHA256") ", " \
            member("checksumValue", digest) "}]" : ""))
    seen[id] = 1
    # A kernel is made of its source, an image holds its packages.
    relate(part_id, field[1] ~ /^linux-source/ ? "GENERATED_FROM" : "CONTAINS", id)
}

END {
    printf "\n  ],\n  \"relationships\": [\n"
    for (i = 0; i < n_relations; i++)
        printf "%s%s\n", relations[i], i + 1 < n_relations ? "," : ""
    print "  ]\n}"
}
